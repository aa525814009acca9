"""What a schedule does where that is no HTTP request: its action, by its type."""

import shlex

from marshmallow import Schema, ValidationError, fields

from api.json_types import Loaded, View
from api.wire.celery_task_fields import CeleryTaskOutput, celery_task_shown, read_celery_task
from api.wire.output_schema import OutputSchema
from api.wire.schedule_fields.field import ScheduleField, ShownSchedule
from scheduler_app.domain.action import Action
from scheduler_app.domain.celery_task_action import CELERY_TASK, CeleryTaskAction
from scheduler_app.domain.command_action import COMMAND, CommandAction
from scheduler_app.domain.masking import MASK


class ActionOutput(CeleryTaskOutput, OutputSchema):
    """An action as it is stored; what may be secret of it is masked."""

    type = fields.String(metadata={"description": "`command` or `celery_task`"})
    command = fields.List(fields.String(), metadata={"description": "Its words; with `shell` one text"})
    shell = fields.Boolean(metadata={"description": "Whether a shell runs it"})
    env = fields.Dict(
        keys=fields.String(), values=fields.String(), metadata={"description": "Its variables, masked"}
    )
    retry_exit_codes = fields.List(
        fields.Integer(), metadata={"description": "The exit statuses after which it is tried again"}
    )


def _read(given: Loaded) -> Action:
    """Raises ValidationError."""
    return read_celery_task(given) if given["type"] == CELERY_TASK else _read_command(given)


def _read_command(given: Loaded) -> CommandAction:
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
    if isinstance(action, CeleryTaskAction):
        return celery_task_shown(action)
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


def _input() -> Schema:
    # Schemas of requests know this table: they advise whoever misspells the name of a field.
    from api.wire.action_input import ActionInput

    return ActionInput()


ACTION = (
    ScheduleField(
        name="action",
        meaning="What it does instead of an HTTP request, such as"
        ' `{"type": "command", "command": ["/opt/jobs/report", "--daily"]}`',
        input=fields.Nested(_input),
        output=fields.Nested(ActionOutput),
        read=_read,
        shown=_shown,
    ),
)
