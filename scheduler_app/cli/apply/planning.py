"""What applying would change: fields, and the occurrences of the next 30 days that are added, removed or
moved. Previews of the API tell the occurrences.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from scheduler_app.cli.apply.files import ApplyItem
from scheduler_app.cli.client_options import is_refusal
from scheduler_app.client import TRIGGERS, Json, Scheduler, SchedulerError, TriggerFields


class ResourceKind:
    """What of one kind is on the server."""

    def __init__(self, scheduler: Scheduler, kind: str) -> None:
        """`kind` is one of the keys of the files."""
        calls: dict[str, tuple[Callable[[str], Mapping[str, Any]], Callable[..., Mapping[str, Any]]]] = {
            "calendars": (scheduler.calendars.get, scheduler.calendars.put),
            "destinations": (scheduler.destinations.get, _put_destination(scheduler)),
            "blackouts": (scheduler.get_blackout, scheduler.put_blackout),
            "notifications": (scheduler.get_notification, scheduler.put_notification),
            "schedules": (scheduler.get, scheduler.put),
        }
        self._get, self._put = calls[kind]

    def find(self, name: str) -> Mapping[str, Any] | None:
        """None if it does not exist. Raises SchedulerError."""
        try:
            return self._get(name)
        except SchedulerError as error:
            if error.status == 404:
                return None
            raise

    def put(self, name: str, fields: Mapping[str, Any], *, dry_run: bool = False) -> Mapping[str, Any]:
        """Creates or changes one; `result` says which. Raises SchedulerError."""
        return self._put(name, fields, dry_run=dry_run)


def _put_destination(scheduler: Scheduler) -> Callable[..., Mapping[str, Any]]:
    def put(name: str, fields: Mapping[str, Any], *, dry_run: bool) -> Mapping[str, Any]:
        if wrong := {"dry_run", "self"} & fields.keys():
            # As the API says it of a field that it does not know; these are words of the method.
            raise SchedulerError(f"{min(wrong)}: Unknown field", status=422)
        return scheduler.destinations.put(name, dry_run=dry_run, **fields)

    return put


#: Fields of a schedule that say when it runs.
TRIGGER_FIELDS: Final = tuple(TriggerFields.__annotations__)


def trigger_of(schedule: Mapping[str, Any]) -> Json:
    """What a preview needs of a schedule as the API shows it: the recurrence that its trigger has become, by
    which intervals and phrases are counted from the time that they were given."""
    beside = {name: schedule[name] for name in ("timezone", "gap", "overlap") if name in schedule}
    closed = {name: schedule[name] for name in ("calendar", "on_holiday") if schedule.get(name) is not None}
    if schedule.get("recurrence"):
        return {"rrule": schedule["recurrence"]} | beside | closed
    given = {name: schedule[name] for name in TRIGGER_FIELDS if schedule.get(name) is not None}
    if "delay_seconds" in given:
        return {"run_at": schedule["next_run_at"]} if schedule.get("next_run_at") else {}
    return given | beside | closed


def upcoming(
    scheduler: Scheduler,
    schedule: Mapping[str, Any],
    limit: int,
    *,
    after: datetime | str | None = None,
    until: datetime | str | None = None,
) -> Sequence[Json]:
    """The occurrences of a schedule after `after` (default: now), none after `until`."""
    fields = trigger_of(schedule)
    if not any(name in fields for name in TRIGGERS) or "on_demand" in fields:
        return []
    found = scheduler.preview(fields.pop("rrule", None), after=after, until=until, limit=limit, **fields)
    return [dict(each) for each in found["occurrences"]]


#: Of a schedule, the most occurrences that are compared.
MAX_COMPARED = 1_000


@dataclass(frozen=True, slots=True)
class OccurrenceDifference:
    """Occurrences by their local times."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()
    """From, to: the only one of its local day that is gone, and the only one that has come."""
    cut_short: bool = False
    """There are more than `MOST`: only the days that the first of them fill were compared."""


def compare_occurrences(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> OccurrenceDifference:
    """Compares occurrences by their instants. Where a list is full, only the days before its last one are
    compared: what is not in the rest of that day may have moved within it."""
    old, new = _by_time(before), _by_time(after)
    full = [times[max(times)][:10] for times in (old, new) if len(times) >= MAX_COMPARED]
    if full:
        day = min(full)
        old = {time: local for time, local in old.items() if local[:10] < day}
        new = {time: local for time, local in new.items() if local[:10] < day}
    gone = [old[time] for time in sorted(old.keys() - new.keys())]
    come = [new[time] for time in sorted(new.keys() - old.keys())]
    gone_days, come_days = _by_day(gone), _by_day(come)
    moved = tuple(
        (times[0], come_days[day][0])
        for day, times in gone_days.items()
        if len(times) == len(come_days.get(day, ())) == 1
    )
    left, reached = {pair[0] for pair in moved}, {pair[1] for pair in moved}
    return OccurrenceDifference(
        added=tuple(each for each in come if each not in reached),
        removed=tuple(each for each in gone if each not in left),
        moved=moved,
        cut_short=bool(full),
    )


def _by_time(occurrences: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Local times by run times, which the API writes so that they sort as text."""
    return {str(each["run_time"]): str(each["local"]) for each in occurrences}


def _by_day(locals_: Iterable[str]) -> dict[str, list[str]]:
    days: dict[str, list[str]] = {}
    for local in locals_:
        days.setdefault(local[:10], []).append(local)
    return days


AHEAD: Final = timedelta(days=30)
#: Fields on which the occurrences depend.
_TIMING_FIELDS: Final = (*TRIGGER_FIELDS, "recurrence", "calendar", "on_holiday", "state")
#: Fields that follow from others, or from what happens.
_DERIVED_FIELDS: Final = {
    *("version", "revision", "updated_at", "created_at", "result", "message", "dry_run", "last_run"),
    *("next_run_at", "next_run", "warnings", "dtstart", "description", "recurrence", "reason"),
    *("window", "is_on"),
    *("signing_secret", "signing_since", "signing_overlap_until", "flow", "remade"),
}
#: Fields by which a schedule or a notification names what the same files may create before it.
_REFERENCE_KINDS: Final = {
    "/calendar": "calendars",
    "/hours/calendar": "calendars",
    "/destination": "destinations",
}


#: What a refusal calls the limit of how many schedules a tenant may have.
SCHEDULES_LIMIT: Final = "schedules"


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What becomes of one item: `created`, `changed`, `unchanged`, `deleted` or `refused`."""

    item: ApplyItem
    result: str
    fields: Mapping[str, tuple[Any, Any]] = field(default_factory=dict, repr=False)
    """The fields that differ, before and after, as answers show them."""
    occurrences: OccurrenceDifference = field(default_factory=OccurrenceDifference)
    reason: str | None = None
    """Why it is refused, or what could not be found out."""

    @property
    def changes(self) -> bool:
        return self.result in ("created", "changed", "deleted")


def plan(
    scheduler: Scheduler,
    items: Sequence[ApplyItem],
    now: datetime,
    leaving: Sequence[Mapping[str, Any]] = (),
) -> Iterator[PlannedChange]:
    """What applying each item, and deleting the schedules that are `leaving`, would do; it changes nothing.
    An item that is refused harms only itself. Raises SchedulerError where the API does not answer."""
    coming: set[tuple[str, Any]] = set()
    room = iter(leaving)
    for item in items:
        step = _plan_item(scheduler, item, now, coming, room)
        if step.result == "created":
            coming.add((item.kind, item.name))
        yield step
    yield from _deletions(scheduler, leaving, now)


def _deletions(
    scheduler: Scheduler, schedules: Iterable[Mapping[str, Any]], now: datetime
) -> Iterator[PlannedChange]:
    """What deleting these schedules would do."""
    for schedule in schedules:
        lost = _occurrences(scheduler, schedule, now)
        item = ApplyItem("schedules", str(schedule["id"]), {}, "")
        yield PlannedChange(item, "deleted", occurrences=compare_occurrences(lost, ()))


def _plan_item(
    scheduler: Scheduler,
    item: ApplyItem,
    now: datetime,
    coming: set[tuple[str, Any]],
    room: Iterator[Mapping[str, Any]],
) -> PlannedChange:
    of_kind = ResourceKind(scheduler, item.kind)
    before = of_kind.find(item.name)
    try:
        after = of_kind.put(item.name, item.fields, dry_run=True)
    except SchedulerError as error:
        if not is_refusal(error):
            raise
        if before is None and _waits_for_earlier_item(item, error, coming):
            return PlannedChange(item, "created", reason="checked once what it names has been created")
        if error.limit == SCHEDULES_LIMIT and next(room, None) is not None:
            return PlannedChange(item, "created", reason="once a deletion has made room for it")
        return PlannedChange(item, "refused", reason=error.detail)
    result = str(after["result"])
    if result == "unchanged":
        return PlannedChange(item, result)
    changed = {} if before is None else dict(_changed_fields(before, after))
    return PlannedChange(item, result, changed, _occurrence_changes(scheduler, item, before, after, now))


def _occurrence_changes(
    scheduler: Scheduler,
    item: ApplyItem,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any],
    now: datetime,
) -> OccurrenceDifference:
    if item.kind != "schedules":
        return OccurrenceDifference()
    if before is not None and all(before.get(name) == after.get(name) for name in _TIMING_FIELDS):
        return OccurrenceDifference()
    old = [] if before is None else _occurrences(scheduler, before, now)
    return compare_occurrences(old, _occurrences(scheduler, after, now))


def _waits_for_earlier_item(item: ApplyItem, error: SchedulerError, coming: set[tuple[str, Any]]) -> bool:
    """Whether it is refused only for what the same files create before it."""
    pointers = {str(each.get("pointer")) for each in error.errors}
    named = [(_REFERENCE_KINDS.get(pointer), _at(item.fields, pointer)) for pointer in pointers]
    # Any other field may hold a list or an object.
    return bool(named) and all(isinstance(name, str) and (kind, name) in coming for kind, name in named)


def _at(value: Any, pointer: str) -> Any:
    """What a JSON pointer leads to; None where nothing is there."""
    for name in pointer.split("/")[1:]:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _changed_fields(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[tuple[str, tuple[Any, Any]]]:
    for name in sorted({*before, *after} - _DERIVED_FIELDS):
        if before.get(name) != after.get(name):
            yield name, (before.get(name), after.get(name))


def _occurrences(scheduler: Scheduler, schedule: Mapping[str, Any], now: datetime) -> Sequence[Json]:
    """Those up to the end of the last day: an occurrence that only moves within it is on both sides."""
    if schedule.get("state") != "active":
        return []
    end = now + AHEAD
    # Wherever the schedule is, its day of that date ends before the day after tomorrow's does here.
    found = upcoming(scheduler, schedule, MAX_COMPARED, after=now, until=end + timedelta(days=2))
    if len(found) >= MAX_COMPARED and str(found[-1]["local"])[:10] <= f"{end:%Y-%m-%d}":
        return found
    return [each for each in found if str(each["local"])[:10] <= f"{end:%Y-%m-%d}"]
