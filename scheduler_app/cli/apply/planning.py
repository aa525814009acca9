"""What applying would change: fields, and occurrences of the next 30 days."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from scheduler_app.cli.apply.files import Item
from scheduler_app.cli.apply.kinds import OfKind
from scheduler_app.cli.apply.occurrences import MOST, Difference, difference
from scheduler_app.cli.stored_triggers import TRIGGER_FIELDS, upcoming
from scheduler_app.client import Json, Scheduler, SchedulerError

AHEAD: Final = timedelta(days=30)
#: Fields on which the occurrences depend.
_TIMING: Final = (*TRIGGER_FIELDS, "recurrence", "calendar", "on_holiday", "state")
#: Fields that follow from others, or from what happens.
_FOLLOWING: Final = {
    *("version", "revision", "updated_at", "created_at", "result", "message", "dry_run", "last_run"),
    *("next_run_at", "next_run", "warnings", "dtstart", "description", "recurrence", "reason"),
    *("window", "is_on"),
    *("signing_secret", "signing_since", "signing_overlap_until", "flow", "remade"),
}
#: Fields by which a schedule names what the same files may create before it.
_NAMES: Final = {"/calendar": "calendars", "/destination": "destinations"}


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of one item: `created`, `changed`, `unchanged`, `deleted` or `refused`."""

    item: Item
    result: str
    fields: Mapping[str, tuple[Any, Any]] = field(default_factory=dict, repr=False)
    """The fields that differ, before and after, as answers show them."""
    occurrences: Difference = field(default_factory=Difference)
    reason: str | None = None
    """Why it is refused, or what could not be found out."""

    @property
    def changes(self) -> bool:
        return self.result in ("created", "changed", "deleted")


def plan(scheduler: Scheduler, items: Sequence[Item], now: datetime) -> Iterator[Step]:
    """What applying each item would do; it changes nothing. An item that is refused harms only itself.
    Raises SchedulerError where the API does not answer."""
    coming: set[tuple[str, Any]] = set()
    for item in items:
        step = _planned(scheduler, item, now, coming)
        if step.result == "created":
            coming.add((item.kind, item.name))
        yield step


def deletions(scheduler: Scheduler, schedules: Iterable[Mapping[str, Any]], now: datetime) -> Iterator[Step]:
    """What deleting these schedules would do."""
    for schedule in schedules:
        lost = _occurrences(scheduler, schedule, now)
        item = Item("schedules", str(schedule["id"]), {}, "")
        yield Step(item, "deleted", occurrences=difference(lost, ()))


def _planned(scheduler: Scheduler, item: Item, now: datetime, coming: set[tuple[str, Any]]) -> Step:
    of_kind = OfKind(scheduler, item.kind)
    before = of_kind.find(item.name)
    try:
        after = of_kind.put(item.name, item.fields, dry_run=True)
    except SchedulerError as error:
        if error.status is None or error.status >= 500:
            raise
        if before is None and _awaits(item, error, coming):
            return Step(item, "created", reason="checked once what it names has been created")
        return Step(item, "refused", reason=error.detail)
    result = str(after["result"])
    if result == "unchanged":
        return Step(item, result)
    changed = {} if before is None else dict(_changed_fields(before, after))
    return Step(item, result, changed, _moved(scheduler, item, before, after, now))


def _moved(
    scheduler: Scheduler,
    item: Item,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any],
    now: datetime,
) -> Difference:
    if item.kind != "schedules":
        return Difference()
    if before is not None and all(before.get(name) == after.get(name) for name in _TIMING):
        return Difference()
    old = [] if before is None else _occurrences(scheduler, before, now)
    return difference(old, _occurrences(scheduler, after, now))


def _awaits(item: Item, error: SchedulerError, coming: set[tuple[str, Any]]) -> bool:
    """Whether it is refused only for what the same files create before it."""
    pointers = {str(each.get("pointer")) for each in error.errors}
    named = [(_NAMES.get(pointer), item.fields.get(pointer.lstrip("/"))) for pointer in pointers]
    # Any other field may hold a list or an object.
    return bool(named) and all(isinstance(name, str) and (kind, name) in coming for kind, name in named)


def _changed_fields(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[tuple[str, tuple[Any, Any]]]:
    for name in sorted({*before, *after} - _FOLLOWING):
        if before.get(name) != after.get(name):
            yield name, (before.get(name), after.get(name))


def _occurrences(scheduler: Scheduler, schedule: Mapping[str, Any], now: datetime) -> Sequence[Json]:
    """Those up to the end of the last day: an occurrence that only moves within it is on both sides."""
    if schedule.get("state") != "active":
        return []
    end = now + AHEAD
    # Wherever the schedule is, its day of that date ends before the day after tomorrow's does here.
    found = upcoming(scheduler, schedule, MOST, after=now, until=end + timedelta(days=2))
    if len(found) >= MOST and str(found[-1]["local"])[:10] <= f"{end:%Y-%m-%d}":
        return found
    return [each for each in found if str(each["local"])[:10] <= f"{end:%Y-%m-%d}"]
