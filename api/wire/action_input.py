"""An action of another kind than an HTTP request, as a request gives it: the fields of all types in one."""

from typing import Any

from marshmallow import ValidationError, fields, validate, validates_schema

from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.schedule_fields.action import ACTION_TYPES


class _AnyActionInput(InputSchema):
    """What actions of all types have in common."""

    type = fields.String(
        required=True,
        validate=validate.OneOf(list(ACTION_TYPES)),
        metadata={
            "description": "; ".join(f"`{name}`: {its.meaning}" for name, its in ACTION_TYPES.items()),
            "example": next(iter(ACTION_TYPES)),
        },
    )

    @validates_schema
    def _fits_its_type(self, given: dict[str, Any], **_: object) -> None:
        kind = str(given.get("type"))
        its = ACTION_TYPES.get(kind)
        if its is None:
            return  # the field says so
        missing = {name: [f"must be given for a {kind}"] for name in its.required if name not in given}
        foreign = {
            name: [f"is no field of a {kind}: leave it out"]
            for name in sorted(given.keys() - its.input.keys() - {"type"})
        }
        if missing or foreign:
            raise ValidationError(missing | foreign)


#: An action of another kind than an HTTP request.
ActionInput = _AnyActionInput.from_dict(
    {name: field for its in ACTION_TYPES.values() for name, field in its.input.items()}, name="ActionInput"
)
