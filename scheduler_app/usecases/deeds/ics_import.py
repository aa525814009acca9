"""How people make schedules of the events of an iCalendar file, and keep them as a newer file says."""

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from scheduler_app.clock import thread_seconds
from scheduler_app.domain.errors import Conflict, InvalidField, NotFound, QuotaExceeded
from scheduler_app.domain.ids import WholeId, name_of, tenant_of
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.ics import MAX_PARTS, CalendarItem, Series, read_items
from scheduler_app.usecases.deeds.creation import Creation, CreationRefusal
from scheduler_app.usecases.deeds.schedules import ScheduleService

#: What reading a file may cost, in seconds of a thread's CPU. A thousand ordinary events
#: take a quarter of one.
MAX_READ_SECONDS = 3.0
#: 96 bits of a SHA-256, in hexadecimal digits.
_ID_DIGITS = 24
ImportOutcome = Literal["created", "changed", "unchanged"]


@dataclass(frozen=True, slots=True)
class SeriesImport:
    """The schedule of a series, and what was done to it."""

    schedule: Schedule
    deed: ImportOutcome


@dataclass(frozen=True, slots=True)
class ImportedItem:
    """An item of the file, and for each of its series the schedule, or why there is none."""

    item: CalendarItem
    schedules: tuple[tuple[Series, SeriesImport | CreationRefusal], ...] = ()
    removed: tuple[str, ...] = ()
    """Schedules of an earlier import of the event, of series that it has no more."""


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """A request for an import."""

    text: str
    draft: ScheduleDraft
    """All of each schedule but its name and its trigger."""
    timezone: str
    """The zone of times that name none."""
    id_prefix: WholeId
    """The id of a schedule, which is the same tenant's, is derived from it and from its event's UID: a file
    that is imported again makes nothing twice."""
    update: bool = False
    """Whether schedules of an earlier import follow the file: those that differ are changed, and those of
    series that their event has no more are deleted."""


def reading_deadline() -> Callable[[], bool]:
    """What says whether `MAX_READ_SECONDS` are over that begin now; this thread asks it."""
    end = thread_seconds() + MAX_READ_SECONDS
    return lambda: thread_seconds() > end


def import_calendar(
    creation: Creation,
    manager: ScheduleService,
    asked: ImportRequest,
    now: datetime,
    *,
    request_seed: str | None = None,
    hops: int = 0,
) -> list[ImportedItem]:
    """Makes a schedule of each series in the file that still has an occurrence. `request_seed` and `hops` are
    as in `Creation.create`. An event that is not in the file any more keeps its schedule: the file may be
    another one. Raises InvalidField where the file as a whole cannot be read."""
    items = read_items(asked.text, timezone=asked.timezone, now=now, is_out_of_time=reading_deadline())
    wanted = [
        (number, series)
        for number, item in enumerate(items)
        if item.outcome == "schedules"
        for series in item.series
    ]
    drafts = [
        (_series_id(asked.id_prefix, items[number], series), _series_draft(asked.draft, series))
        for number, series in wanted
    ]
    ids = {schedule_id for schedule_id, _ in drafts}
    results = creation.create_many(
        tenant_of(asked.id_prefix), drafts, now, request_seed=request_seed, hops=hops
    )
    made: dict[int, list[tuple[Series, SeriesImport | CreationRefusal]]] = {}
    for (number, series), (schedule_id, draft), result in zip(wanted, drafts, results, strict=True):
        done: SeriesImport | CreationRefusal
        if isinstance(result, Schedule):
            done = SeriesImport(result, "created")
        elif isinstance(result, Conflict):
            done = _update_existing(manager, schedule_id, draft, now, result, update=asked.update, hops=hops)
        else:
            done = result
        made.setdefault(number, []).append((series, done))
    removed = _delete_removed_series(manager, asked.id_prefix, items, now, kept=ids) if asked.update else {}
    return [
        ImportedItem(item, tuple(made.get(number, ())), tuple(removed.get(number, ())))
        for number, item in enumerate(items)
    ]


def _update_existing(
    manager: ScheduleService,
    schedule_id: str,
    draft: ScheduleDraft,
    now: datetime,
    conflict: Conflict,
    *,
    update: bool,
    hops: int,
) -> SeriesImport | CreationRefusal:
    """Updates or refuses a schedule that an earlier import has made."""
    try:
        if not update:
            existing = manager.get(schedule_id)
            if not manager.would_change(existing, draft, now):
                return SeriesImport(existing, "unchanged")
            return Conflict(
                f"the schedule {name_of(schedule_id)} exists and differs; give update to change it"
            )
        found = manager.edit(schedule_id, draft, now, hops=hops)
        return SeriesImport(found, "changed" if found.updated_at == now else "unchanged")
    except NotFound:
        return conflict
    except (InvalidField, Conflict, QuotaExceeded) as error:
        return error


def _delete_removed_series(
    manager: ScheduleService,
    prefix: WholeId,
    items: Sequence[CalendarItem],
    now: datetime,
    *,
    kept: Collection[str],
) -> dict[int, list[str]]:
    """Deletes the schedules of series that their events have no more, and returns their ids. An event that
    cannot be read keeps what it had."""
    gone: dict[str, int] = {}
    for number, item in enumerate(items):
        if item.outcome == "refused" or not item.uid:
            continue
        made = {_derived_id(prefix, item, item.uid, part): number for part in range(MAX_PARTS)}
        gone |= {schedule_id: number for schedule_id in made if schedule_id not in kept}
    removed: dict[int, list[str]] = {}
    for schedule_id in sorted(manager.living(list(gone))):
        try:
            manager.delete(schedule_id, now)
        except NotFound:
            continue  # another request was quicker
        removed.setdefault(gone[schedule_id], []).append(schedule_id)
    return removed


def _series_draft(draft: ScheduleDraft, series: Series) -> ScheduleDraft:
    return replace(draft, name=series.name, trigger={"rrule": series.recurrence}, timezone=series.timezone)


def _series_id(prefix: WholeId, item: CalendarItem, series: Series) -> WholeId:
    return _derived_id(prefix, item, item.uid or f"{item.name}\n{series.recurrence}", series.part)


def _derived_id(prefix: WholeId, item: CalendarItem, named: str, part: int) -> WholeId:
    digest = hashlib.sha256(f"{item.component}\n{named}\n{part}".encode()).hexdigest()
    return WholeId(f"{prefix}-{digest[:_ID_DIGITS]}")
