"""JSON of /tasks."""

from marshmallow import validate

from scheduler_app import json_fields as fields
from scheduler_app.api.wire.field_types import Cursor, Instant, ScheduleId, check_visible
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema
from scheduler_app.domain.command_action import MAX_COMMAND_BYTES
from scheduler_app.domain.schedule import MAX_PURPOSE

STATUSES = ("created", "pending", "running", "completed", "failed")
MAX_NAME = 100
MAX_LISTED = 1_000

_NAME = (validate.Length(1, MAX_NAME), check_visible)


class TaskChange(InputSchema):
    """What PUT takes: any of these fields, or a whole task as it was shown."""

    id = ScheduleId("The id in the path, once more", example="my-task-1")
    name = fields.String("What people call it", validate=_NAME, example="Updated Name")
    description = fields.String("What it is for", validate=[validate.Length(max=MAX_PURPOSE), check_visible])
    command = fields.String(
        "A program and its arguments; a line for /bin/sh where a pattern of"
        " ALLOWED_COMMANDS with `shell:` allows it",
        validate=validate.Length(1, MAX_COMMAND_BYTES),
        example="echo hello",
    )
    scheduled_at = Instant(
        "When it is executed; null says nothing", allow_none=True, example="2040-12-01T15:00:00Z"
    )
    status = fields.String("Taken and left alone: it follows from runs", validate=validate.OneOf(STATUSES))
    created_at = fields.String("Taken and left alone", allow_none=True)
    updated_at = fields.String("Taken and left alone", allow_none=True)


class NewTask(TaskChange):
    """What POST takes."""

    id = ScheduleId("An id of your own, but `scheduled`", required=True, example="my-task-1")
    name = fields.String("What people call it", required=True, validate=_NAME, example="My Task")
    command = fields.String(
        required=True,
        validate=validate.Length(1, MAX_COMMAND_BYTES),
        metadata=TaskChange._declared_fields["command"].metadata,
    )


class TaskTime(InputSchema):
    """When a task is executed."""

    scheduled_at = Instant("An instant to come", required=True, example="2040-12-01T15:00:00Z")


class TaskPart(InputSchema):
    """Which part of a list. Where there is more, the header `Link` has the address of the next part."""

    limit = fields.Integer(
        "How many at most", load_default=MAX_LISTED, validate=validate.Range(1, MAX_LISTED)
    )
    cursor = Cursor("Where to go on, as `Link` says")


class TaskFilter(TaskPart):
    """Which tasks."""

    status = fields.String("Only tasks of this status", validate=validate.OneOf(STATUSES))


class ScheduledFilter(TaskPart):
    """Which tasks that wait for their time."""

    since = Instant("Only those due at or after this instant", data_key="from")
    until = Instant("Only those due at or before this instant", data_key="to")


class TaskOutput(OmitNone):
    """A task."""

    id = fields.String(required=True)
    name = fields.String(required=True)
    description = fields.String(required=True)
    command = fields.String(required=True)
    status = fields.String(
        "`created` → `pending` → `running` → `completed` or `failed`",
        required=True,
        validate=validate.OneOf(STATUSES),
    )
    created_at = Instant(required=True)
    updated_at = Instant(required=True)
    scheduled_at = Instant("When it is, or was, to be executed")


class TaskDone(OutputSchema):
    """Something was done with a task."""

    message = fields.String("What was done, in words", required=True)
    task_id = fields.String(required=True)


class TaskError(OutputSchema):
    """Why not."""

    error = fields.String("What is wrong, and what would be right", required=True)
