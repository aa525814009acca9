"""What all answers have in common, and an error as the specification describes it."""

from collections.abc import Mapping

from marshmallow import INCLUDE, Schema, post_dump, validate

from scheduler_app import json_fields as fields
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


def attributes(it: object, *names: str) -> View:
    """The fields that `it` has under their own names."""
    return {name: getattr(it, name) for name in names}


def without_none(view: View) -> View:
    """The fields that have a value."""
    return {name: value for name, value in view.items() if value is not None}


class OmitNone(OutputSchema):
    """Omits fields whose value is None."""

    @post_dump
    def without_nothing(self, data: View, **_: object) -> View:
        return without_none(data)


def edit_result(meaning: str = "What the request did") -> fields.String:
    """What a request that creates or changes something did."""
    return fields.String(meaning, validate=validate.OneOf(["created", "changed", "unchanged"]))


class MessageSchema(OutputSchema):
    """An answer that only says that it is done."""

    message = fields.String("The result in words", required=True)


class FieldProblem(OutputSchema):
    """One field that is wrong."""

    pointer = fields.String(
        "The field: a JSON pointer, or the parameter's name after a slash", required=True, example="/rrule"
    )
    detail = fields.String("What is wrong with it, and the remedy", required=True)


class ReadingOccurrence(OmitNone):
    """An occurrence of a reading."""

    run_time = fields.String("In UTC", required=True)
    local = fields.String("With the offset of the timezone", required=True)
    dst = fields.String("What a clock change does to it; absent otherwise")
    rolled_from = fields.String("The local time from which the calendar moved it; absent otherwise")


class Reading(OmitNone):
    """One way to read a trigger that can be read in several ways."""

    recurrence = fields.String("Give it as `rrule` to choose this reading")
    run_at = fields.String("Give it as `run_at` to choose this reading")
    description = fields.String("The reading in words", required=True)
    occurrences = fields.List(ReadingOccurrence, "The first three", required=True)


class Problem(OutputSchema):
    """An error (RFC 9457)."""

    type = fields.String(required=True, example="about:blank")
    title = fields.String(required=True, example="Unprocessable Entity")
    status = fields.Integer(required=True, example=422)
    detail = fields.String("What is wrong, and the remedy", required=True)
    errors = fields.List(
        FieldProblem,
        f"The fields that are wrong, if any: the first {MAX_ERRORS} of them, and in the"
        " answer to a bulk 1,000 of all its items together",
    )
    errors_omitted = fields.Integer("How many more fields are wrong; absent if none")
    not_understood = fields.List(fields.String(), "The words of a trigger that were not understood")
    readings = fields.List(Reading, "What an ambiguous trigger may mean, to choose from")
    limit = fields.String("Which of the tenant's `limits` is reached, if it is one", example="schedules")
