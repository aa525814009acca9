"""When a schedule fires, and what that comes to."""

from marshmallow import fields, validate

from api.wire.field_types import Instant
from api.wire.output_schema import OutputSchema
from api.wire.schedule_fields.field import AnyField, ScheduleField

MAX_RULE = 64 * 1024


class NextRunOutput(OutputSchema):
    """The next occurrence of a schedule that is active."""

    time = Instant(required=True)


def _text(length: int, example: str, **options: object) -> fields.String:
    return fields.String(
        validate=validate.Length(min=1, max=length), metadata={"example": example}, **options  # type: ignore[arg-type]
    )


def _one_of(*words: str, default: object = None) -> AnyField:
    return fields.String(validate=validate.OneOf(words), load_default=default)


TRIGGER = (
    ScheduleField(
        name="rrule",
        meaning="An RFC 5545 rule: `FREQ=…` alone, or DTSTART, RRULE, RDATE, EXDATE and EXRULE lines",
        input=_text(MAX_RULE, "FREQ=DAILY;INTERVAL=1", allow_none=True),
        preview=_text(MAX_RULE, "FREQ=DAILY;INTERVAL=1", required=True),
        output=fields.String(),
        shown=lambda it: it.schedule.timing.rrule,
        # With the DTSTART made explicit it fires at the same instants wherever it is imported.
        exported=lambda it: it.schedule.timing.portable(it.schedule.created_at),
        shown_meaning="The rule as it was written",
        aliases="cron cron_expression crontab schedule rule frequency phrase",
    ),
    ScheduleField(
        name="recurrence",
        meaning="The rule with its DTSTART made explicit",
        output=fields.String(),
        shown=lambda it: it.facts.text,
    ),
    ScheduleField(
        name="dtstart",
        meaning="The first instant that the rule counts from",
        output=Instant(),
        shown=lambda it: it.facts.dtstart,
    ),
    ScheduleField(
        name="run_at",
        meaning="A single instant with an offset, instead of a rule; milliseconds count",
        input=Instant(allow_none=True),
        output=Instant(),
        shown=lambda it: it.schedule.timing.run_at,
    ),
)
