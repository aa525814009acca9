"""An action of another kind than an HTTP request, as a request gives it: the fields of all types in one."""

from typing import Any

from marshmallow import ValidationError, fields, validate, validates_schema

from api.wire.celery_task_fields import NAMES as OF_A_TASK
from api.wire.celery_task_fields import CeleryTaskInput
from api.wire.input_schema import InputSchema
from api.wire.json_boolean import JsonBoolean
from scheduler_app.domain.celery_task_action import CELERY_TASK
from scheduler_app.domain.command_action import COMMAND, MAX_COMMAND_BYTES, MAX_VARIABLES, MAX_WORDS


class Command(fields.Field[str | list[str]]):
    """The words of a command, or its whole text."""

    def _deserialize(self, value: object, attr: object, data: object, **_: object) -> str | list[str]:
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            return value
        raise ValidationError('must be a list of words, such as ["/opt/jobs/report", "--daily"], or one text')


OF_A_COMMAND = frozenset(("command", "shell", "env", "retry_exit_codes"))


class ActionInput(CeleryTaskInput, InputSchema):
    """An action of another kind than an HTTP request."""

    type = fields.String(
        required=True,
        validate=validate.OneOf([COMMAND, CELERY_TASK]),
        metadata={
            "description": "`command`: a program that a worker runs; `celery_task`: a task of another Celery"
            " application",
            "example": COMMAND,
        },
    )
    command = Command(
        metadata={
            "description": f"Of a `command`: the program and its arguments, up to {MAX_WORDS} words and"
            f" {MAX_COMMAND_BYTES // 1024} KiB; one text is split into words as a shell would, and run"
            " without one",
            "oneOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "items": {"type": "string"}, "minItems": 1},
            ],
            "example": ["/opt/jobs/report", "--daily"],
        },
    )
    shell = JsonBoolean(
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

    @validates_schema
    def _fits_its_type(self, given: dict[str, Any], **_: object) -> None:
        kind = given.get("type")
        if kind == COMMAND and "command" not in given:
            raise ValidationError("must be given for a command", "command")
        foreign = {COMMAND: OF_A_TASK, CELERY_TASK: OF_A_COMMAND}.get(str(kind), frozenset())
        for name in sorted(foreign & given.keys()):
            raise ValidationError(f"is no field of a {kind}: leave it out", name)
