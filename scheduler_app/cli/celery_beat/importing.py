"""Each entry becomes a schedule, over the API."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduler_app.cli.celery_beat.entry import (
    DISABLED_NOTE,
    Entry,
    Found,
    NotImportable,
    Refused,
    schedule_id,
    schedule_of,
)
from scheduler_app.client import Json, Schedule, Scheduler, SchedulerError

#: How many coming occurrences a dry run shows.
_SHOWN = 3
#: What the API answers to one entry that it does not take; anything else concerns all of them.
_OF_THE_ENTRY = frozenset((400, 409, 413, 422))


@dataclass(frozen=True, slots=True)
class Taken:
    """What became, or would become, of an entry."""

    name: str
    schedule_id: str
    result: str
    """`created`, `changed`, `unchanged` or `differs`: it exists otherwise, and was not to be changed."""
    trigger: str
    occurrences: tuple[str, ...]
    """The next ones, in a dry run."""
    notes: tuple[str, ...]
    paused: bool


@dataclass(frozen=True, slots=True)
class Importing:
    """How entries are to be imported."""

    scheduler: Scheduler
    broker: str
    id_prefix: str
    update: bool
    dry_run: bool

    def take(self, found: Iterator[Found]) -> Iterator[Taken | Refused]:
        """Imports one after another. Raises SchedulerError where the API refuses more than one entry."""
        seen: set[str] = set()
        for each in found:
            if isinstance(each, Refused):
                yield each
                continue
            given = schedule_id(self.id_prefix, each.name)
            if given in seen:
                yield Refused(each.name, "another entry has the same name; give it one of its own")
                continue
            seen.add(given)
            try:
                yield self._take(given, each)
            except NotImportable as refused:
                yield Refused(each.name, str(refused))
            except SchedulerError as error:
                if error.status not in _OF_THE_ENTRY:
                    raise
                yield Refused(each.name, _reason(error))

    def _take(self, given: str, entry: Entry) -> Taken:
        fields = schedule_of(entry, self.broker)
        if entry.once_after is not None:
            fields = {name: value for name, value in fields.items() if name not in entry.trigger}
            fields["run_at"] = self._once(entry.trigger, entry.once_after)
        planned = self.scheduler.put(given, fields, dry_run=True)
        result = str(planned.result)
        if result == "unchanged" and entry.enabled and _was_disabled(planned):
            # It was disabled when it was imported, and is enabled now. Other pauses are somebody's own.
            fields, result = {**fields, "state": "active"}, "changed"
        if result == "changed" and not self.update:
            result = "differs"
        if not self.dry_run and result in ("created", "changed"):
            self.scheduler.put(given, fields)
        return Taken(
            entry.name,
            given,
            result,
            _shown(planned),
            self._next(fields) if self.dry_run else (),
            entry.notes,
            not entry.enabled,
        )

    def _once(self, trigger: Json, since: datetime) -> str:
        """The time of an entry that runs once: its first occurrence from when it was changed, which is the
        same however often it is imported."""
        occurrences = self._occurrences(trigger, since - timedelta(seconds=1), 1)
        if not occurrences:
            raise NotImportable("it is to run once, and its schedule has no occurrence")
        return occurrences[0]

    def _next(self, fields: Json) -> tuple[str, ...]:
        names = ("cron", "rrule", "every_seconds", "start_at", "run_at", "timezone")
        return self._occurrences({name: fields[name] for name in names if name in fields}, None, _SHOWN)

    def _occurrences(self, trigger: Json, at: datetime | None, limit: int) -> tuple[str, ...]:
        others = {name: value for name, value in trigger.items() if name != "rrule"}
        found = self.scheduler.preview(trigger.get("rrule"), at=at, limit=limit, **others)
        return tuple(str(each["run_time"]) for each in found["occurrences"])


def _reason(error: SchedulerError) -> str:
    """The API's own sentence, and what it says about each field where there are several."""
    if len(error.errors) < 2:
        return error.detail
    return "; ".join(f"{each.get('pointer', '')}: {each.get('detail', '')}" for each in error.errors)


def _was_disabled(schedule: Schedule) -> bool:
    return schedule["state"] == "paused" and schedule.get("note") == DISABLED_NOTE


def _shown(schedule: Schedule) -> str:
    """A trigger on one line."""
    if schedule.get("cron"):
        return f"cron {schedule['cron']} ({schedule['timezone']})"
    if schedule.get("every_seconds"):
        return f"every {schedule['every_seconds']} s"
    if schedule.get("run_at"):
        return f"at {schedule['run_at']}"
    return " ".join(str(schedule.get("rrule") or schedule.get("recurrence")).split())
