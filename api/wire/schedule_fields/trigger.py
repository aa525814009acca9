"""When a schedule fires, how far its callbacks are spread, and what that comes to.

The fields of each trigger kind come from the registry of kinds: a new kind needs no row here.
"""

from collections.abc import Callable
from typing import get_args

from marshmallow import fields, validate

from scheduler_app.api.wire.field_types import CalendarName, Instant, LocalOrInstant
from scheduler_app.api.wire.output_schema import OutputSchema
from scheduler_app.api.wire.schedule_fields.field import AnyField, ScheduleField, Show
from scheduler_app.domain.event import MAX_JITTER_SECONDS, due
from scheduler_app.domain.recurrence import OnHoliday
from scheduler_app.domain.triggers import BY_NAME, FIELDS, FieldType, TriggerField
from scheduler_app.json_boolean import JsonBoolean

MAX_TIMEZONE = 64


class NextRunOutput(OutputSchema):
    """The next occurrence of a schedule that is active."""

    time = Instant(required=True)


def _text_input(field: TriggerField) -> AnyField:
    check = validate.OneOf(field.choices) if field.choices else validate.Length(min=1, max=field.max_length)
    return fields.String(validate=check, allow_none=True)


def _whole_input(field: TriggerField) -> AnyField:
    return fields.Integer(strict=True, validate=validate.Range(field.minimum, field.maximum), allow_none=True)


def _true_input(field: TriggerField) -> AnyField:
    # The kind refuses `false`: generators of clients do not understand an enumeration of booleans.
    return JsonBoolean(allow_none=True)


#: How a request gives the fields of trigger kinds; null takes one away.
_INPUTS: dict[FieldType, Callable[[TriggerField], AnyField]] = {
    FieldType.TEXT: _text_input,
    FieldType.WHOLE: _whole_input,
    FieldType.TRUE: _true_input,
    FieldType.TIME: lambda field: LocalOrInstant(allow_none=True),
}
_OUTPUTS: dict[FieldType, Callable[[], AnyField]] = {
    FieldType.TEXT: fields.String,
    FieldType.WHOLE: fields.Integer,
    FieldType.TRUE: fields.Boolean,
    FieldType.TIME: LocalOrInstant,
}


def _input(field: TriggerField) -> AnyField:
    made = _INPUTS[field.type](field)
    made.metadata = {"example": field.example}
    return made


def _written(name: str) -> Show:
    return lambda it: it.schedule.trigger.written.get(name)


def _portable(name: str) -> Show:
    return lambda it: it.portable_trigger.get(name)


def _kind_rows() -> tuple[ScheduleField, ...]:
    """A row for each field of each trigger kind, in the registry's order."""
    return tuple(
        ScheduleField(
            name=field.name,
            meaning=field.description,
            default="exactly one required" if field.name in BY_NAME else None,
            input=_input(field),
            preview=_input(field),
            output=_OUTPUTS[field.type](),
            draft="trigger",
            shown=_written(field.name),
            exported=_portable(field.name),
            shown_meaning=f"{field.description}, as it was written",
        )
        for field in FIELDS.values()
    )


def _choice(*words: str) -> AnyField:
    return fields.String(validate=validate.OneOf(words))


def _timezone() -> AnyField:
    return fields.String(
        validate=validate.Length(min=1, max=MAX_TIMEZONE), metadata={"example": "Europe/Zurich"}
    )


def _calendar_name(*, allow_none: bool = False) -> AnyField:
    return CalendarName(allow_none=allow_none, metadata={"example": "zurich"})


TRIGGER = (
    *_kind_rows(),
    ScheduleField(
        name="recurrence",
        meaning="The trigger as an RFC 5545 recurrence with its DTSTART made explicit",
        output=fields.String(),
        shown=lambda it: it.facts.text,
    ),
    ScheduleField(
        name="dtstart",
        meaning="The instant from which the recurrence counts",
        output=Instant(),
        shown=lambda it: it.facts.dtstart,
    ),
    ScheduleField(
        name="timezone",
        meaning="The IANA zone in which times without a zone or an offset are read",
        default="`UTC`",
        input=_timezone(),
        preview=_timezone(),
        output=fields.String(),
        shown=lambda it: it.schedule.trigger.timezone,
        aliases="tz time_zone zone",
    ),
    ScheduleField(
        name="gap",
        meaning="What happens to a local time that a clock change leaves out: `shift` fires later by the"
        " gap's length, `skip` does not fire",
        default="`shift`",
        input=_choice("shift", "skip"),
        preview=_choice("shift", "skip"),
        output=fields.String(),
        shown=lambda it: it.schedule.trigger.gap,
    ),
    ScheduleField(
        name="overlap",
        meaning="Which of the two a local time means that a clock change repeats: the `first` or the `last`",
        default="`first`",
        input=_choice("first", "last"),
        preview=_choice("first", "last"),
        output=fields.String(),
        shown=lambda it: it.schedule.trigger.overlap,
    ),
    ScheduleField(
        name="calendar",
        meaning="The name of a calendar, whose holidays and weekend days the trigger observes",
        input=_calendar_name(allow_none=True),
        creation=_calendar_name(),
        preview=_calendar_name(),
        output=fields.String(),
        shown=lambda it: it.schedule.calendar and it.schedule.calendar.name,
        aliases="holidays holiday_calendar business_days",
    ),
    ScheduleField(
        name="on_holiday",
        meaning="What an occurrence on a closed day of the calendar does: it is left out (`skip`), or moves"
        " to the `next` or the `previous` open day at the same time of day, or BYSETPOS and COUNT count open"
        " days alone (`uncounted`)",
        default="as the phrase says; else `skip`",
        input=_choice(*get_args(OnHoliday)),
        preview=_choice(*get_args(OnHoliday)),
        output=fields.String(),
        shown=lambda it: it.schedule.calendar and it.schedule.calendar.on_holiday,
    ),
    ScheduleField(
        name="description",
        meaning="What the trigger says, in words",
        output=fields.String(),
        shown=lambda it: it.facts.description,
    ),
    ScheduleField(
        name="next_run_at",
        meaning="The next occurrence of an active schedule",
        output=Instant(),
        shown=lambda it: it.facts.next_run_at,
    ),
    ScheduleField(
        name="next_run",
        meaning="The next occurrence of an active schedule",
        output=fields.Nested(NextRunOutput),
        shown=lambda it: {"time": it.facts.next_run_at} if it.facts.next_run_at else None,
    ),
    ScheduleField(
        name="warnings",
        meaning="What may surprise the person who wrote the trigger",
        output=fields.List(fields.String()),
        shown=lambda it: it.facts.warnings,
    ),
)


def _seconds() -> fields.Float:
    return fields.Float(validate=validate.Range(0, MAX_JITTER_SECONDS))


JITTER = (
    ScheduleField(
        name="jitter_seconds",
        meaning="Each callback falls due up to this many seconds after its occurrence, by a hash of the"
        " schedule's id and the instant: the same whenever it is asked, and another for each schedule",
        default="0",
        input=_seconds(),
        preview=_seconds(),
        output=fields.Float(),
        shown=lambda it: it.schedule.jitter_seconds,
        aliases="jitter spread splay random_delay randomized_delay",
    ),
    ScheduleField(
        name="next_due_at",
        meaning="When the callback of `next_run_at` falls due; only of a schedule with jitter",
        output=Instant(),
        shown=lambda it: (
            due(it.schedule.id, it.facts.next_run_at, it.schedule.jitter_seconds)
            if it.schedule.jitter_seconds and it.facts.next_run_at
            else None
        ),
    ),
)
