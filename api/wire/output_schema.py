"""What all answers have in common, and an error as the specification describes it."""

from collections.abc import Mapping

from marshmallow import INCLUDE, Schema, fields, post_dump

from scheduler_app.api.json_types import View
from scheduler_app.api.problems import MAX_ERRORS


class OutputSchema(Schema):
    """An answer. Clients must ignore fields that they do not know: answers grow."""

    class Meta:
        unknown = INCLUDE

    def _serialize(self, obj: object, *, many: bool = False) -> object:
        """As marshmallow's own, but of a mapping only the keys that it has are read, and directly:
        marshmallow's accessors take most of the time of a long list."""
        if many or not isinstance(obj, Mapping):
            return super()._serialize(obj, many=many)
        return {
            field.data_key or name: field._serialize(obj[field.attribute or name], name, obj)
            for name, field in self.dump_fields.items()
            if (field.attribute or name) in obj
        }


class OmitNone(OutputSchema):
    """Omits fields whose value is None."""

    @post_dump
    def without_nothing(self, data: View, **_: object) -> View:
        return {name: value for name, value in data.items() if value is not None}


class MessageSchema(OutputSchema):
    """An answer that only says that it is done."""

    message = fields.String(required=True, metadata={"description": "The result in words"})


class FieldProblem(OutputSchema):
    """One field that is wrong."""

    pointer = fields.String(
        required=True,
        metadata={
            "description": "The field: a JSON pointer, or the parameter's name after a slash",
            "example": "/rrule",
        },
    )
    detail = fields.String(required=True, metadata={"description": "What is wrong with it, and the remedy"})


class ReadingOccurrence(OmitNone):
    """An occurrence of a reading."""

    run_time = fields.String(required=True, metadata={"description": "In UTC"})
    local = fields.String(required=True, metadata={"description": "With the offset of the timezone"})
    dst = fields.String(metadata={"description": "What a clock change does to it; absent otherwise"})
    rolled_from = fields.String(
        metadata={"description": "The local time from which the calendar moved it; absent otherwise"}
    )


class Reading(OmitNone):
    """One way to read a trigger that can be read in several ways."""

    recurrence = fields.String(metadata={"description": "Give it as `rrule` to choose this reading"})
    run_at = fields.String(metadata={"description": "Give it as `run_at` to choose this reading"})
    description = fields.String(required=True, metadata={"description": "The reading in words"})
    occurrences = fields.List(
        fields.Nested(ReadingOccurrence), required=True, metadata={"description": "The first three"}
    )


class Problem(OutputSchema):
    """An error (RFC 9457)."""

    type = fields.String(required=True, metadata={"example": "about:blank"})
    title = fields.String(required=True, metadata={"example": "Unprocessable Entity"})
    status = fields.Integer(required=True, metadata={"example": 422})
    detail = fields.String(required=True, metadata={"description": "What is wrong, and the remedy"})
    errors = fields.List(
        fields.Nested(FieldProblem),
        metadata={
            "description": f"The fields that are wrong, if any: the first {MAX_ERRORS} of them, and in the"
            " answer to a bulk 1,000 of all its items together"
        },
    )
    errors_omitted = fields.Integer(
        metadata={"description": "How many more fields are wrong; absent if none"}
    )
    not_understood = fields.List(
        fields.String(),
        metadata={"description": "The words of a trigger that were not understood"},
    )
    readings = fields.List(
        fields.Nested(Reading),
        metadata={"description": "What an ambiguous trigger may mean, to choose from"},
    )
