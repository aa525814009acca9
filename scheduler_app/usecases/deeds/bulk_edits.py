"""What people do with many schedules at once: pause, resume or delete all that match a filter."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any

from scheduler_app.domain.errors import Conflict, InvalidField, NotFound, QuotaExceeded, StaleVersion
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store.paging import Page, Position
from scheduler_app.store.schedules.documents import CorruptSchedule
from scheduler_app.usecases.deeds.schedules import ScheduleService, check_pause_end

#: A page ends after this many seconds, finished or not: its caller continues with the next page.
PAGE_SECONDS = 5.0

#: Edits the schedule of an id.
Edit = Callable[[str, datetime], object]
AnySchedule = Schedule | CorruptSchedule


@dataclass(frozen=True, slots=True)
class EditedPage:
    """The result for a page of schedules: how many were edited, and the others' ids with the reasons."""

    count: int
    skipped: list[tuple[str, str]]
    next: Position | None


def edit_page(
    page: Page[AnySchedule],
    edit: Edit,
    now: datetime,
    *,
    refusal: Callable[[AnySchedule], str | None],
    seconds: float = PAGE_SECONDS,
) -> EditedPage:
    """Edits each schedule of a page, except those that cannot be edited. `refusal` says why one is not even
    tried. After `seconds`, the rest of the page is left to the next page."""
    count, skipped, end = 0, list[tuple[str, str]](), time.monotonic() + seconds
    for each in page.rows:
        schedule_id = each.schedule_id if isinstance(each, CorruptSchedule) else each.id
        reason = refusal(each) or refused(edit, schedule_id, now)
        if reason is None:
            count += 1
        else:
            skipped.append((schedule_id, reason))
        if time.monotonic() > end and isinstance(each, Schedule) and each is not page.rows[-1]:
            return EditedPage(count, skipped, Position(each.created_at, each.id))
    return EditedPage(count, skipped, page.next)


def refused(edit: Edit, schedule_id: str, now: datetime) -> str | None:
    """Edits a schedule; returns why it was refused."""
    try:
        edit(schedule_id, now)
    except (Conflict, InvalidField, NotFound, QuotaExceeded, StaleVersion) as error:
        return str(error)
    return None


class BulkAction(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    DELETE = "delete"


def act_on_page(
    manager: ScheduleService,
    verb: BulkAction,
    page: Page[AnySchedule],
    now: datetime,
    *,
    hops: int = 0,
    pause: Mapping[str, Any] | None = None,
    seconds: float = PAGE_SECONDS,
) -> EditedPage:
    """Does `verb` to each schedule of a page.

    Repeating it is harmless: schedules that were edited are skipped then. `hops` are those of the request;
    `pause` is the `note` and `until` of pauses. Raises InvalidField for an `until` that has passed.
    """
    pause = pause or {}
    check_pause_end(pause.get("until"), now)
    edits: dict[BulkAction, Edit] = {
        BulkAction.PAUSE: partial(manager.pause, **pause),
        BulkAction.RESUME: partial(manager.resume, hops=hops),
        BulkAction.DELETE: manager.delete,
    }
    return edit_page(page, edits[verb], now, refusal=partial(_refusal_by_state, verb), seconds=seconds)


def _refusal_by_state(verb: BulkAction, schedule: AnySchedule) -> str | None:
    """Why a schedule is not edited, as far as its listed state tells; None if it may be."""
    if verb is BulkAction.DELETE:
        return None
    if isinstance(schedule, CorruptSchedule):
        return f"its stored document is unreadable: {schedule.reason}"
    reached = ScheduleState.PAUSED if verb is BulkAction.PAUSE else ScheduleState.ACTIVE
    return f"it is {schedule.state}" if schedule.state in (reached, ScheduleState.FINISHED) else None
