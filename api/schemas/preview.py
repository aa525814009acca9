"""A rule tried out before, or after, it is saved."""

from marshmallow import fields, validate

from api import trigger_fields
from api.fields import Instant
from api.schemas.common import MAX_LIMIT, Output, Sparse, Strict
from api.schemas.schedule_input import (
    calendar_field,
    gap_field,
    on_holiday_field,
    overlap_field,
    timezone_field,
)


class PreviewQuery(Strict):
    """Which occurrences of a saved schedule's rule."""

    after = Instant(metadata={"description": "The first one shown comes after this instant; now by default"})
    limit = fields.Integer(
        load_default=10,
        validate=validate.Range(1, MAX_LIMIT),
        metadata={"description": "How many at most"},
    )


class PreviewInput(PreviewQuery):
    """A trigger that is not saved, and which of its occurrences."""

    class Meta(PreviewQuery.Meta):
        include = trigger_fields.inputs()

    at = Instant(
        metadata={
            "description": "The instant at which it is given: delays, intervals and a missing DTSTART count"
            " from it; now by default"
        }
    )
    timezone = timezone_field()
    gap = gap_field()
    overlap = overlap_field()
    calendar = calendar_field()
    on_holiday = on_holiday_field()


class OccurrenceOutput(Sparse):
    """An instant of a rule; `dst` is absent where no clock change has a say."""

    run_time = Instant(required=True)
    local = fields.String(
        required=True,
        metadata={
            "description": "The same instant on the wall clock of the rule's zone, with its offset",
            "example": "2026-10-25T02:30:00+02:00",
        },
    )
    dst = fields.String(
        validate=validate.OneOf(["gap_shifted", "overlap_first", "overlap_last"]),
        metadata={
            "description": "What a clock change did: a local time that does not exist fires later by the"
            " gap's length; one that exists twice fires the first or the last time. Absent otherwise."
        },
    )
    rolled_from = fields.String(
        metadata={
            "description": "The local time from which a closed day of the calendar moved it",
            "example": "2026-12-25T09:00:00+01:00",
        }
    )
    reason = fields.String(
        metadata={"description": "Why: the holiday, or the weekend day", "example": "Christmas Day"}
    )


class SkippedOutput(Sparse):
    """A time at which nothing fires, because the calendar is closed."""

    local = fields.String(required=True, metadata={"example": "2026-12-25T09:00:00+01:00"})
    reason = fields.String(required=True, metadata={"example": "Christmas Day"})


class PreviewOutput(Output):
    """What a rule comes to."""

    occurrences = fields.List(fields.Nested(OccurrenceOutput), required=True)
    skipped = fields.List(
        fields.Nested(SkippedOutput),
        metadata={"description": "What the calendar takes away among these occurrences; absent for nothing"},
    )
    warnings = fields.List(
        fields.String(),
        required=True,
        metadata={"description": "What may surprise who wrote the rule"},
    )
    description = fields.String(metadata={"description": "What the rule says, in words"})
    recurrence = fields.String(metadata={"description": "The recurrence, with its DTSTART made explicit"})
    trigger = fields.Dict(
        keys=fields.String(),
        metadata={"description": "The trigger as it was written", "example": {"rrule": "FREQ=DAILY"}},
    )
