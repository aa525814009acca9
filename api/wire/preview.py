"""Previews: when a trigger fires, before or after it is saved."""

from marshmallow import fields, validate

from api.wire.field_types import Instant
from api.wire.input_schema import InputSchema
from api.wire.output_schema import OmitNone, OutputSchema
from api.wire.paging import MAX_LIMIT
from api.wire.schedule_fields import PREVIEW_FIELDS, TRIGGER_OUTPUT_FIELDS


class PreviewQuery(InputSchema):
    """Which occurrences to show."""

    after = Instant(
        metadata={"description": "The first occurrence shown comes after this instant; default: now"}
    )
    limit = fields.Integer(
        load_default=10,
        validate=validate.Range(1, MAX_LIMIT),
        metadata={"description": "How many at most"},
    )


class PreviewInput(PreviewQuery):
    """A trigger that is not saved, and which of its occurrences."""

    class Meta(PreviewQuery.Meta):
        include = PREVIEW_FIELDS

    at = Instant(
        metadata={
            "description": "The instant at which the trigger is given: delays, intervals and a missing"
            " DTSTART count from it; default: now"
        }
    )


class OccurrenceOutput(OmitNone):
    """One occurrence."""

    run_time = Instant(required=True, metadata={"description": "The instant, in UTC"})
    local = fields.String(
        required=True,
        metadata={
            "description": "The same instant in the trigger's zone, with its offset",
            "example": "2026-10-25T02:30:00+02:00",
        },
    )
    dst = fields.String(
        validate=validate.OneOf(["gap_shifted", "overlap_first", "overlap_last"]),
        metadata={
            "description": "What a clock change did: a local time that does not exist fires later by the"
            " gap's length, one that exists twice fires the first or the last time. Absent otherwise"
        },
    )
    rolled_from = fields.String(
        metadata={
            "description": "The local time from which a closed day of the calendar moved it",
            "example": "2026-12-25T09:00:00+01:00",
        }
    )
    reason = fields.String(
        metadata={
            "description": "Why it was moved: the holiday, or the weekend day",
            "example": "Christmas Day",
        }
    )


class SkippedOutput(OutputSchema):
    """A time at which nothing fires, because the calendar is closed."""

    local = fields.String(
        required=True,
        metadata={
            "description": "The time in the trigger's zone, with its offset",
            "example": "2026-12-25T09:00:00+01:00",
        },
    )
    reason = fields.String(
        required=True,
        metadata={"description": "The holiday, or the weekend day", "example": "Christmas Day"},
    )


class WrittenTrigger(OutputSchema):
    """The fields of a trigger as they were written."""

    class Meta(OutputSchema.Meta):
        include = TRIGGER_OUTPUT_FIELDS


class PreviewOutput(OutputSchema):
    """When a trigger fires."""

    trigger = fields.Nested(WrittenTrigger, metadata={"description": "What was asked for"})

    occurrences = fields.List(
        fields.Nested(OccurrenceOutput),
        required=True,
        metadata={"description": "The next occurrences, the earliest first"},
    )
    skipped = fields.List(
        fields.Nested(SkippedOutput),
        metadata={
            "description": "What the calendar takes away among these occurrences, `limit` of them at most;"
            " absent for nothing"
        },
    )
    warnings = fields.List(
        fields.String(),
        required=True,
        metadata={"description": "What may surprise the person who wrote the trigger"},
    )
    description = fields.String(metadata={"description": "What the trigger says, in words"})
    recurrence = fields.String(
        metadata={"description": "The trigger as an RFC 5545 recurrence with its DTSTART made explicit"}
    )
