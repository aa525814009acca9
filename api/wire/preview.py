"""Previews: when a trigger fires, before or after it is saved."""

from datetime import datetime
from typing import Final

from marshmallow import ValidationError, fields, validate, validates, validates_schema

from scheduler_app.api.json_types import Loaded
from scheduler_app.api.wire.field_types import Instant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema
from scheduler_app.api.wire.schedule_fields import PREVIEW_FIELDS, TRIGGER_OUTPUT_FIELDS
from scheduler_app.api.wire.schedule_fields.trigger import MAX_TIMEZONE
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.local_time import timezone_named

#: Occurrences in one answer.
MAX_OCCURRENCES: Final = 1_000


class PreviewQuery(InputSchema):
    """Which occurrences to show."""

    after = Instant(
        metadata={"description": "The first occurrence shown comes after this instant; default: now"}
    )
    until = Instant(metadata={"description": "No occurrence shown comes after this instant; default: no end"})
    limit = fields.Integer(
        load_default=10,
        validate=validate.Range(1, MAX_OCCURRENCES),
        metadata={"description": "How many at most"},
    )
    display_timezone = fields.String(
        validate=validate.Length(min=1, max=MAX_TIMEZONE),
        metadata={
            "description": "The IANA zone of the local times shown; default: the trigger's own",
            "example": "Asia/Tokyo",
        },
    )

    @validates("display_timezone")
    def check_zone(self, value: str, **_: object) -> None:
        try:
            timezone_named(value)
        except InvalidField as error:
            raise ValidationError(error.message) from None

    @validates_schema
    def check_span(self, data: Loaded, **_: object) -> None:
        after: datetime | None = data.get("after")
        if after is not None and "until" in data and data["until"] < after:
            raise ValidationError("must not be before after", "until")


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


class OccurrenceBlackout(OutputSchema):
    """The blackout that an occurrence falls into."""

    name = fields.String(required=True)
    until = Instant(required=True, metadata={"description": "When nothing keeps it from being sent any more"})
    policy = fields.String(
        required=True,
        validate=validate.OneOf(["skip", "postpone"]),
        metadata={"description": "Whether it is skipped, or sent then"},
    )


class OccurrenceOutput(OmitNone):
    """One occurrence."""

    run_time = Instant(required=True, metadata={"description": "The instant, in UTC"})
    local = fields.String(
        required=True,
        metadata={
            "description": "The same instant in the trigger's zone or in `display_timezone`, with its offset",
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
    due_at = Instant(
        metadata={"description": "When its callback falls due, with its jitter; absent without jitter"}
    )
    earliest = Instant(
        metadata={
            "description": "Of a schedule that has jitter and no id yet: when its callback falls due at the"
            " earliest"
        }
    )
    latest = Instant(metadata={"description": "And when at the latest"})
    blackout = fields.Nested(
        OccurrenceBlackout,
        metadata={"description": "Of a saved schedule: what keeps it from being sent at its time"},
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
