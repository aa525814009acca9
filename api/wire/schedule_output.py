"""A schedule in answers, and the filter of their list."""

from marshmallow import fields, validate

from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OutputSchema
from scheduler_app.api.wire.paging import Listed, Paging
from scheduler_app.api.wire.schedule_fields import LAST_OUTCOMES, OUTPUT_FIELDS, STATES
from scheduler_app.domain.schedule import MAX_NAME


class ScheduleOutput(OutputSchema):
    """A schedule. Header values, the values of the URL's query and the body are masked."""

    class Meta(OutputSchema.Meta):
        include = OUTPUT_FIELDS


class Created(ScheduleOutput):
    signing_secret = fields.String(
        metadata={"description": "Shown only in this answer, if this request generated it"}
    )


class Edited(Created):
    message = fields.String(
        metadata={"description": "The result in words", "example": "Schedule updated successfully."}
    )
    result = fields.String(
        validate=validate.OneOf(["created", "changed", "unchanged"]),
        metadata={"description": "What the request did"},
    )


class SchedulePage(Listed):
    schedules = fields.List(fields.Nested(ScheduleOutput), required=True)


class ScheduleChoice(InputSchema):
    """A filter of schedules: they must match every field given."""

    state = fields.String(
        validate=validate.OneOf(STATES),
        metadata={"description": "The state they are in"},
    )
    name = fields.String(
        validate=validate.Length(min=1, max=MAX_NAME), metadata={"description": "The whole name"}
    )
    text = fields.String(
        data_key="name_contains",
        validate=validate.Length(min=1, max=MAX_NAME),
        metadata={"description": "A part of the name, whatever the case of its letters"},
    )
    tag = fields.String(validate=validate.Length(min=1, max=64), metadata={"description": "One of its tags"})
    last_outcome = fields.String(
        validate=validate.OneOf(LAST_OUTCOMES),
        metadata={"description": "How their last run ended; `retrying`: another attempt of it follows"},
    )


class ScheduleFilter(ScheduleChoice, Paging):
    """The parameters of the list of schedules."""
