"""Schedules and events as answers and exports show them."""

from datetime import datetime

from scheduler_app.api.json_types import View
from scheduler_app.api.wire.schedule_fields import SCHEDULE_FIELDS, ScheduleField, ShownSchedule
from scheduler_app.domain.local_time import local_in
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store import SecretBox
from scheduler_app.store.events.record import EventRecord
from scheduler_app.store.schedules.corrupt import CorruptSchedule

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


def time_shown(instant: datetime, timezone: str) -> View:
    """An instant as an occurrence is shown, with its local time in an IANA zone."""
    return {"run_time": instant, "local": local_in(instant, timezone).isoformat(), "dst": None}


def event_shown(event: EventRecord) -> View:
    """The fields of EventOutput without those that have no value."""
    view = event._asdict()
    view["_id"] = view.pop("id")
    view["schedule_id"] = event.schedule_id or None
    return {name: value for name, value in view.items() if value is not None}
