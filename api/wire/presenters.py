"""Schedules and recurrences as answers and exports show them."""

from datetime import UTC, datetime

from api.json_types import View
from api.wire.schedule_fields import SCHEDULE_FIELDS, ScheduleField, ShownSchedule
from scheduler_app.domain.local_time import local_in
from scheduler_app.domain.recurrence import AnyRecurrence, Occurrence, Recurrence
from scheduler_app.domain.schedule import TICK, Schedule, ScheduleState
from scheduler_app.domain.triggers import Trigger
from scheduler_app.store import SecretBox
from scheduler_app.store.events.record import EventRecord
from scheduler_app.store.schedules.corrupt import CorruptSchedule

#: Later occurrences are not looked for: Python's calendar ends with this year.
END = datetime(9999, 12, 31, tzinfo=UTC)

_SHOWN = tuple((row.name, row.shown) for row in SCHEDULE_FIELDS if row.shown and row.output)


def shown(schedule: Schedule | CorruptSchedule, now: datetime) -> View:
    """The fields of ScheduleOutput without those that have no value. For a document that cannot be read, its
    id and the reason."""
    if isinstance(schedule, CorruptSchedule):
        return {"id": schedule.schedule_id, "state": ScheduleState.ERROR.value, "reason": schedule.reason}
    source = ShownSchedule(schedule, now)
    values = ((name, show(source)) for name, show in _SHOWN)
    return {name: value for name, value in values if value is not None}


def exported(schedule: Schedule | CorruptSchedule, now: datetime, secret_box: SecretBox) -> View:
    """The body with which POST creates the schedule again, without fields that have no value or an empty one.

    Values are masked; `sealed` holds them, encrypted with the key of `secret_box`. For a document that cannot
    be read, its id and the reason: no API takes that for a schedule, and nothing is left out silently.
    """
    if isinstance(schedule, CorruptSchedule):
        return {"id": schedule.schedule_id, "reason": schedule.reason}
    source = ShownSchedule(schedule, now, secret_box)
    values = ((row.name, _exported(row, source)) for row in SCHEDULE_FIELDS if row.input)
    return {name: value for name, value in values if value not in (None, [], {})}


def _exported(row: ScheduleField, source: ShownSchedule) -> object:
    """The value as JSON has it."""
    show = row.exported or row.shown
    value = show(source) if show else None
    if value is None or row.output is None:
        return value
    return row.output._serialize(value, row.name, source)


def previewed(trigger: Trigger, recurrence: AnyRecurrence, after: datetime, query: View) -> View:
    """The fields of PreviewOutput: occurrences of `recurrence`, which is the trigger's, after `after`, as
    many and in the zone that the PreviewQuery `query` says. Raises InvalidRecurrence when it takes too long
    to tell."""
    # `until` is included.
    end = min(query.get("until", END), END - TICK) + TICK
    found = recurrence.occurrences(after + TICK, end, query["limit"]) if after < end else []
    zone = query.get("display_timezone")
    view: View = {
        "trigger": dict(trigger.written),
        "occurrences": [
            {"run_time": each.instant, "local": _local(each, zone), "dst": each.dst} for each in found
        ],
        "warnings": [*trigger.warnings, *recurrence.warnings],
        "description": recurrence.description,
    }
    return view | ({"recurrence": recurrence.text} if isinstance(recurrence, Recurrence) else {})


def _local(occurrence: Occurrence, timezone: str | None) -> str:
    local = occurrence.local if timezone is None else local_in(occurrence.instant, timezone)
    return local.isoformat()


def time_shown(instant: datetime, timezone: str) -> View:
    """An instant as an occurrence is shown, with its local time in an IANA zone."""
    return {"run_time": instant, "local": local_in(instant, timezone).isoformat(), "dst": None}


def event_shown(event: EventRecord) -> View:
    """The fields of EventOutput without those that have no value."""
    view = event._asdict()
    view["_id"] = view.pop("id")
    return {name: value for name, value in view.items() if value is not None}
