"""An error as the specification describes it; `api.problems` makes them."""

from marshmallow import fields

from api.problems import MAX_ERRORS
from api.wire.output_schema import OutputSchema


class FieldProblem(OutputSchema):
    """What is wrong with one field."""

    pointer = fields.String(
        required=True,
        metadata={"description": "Where: a JSON pointer, or the parameter's name", "example": "/rrule"},
    )
    detail = fields.String(required=True)


class Problem(OutputSchema):
    """An error (RFC 9457)."""

    type = fields.String(required=True, metadata={"example": "about:blank"})
    title = fields.String(required=True, metadata={"example": "Unprocessable Entity"})
    status = fields.Integer(required=True, metadata={"example": 422})
    detail = fields.String(required=True, metadata={"description": "What to do about it"})
    errors = fields.List(
        fields.Nested(FieldProblem),
        metadata={
            "description": f"The fields that are wrong, where some are: the first {MAX_ERRORS} of them, and"
            " in an answer to a bulk 1,000 of all its items together"
        },
    )
    errors_omitted = fields.Integer(metadata={"description": "How many more are wrong; absent for none"})
