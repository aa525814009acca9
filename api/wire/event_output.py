"""Events as they are shown and asked for."""

from marshmallow import fields, validate

from api.wire.field_types import Instant
from api.wire.output_schema import OutputSchema
from api.wire.paging import Listed
from scheduler_app.domain.event import State


class StatusLine(OutputSchema):
    time = Instant()
    status = fields.String(validate=validate.OneOf([state.value for state in State]))
    message = fields.String()


class AttemptLine(OutputSchema):
    number = fields.Integer()
    started_at = Instant()
    duration_ms = fields.Float()
    lag_ms = fields.Float()
    status_code = fields.Integer(allow_none=True)
    error = fields.String(allow_none=True)
    snippet = fields.String()
    worker = fields.String()
    late = fields.Boolean(metadata={"description": "It ended after its claim was lost; it changed no state"})


class EventOutput(OutputSchema):
    """An event with its history."""

    id = fields.String(data_key="_id", attribute="_id", required=True)
    schedule_id = fields.String(required=True)
    run_time = Instant(required=True)
    kind = fields.String(required=True, metadata={"description": "scheduled, or manual by a trigger"})
    state = fields.String(validate=validate.OneOf([state.value for state in State]))
    due_at = Instant(metadata={"description": "When the next attempt is due; finished events have none"})
    revision = fields.Integer()
    attempt = fields.Integer(metadata={"description": "Attempts made so far"})
    status = fields.List(fields.Nested(StatusLine))
    attempts = fields.List(fields.Nested(AttemptLine))
    created_at = Instant()
    archived_at = Instant()
    corrupt = fields.Dict(
        keys=fields.String(),
        values=fields.String(),
        metadata={
            "description": "The fields of its stored document that were wrong, each with the reason; none"
            " where nothing was"
        },
    )


class EventPage(Listed):
    events = fields.List(fields.Nested(EventOutput), required=True)


class Triggered(OutputSchema):
    event_id = fields.String(required=True)
    message = fields.String(required=True)
