"""When a schedule fires, and what that comes to.

The fields of each trigger kind come from the registry of kinds: a new kind needs no row here.
"""

from collections.abc import Callable
from typing import Any

from marshmallow import fields, validate

from api.wire.field_types import Instant
from api.wire.output_schema import OutputSchema
from api.wire.schedule_fields.field import AnyField, ScheduleField, Show
from scheduler_app.domain.triggers import FIELDS, KINDS, FieldType, TriggerField

MAX_TIMEZONE = 64


class NextRunOutput(OutputSchema):
    """The next occurrence of a schedule that is active."""

    time = Instant(required=True)


def _text_input(field: TriggerField) -> AnyField:
    checks: list[Callable[[str], object]] = [validate.Length(min=1, max=field.max_length)]
    if field.choices:
        checks = [validate.OneOf(field.choices)]
    return fields.String(validate=checks, allow_none=True)


def _whole_input(field: TriggerField) -> AnyField:
    return fields.Integer(strict=True, validate=validate.Range(field.minimum, field.maximum), allow_none=True)


_INPUTS: dict[FieldType, Callable[[TriggerField], AnyField]] = {
    FieldType.TEXT: _text_input,
    FieldType.WHOLE: _whole_input,
    FieldType.TRUE: lambda field: fields.Boolean(truthy={True}, falsy={False}, allow_none=True),
    FieldType.TIME: lambda field: Instant(allow_none=True),
}
_OUTPUTS: dict[FieldType, Callable[[], AnyField]] = {
    FieldType.TEXT: fields.String,
    FieldType.WHOLE: fields.Integer,
    FieldType.TRUE: fields.Boolean,
    FieldType.TIME: Instant,
}


def _input(field: TriggerField) -> AnyField:
    made = _INPUTS[field.type](field)
    made.metadata = {"example": field.example}
    return made


def _written(name: str) -> Show:
    return lambda it: getattr(it.schedule.timing, name)  # transitional


def _portable(name: str) -> Show:
    if name == "rrule":
        return lambda it: it.schedule.timing.portable(it.schedule.created_at)
    return lambda it: it.schedule.timing.run_at


def _kind_rows() -> tuple[ScheduleField, ...]:
    """A row for each field of each trigger kind, in the registry's order."""
    return tuple(
        ScheduleField(
            name=field.name,
            meaning=field.description,
            default="one of these is required" if field.name in {kind.name for kind in KINDS} else None,
            input=_input(field),
            preview=_input(field) if field.name == "rrule" else None,
            output=_OUTPUTS[field.type](),
            shown=_written(field.name),
            exported=_portable(field.name),
            shown_meaning=f"As it was written: {field.description[0].lower()}{field.description[1:]}",
        )
        for field in FIELDS.values()
    )


def _choice(*words: str, **options: Any) -> AnyField:
    return fields.String(validate=validate.OneOf(words), **options)


def _timezone(**options: Any) -> AnyField:
    return fields.String(
        validate=validate.Length(min=1, max=MAX_TIMEZONE), metadata={"example": "Europe/Zurich"}, **options
    )


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
        preview=_timezone(load_default="UTC"),
        output=fields.String(),
        shown=lambda it: it.schedule.timing.timezone,
        aliases="tz time_zone zone",
    ),
    ScheduleField(
        name="gap",
        meaning="What happens to a local time that a clock change leaves out: `shift` fires later by the"
        " gap's length, `skip` does not fire",
        default="`shift`",
        input=_choice("shift", "skip"),
        preview=_choice("shift", "skip", load_default="shift"),
        output=fields.String(),
        shown=lambda it: it.schedule.timing.gap,
    ),
    ScheduleField(
        name="overlap",
        meaning="Which of the two a local time means that a clock change repeats: the `first` or the `last`",
        default="`first`",
        input=_choice("first", "last"),
        preview=_choice("first", "last", load_default="first"),
        output=fields.String(),
        shown=lambda it: it.schedule.timing.overlap,
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
