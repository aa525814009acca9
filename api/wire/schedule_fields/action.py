"""What a schedule does where that is no HTTP request: its action, by its type."""

from marshmallow import Schema, ValidationError, fields

from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.action_types import ACTION_TYPES
from scheduler_app.api.wire.output_schema import OutputSchema
from scheduler_app.api.wire.schedule_fields.field import ScheduleField, ShownSchedule
from scheduler_app.domain.action import Action


class _OfAnyType(OutputSchema):
    """What actions of all types have in common."""

    type = fields.String(metadata={"description": " or ".join(f"`{name}`" for name in ACTION_TYPES)})


#: An action as it is stored; what may be secret of it is masked.
_ActionOutput = _OfAnyType.from_dict(
    {name: field for its in ACTION_TYPES.values() for name, field in its.output.items()}, name="ActionOutput"
)


def _read(given: Loaded) -> Action:
    """Raises ValidationError."""
    try:
        action: Action = ACTION_TYPES[given["type"]].read(given)
    except ValidationError as error:
        raise ValidationError(error.messages, "action") from None
    return action


def _shown(it: ShownSchedule) -> View | None:
    action = it.schedule.action
    its = ACTION_TYPES.get(action.kind)
    return {"type": action.kind, **its.shown(action)} if its else None


def _input() -> Schema:
    # Imported here: the schemas of requests import this table, to suggest names for misspelled fields.
    from scheduler_app.api.wire.action_input import ActionInput

    return ActionInput()


ACTION = (
    ScheduleField(
        name="action",
        meaning="What it does instead of an HTTP request, such as"
        ' `{"type": "command", "command": ["/opt/jobs/report", "--daily"]}`',
        input=fields.Nested(_input),
        output=fields.Nested(_ActionOutput),
        read=_read,
        shown=_shown,
    ),
)
