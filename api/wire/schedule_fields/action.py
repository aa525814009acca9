"""What a schedule does where that is no HTTP request: its action, by its type."""

import shlex

from marshmallow import ValidationError, fields, validate

from api.json_types import Loaded, View
from api.wire.input_schema import InputSchema
from api.wire.output_schema import OutputSchema
from api.wire.schedule_fields.field import ScheduleField, ShownSchedule
from scheduler_app.domain.command_action import (
    COMMAND,
    MAX_COMMAND_BYTES,
    MAX_VARIABLES,
    MAX_WORDS,
    CommandAction,
)
from scheduler_app.domain.masking import MASK


class Command(fields.Field[str | list[str]]):
    """The words of a command, or its whole text."""

    def _deserialize(self, value: object, attr: object, data: object, **_: object) -> str | list[str]:
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            return value
        raise ValidationError('must be a list of words, such as ["/opt/jobs/report", "--daily"], or one text')


class ActionInput(InputSchema):
    """An action of another kind than an HTTP request."""

    type = fields.String(
        required=True,
        validate=validate.OneOf([COMMAND]),
        metadata={"description": "`command`: a program that a worker runs", "example": COMMAND},
    )
    command = Command(
        required=True,
        metadata={
            "description": f"The program and its arguments, up to {MAX_WORDS} words and"
            f" {MAX_COMMAND_BYTES // 1024} KiB; one text is split into words as a shell would, and run"
            " without one",
            "oneOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "items": {"type": "string"}, "minItems": 1},
            ],
            "example": ["/opt/jobs/report", "--daily"],
        },
    )
    shell = fields.Boolean(
        truthy={True},
        falsy={False},
        metadata={
            "description": "Whether `command`, one text, is run by /bin/sh; a pattern with `shell:` allows it"
        },
    )
    env = fields.Dict(
        keys=fields.String(),
        values=fields.String(),
        metadata={
            "description": f"Variables of its environment, up to {MAX_VARIABLES}; answers mask the values,"
            " and a mask that is sent back leaves the value as it is while the command stays the same"
        },
    )
    retry_exit_codes = fields.List(
        fields.Integer(strict=True, validate=validate.Range(1, 255)),
        validate=validate.Length(max=255),
        metadata={"description": "The exit statuses after which it is tried again; by default all but 0"},
    )


class ActionOutput(OutputSchema):
    """An action as it is stored; the values of its environment are masked."""

    type = fields.String(metadata={"description": "`command`"})
    command = fields.List(fields.String(), metadata={"description": "Its words; with `shell` one text"})
    shell = fields.Boolean(metadata={"description": "Whether a shell runs it"})
    env = fields.Dict(
        keys=fields.String(), values=fields.String(), metadata={"description": "Its variables, masked"}
    )
    retry_exit_codes = fields.List(
        fields.Integer(), metadata={"description": "The exit statuses after which it is tried again"}
    )


def _read(given: Loaded) -> CommandAction:
    """Raises ValidationError."""
    command, shell = given["command"], given.get("shell", False)
    if shell and not isinstance(command, str):
        raise ValidationError({"command": ["must be one text where shell is true"]}, "action")
    if shell:
        words: tuple[str, ...] = (command,)
    else:
        words = tuple(_split(command) if isinstance(command, str) else command)
    codes = given.get("retry_exit_codes")
    return CommandAction(
        command=words,
        shell=shell,
        env=tuple(given.get("env", {}).items()),
        retry_exit_codes=None if codes is None else tuple(codes),
    )


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ValidationError({"command": [f"cannot be split into words: {error}"]}, "action") from None


def _shown(it: ShownSchedule) -> View | None:
    action = it.schedule.action
    if not isinstance(action, CommandAction):
        return None
    view: View = {"type": COMMAND, "command": list(action.command)}
    if action.shell:
        view["shell"] = True
    if action.env:
        view["env"] = {name: MASK for name, _ in action.env}
    if action.retry_exit_codes is not None:
        view["retry_exit_codes"] = list(action.retry_exit_codes)
    return view


ACTION = (
    ScheduleField(
        name="action",
        meaning="What it does instead of an HTTP request, such as"
        ' `{"type": "command", "command": ["/opt/jobs/report", "--daily"]}`',
        input=fields.Nested(ActionInput),
        output=fields.Nested(ActionOutput),
        read=_read,
        shown=_shown,
    ),
)
