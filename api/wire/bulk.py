"""Many schedules in one request."""

from typing import Any

from marshmallow import ValidationError, fields, validate

from scheduler_app.api.wire.field_types import BoundedList, Instant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OutputSchema
from scheduler_app.api.wire.problem_output import Problem
from scheduler_app.api.wire.schedule_input import NewSchedule

MAX_BULK = 1_000


class ListOfResults(BoundedList):
    """A list of results: for each item its value, or the ValidationError that its schema raised."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        self.check_length(value)
        return [self._one(item) for item in value]

    def _one(self, item: Any) -> Any:
        try:
            return self.inner.deserialize(item)
        except ValidationError as error:
            return error


class BulkInput(InputSchema):
    max_values = 1_000_000
    schedules = ListOfResults(
        fields.Nested(NewSchedule),
        required=True,
        validate=validate.Length(1, MAX_BULK),
        metadata={"description": "Each is accepted or refused by itself"},
    )


class BulkResult(OutputSchema):
    """The result of the item at the same place in the request."""

    status = fields.Integer(
        required=True,
        metadata={"description": "The status that a request of its own would have", "example": 201},
    )
    id = fields.String(metadata={"description": "The id of the new schedule"})
    next_run_at = Instant(metadata={"description": "Its next occurrence"})
    signing_secret = fields.String(
        metadata={"description": "Shown only in this answer, if `signing` was asked for"}
    )
    problem = fields.Nested(Problem, metadata={"description": "Why it was refused"})


class BulkOutput(OutputSchema):
    created = fields.Integer(required=True, metadata={"description": "How many schedules were created"})
    refused = fields.Integer(required=True, metadata={"description": "How many were refused"})
    results = fields.List(
        fields.Nested(BulkResult),
        required=True,
        metadata={"description": "One for each item, in the order of the request"},
    )
