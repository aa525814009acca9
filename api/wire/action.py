"""An action of another kind than an HTTP request, as requests give it and answers show it: an object with the
fields of its `type`, which each have a schema of their own.
"""

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, validate

from scheduler_app import json_fields as fields
from scheduler_app.actions.fields import ActionFields
from scheduler_app.actions.registry import KINDS
from scheduler_app.api.json_types import Loaded
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OutputSchema
from scheduler_app.domain.action import Action

#: In the order of the registry. An HTTP request has no row here: its fields are those of a schedule.
ACTION_TYPES: Mapping[str, ActionFields[Any]] = {
    name: action_fields for name, kind in KINDS.items() if (action_fields := kind.fields()) is not None
}
_FIELDS_OF_ANY = {name for its in ACTION_TYPES.values() for name in its.input}


def _type_field(*kinds: str) -> fields.String:
    meaning = "; ".join(f"`{kind}`: {ACTION_TYPES[kind].meaning}" for kind in kinds)
    return fields.String(meaning, required=True, validate=validate.OneOf(kinds), example=kinds[0])


def _name_of(kind: str) -> str:
    return "".join(word.capitalize() for word in kind.split("_"))


def _input_schema(kind: str, its: ActionFields[Any]) -> type[Schema]:
    for field in its.input.values():
        field.error_messages["required"] = f"must be given for a {kind}"
    given = {"type": _type_field(kind), **its.input}
    return InputSchema.from_dict(given, name=f"{_name_of(kind)}ActionInput")


def _output_schema(kind: str, its: ActionFields[Any]) -> type[Schema]:
    shown = {"type": _type_field(kind), **its.output}
    return OutputSchema.from_dict(shown, name=f"{_name_of(kind)}ActionOutput")


#: A schema for each type. The last one is for what names none of them.
_INPUTS = {kind: _input_schema(kind, its) for kind, its in ACTION_TYPES.items()}
_OUTPUTS = {kind: _output_schema(kind, its) for kind, its in ACTION_TYPES.items()}
_ANY_INPUT = InputSchema.from_dict({"type": _type_field(*ACTION_TYPES)}, name="AnyActionInput")


class TaggedUnion(fields.DescribedField):
    """An object of one of several schemas, which its `type` names."""

    def __init__(self, component: str, schemas: Mapping[str, type[Schema]]) -> None:
        """`component` is its name in the specification."""
        super().__init__()
        self.component, self.schemas = component, {name: schema() for name, schema in schemas.items()}


class ActionInput(TaggedUnion):
    """An action as a request gives it."""

    def __init__(self) -> None:
        super().__init__("ActionInput", _INPUTS)
        self._of_any = _ANY_INPUT()

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> Any:
        given = value if isinstance(value, dict) else {}
        kind = str(given.get("type"))
        schema = self.schemas.get(kind, self._of_any)
        foreign = _FIELDS_OF_ANY & (given.keys() - schema.fields.keys())
        errors: dict[str, Any] = {}
        if kind in self.schemas:
            errors = {name: [f"is no field of a {kind}: leave it out"] for name in sorted(foreign)}
        try:
            own = {name: each for name, each in given.items() if name not in foreign}
            read = schema.load(own if given else value)
        except ValidationError as error:
            errors = error.normalized_messages() | errors
        if errors:
            raise ValidationError(errors)
        return read


class ActionOutput(TaggedUnion):
    """An action as it is stored; what may be secret of it is masked."""

    def __init__(self) -> None:
        super().__init__("ActionOutput", _OUTPUTS)

    def _serialize(self, value: Any, attr: str | None, obj: Any, **_: Any) -> Any:
        return self.schemas[value["type"]].dump(value)


def read_action(given: Loaded) -> Action:
    """Raises ValidationError."""
    try:
        action: Action = ACTION_TYPES[given["type"]].read(given)
    except ValidationError as error:
        raise ValidationError(error.messages, "action") from None
    return action
