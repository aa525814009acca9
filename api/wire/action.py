"""An action of another kind than an HTTP request, as requests give it and answers show it."""

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, fields, validate, validates_schema

from scheduler_app.actions.fields import ActionFields
from scheduler_app.actions.registry import KINDS
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OutputSchema
from scheduler_app.domain.action import Action

#: In the order of the registry. An HTTP request is no row: its fields are those of a schedule.
ACTION_TYPES: Mapping[str, ActionFields[Any]] = {
    name: action_fields for name, kind in KINDS.items() if (action_fields := kind.fields()) is not None
}


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


class _AnyActionOutput(OutputSchema):
    """What actions of all types have in common."""

    type = fields.String(metadata={"description": " or ".join(f"`{name}`" for name in ACTION_TYPES)})


#: An action as it is stored; what may be secret of it is masked.
ActionOutput = _AnyActionOutput.from_dict(
    {name: field for its in ACTION_TYPES.values() for name, field in its.output.items()}, name="ActionOutput"
)


def read_action(given: Loaded) -> Action:
    """Raises ValidationError."""
    try:
        action: Action = ACTION_TYPES[given["type"]].read(given)
    except ValidationError as error:
        raise ValidationError(error.messages, "action") from None
    return action


def action_shown(action: Action) -> View | None:
    """None for an HTTP request, whose fields are those of a schedule."""
    its = ACTION_TYPES.get(action.kind)
    return {"type": action.kind, **its.shown(action)} if its else None
