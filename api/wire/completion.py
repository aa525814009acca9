"""What receivers say of an event's work."""

from marshmallow import fields, validate

from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.completion import MAX_REASON


class FailureInput(InputSchema):
    body_optional = True
    reason = fields.String(
        load_default="",
        validate=validate.Length(max=MAX_REASON),
        metadata={"description": "Why, in words, for the event's history", "example": "the disk is full"},
    )
