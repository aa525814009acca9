"""The fields of a `command` in JSON."""

import shlex
from typing import Any, Final

from marshmallow import ValidationError, validate

from scheduler_app import json_fields as fields
from scheduler_app.actions.fields import ActionFields
from scheduler_app.domain.command_action import MAX_COMMAND_BYTES, MAX_VARIABLES, MAX_WORDS, CommandAction
from scheduler_app.domain.masking import MASK


class _Words(fields.DescribedField):
    """The words of a command, or its whole text."""

    def _deserialize(self, value: object, attr: object, data: object, **_: object) -> str | list[str]:
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            return value
        raise ValidationError('must be a list of words, such as ["/opt/jobs/report", "--daily"], or one text')


def _read(given: dict[str, Any]) -> CommandAction:
    """Raises ValidationError."""
    command, shell = given["command"], given.get("shell", False)
    if shell and not isinstance(command, str):
        raise ValidationError({"command": ["must be one text where shell is true"]})
    if isinstance(command, str):
        command = (command,) if shell else _split(command)
    codes = given.get("retry_exit_codes")
    return CommandAction(
        command=tuple(command),
        shell=shell,
        env=tuple(given.get("env", {}).items()),
        retry_exit_codes=None if codes is None else tuple(codes),
    )


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ValidationError({"command": [f"cannot be split into words: {error}"]}) from None


def _shown(action: CommandAction) -> dict[str, object]:
    view: dict[str, object] = {"command": list(action.command)}
    if action.shell:
        view["shell"] = True
    if action.env:
        view["env"] = {name: MASK for name, _ in action.env}
    if action.retry_exit_codes is not None:
        view["retry_exit_codes"] = list(action.retry_exit_codes)
    return view


COMMAND_FIELDS: Final = ActionFields(
    meaning="a program that a worker runs",
    input={
        "command": _Words(
            f"Of a `command`: the program and its arguments, up to {MAX_WORDS} words and"
            f" {MAX_COMMAND_BYTES // 1024} KiB; one text is split into words as a shell would, and run"
            " without one",
            required=True,
            metadata={
                "oneOf": [
                    {"type": "string", "minLength": 1},
                    {"type": "array", "items": {"type": "string"}, "minItems": 1},
                ]
            },
            example=["/opt/jobs/report", "--daily"],
        ),
        "shell": fields.JsonBoolean(
            "Whether `command`, one text, is run by /bin/sh; a pattern with `shell:` allows it"
        ),
        "env": fields.Dict(
            f"Variables of its environment, up to {MAX_VARIABLES}, which a pattern that"
            " allows the command names (`MONTH= make report *`); answers mask the values, and a mask that"
            " is sent back leaves the value as it is while the command stays the same",
            keys=fields.String(),
            values=fields.String(),
        ),
        "retry_exit_codes": fields.List(
            fields.Integer(strict=True, validate=validate.Range(1, 255)),
            "The exit statuses after which it is tried again; by default all but 0",
            validate=validate.Length(max=255),
        ),
    },
    output={
        "command": fields.List(fields.String(), "Its words; with `shell` one text"),
        "shell": fields.Boolean("Whether a shell runs it"),
        "env": fields.Dict("Its variables, masked", keys=fields.String(), values=fields.String()),
        "retry_exit_codes": fields.List(fields.Integer(), "The exit statuses after which it is tried again"),
    },
    read=_read,
    shown=_shown,
)
