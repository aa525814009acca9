"""What people do with many schedules at once: pause, resume or delete all that match a filter."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from scheduler_app.domain.errors import Conflict, InvalidField, NotFound, StaleVersion
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store.paging import Page, Position
from scheduler_app.store.schedules.documents import CorruptSchedule
from scheduler_app.usecases.deeds.schedules import ScheduleService, check_pause_end

#: A page ends after this many seconds, finished or not: its caller continues with the next page.
PAGE_SECONDS = 5.0


class BulkAction(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class EditedPage:
    """The result for a page of schedules: how many were edited, and the others' ids with the reasons."""

    count: int
    skipped: list[tuple[str, str]]
    next: Position | None


def edit_page(
    manager: ScheduleService,
    verb: BulkAction,
    page: Page[Schedule | CorruptSchedule],
    now: datetime,
    *,
    hops: int = 0,
    pause: Mapping[str, Any] | None = None,
    seconds: float = PAGE_SECONDS,
) -> EditedPage:
    """Does `verb` to each schedule of a page, except those that cannot be edited.

    Repeating it is harmless: schedules that were edited are skipped then. After `seconds`, the rest of the
    page is left to the next page. `hops` are those of the request; `pause` is the `note` and `until` of
    pauses. Raises InvalidField for an `until` that has passed.
    """
    count, skipped, end = 0, list[tuple[str, str]](), time.monotonic() + seconds
    check_pause_end((pause or {}).get("until"), now)
    for each in page.rows:
        schedule_id = each.schedule_id if isinstance(each, CorruptSchedule) else each.id
        reason = _refusal_by_state(verb, each) or _refusal(manager, verb, schedule_id, now, hops, pause or {})
        if reason is None:
            count += 1
        else:
            skipped.append((schedule_id, reason))
        if time.monotonic() > end and isinstance(each, Schedule) and each is not page.rows[-1]:
            return EditedPage(count, skipped, Position(each.created_at, each.id))
    return EditedPage(count, skipped, page.next)


def _refusal_by_state(verb: BulkAction, schedule: Schedule | CorruptSchedule) -> str | None:
    """Why a schedule is not edited, as far as its listed state tells; None if it may be."""
    if verb is BulkAction.DELETE:
        return None
    if isinstance(schedule, CorruptSchedule):
        return f"its stored document is unreadable: {schedule.reason}"
    reached = ScheduleState.PAUSED if verb is BulkAction.PAUSE else ScheduleState.ACTIVE
    return f"it is {schedule.state}" if schedule.state in (reached, ScheduleState.FINISHED) else None


def _refusal(
    manager: ScheduleService,
    verb: BulkAction,
    schedule_id: str,
    now: datetime,
    hops: int,
    pause: Mapping[str, Any],
) -> str | None:
    try:
        match verb:
            case BulkAction.PAUSE:
                manager.pause(schedule_id, now, **pause)
            case BulkAction.RESUME:
                manager.resume(schedule_id, now, hops=hops)
            case BulkAction.DELETE:
                manager.delete(schedule_id, now)
    except (Conflict, InvalidField, NotFound, StaleVersion) as error:
        return str(error)
    return None
