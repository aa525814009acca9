"""JSON of /tasks."""

from marshmallow import fields, validate

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

    id = ScheduleId(metadata={"description": "The id in the path, once more", "example": "my-task-1"})
    name = fields.String(
        validate=_NAME, metadata={"description": "What people call it", "example": "Updated Name"}
    )
    description = fields.String(
        validate=[validate.Length(max=MAX_PURPOSE), check_visible],
        metadata={"description": "What it is for"},
    )
    command = fields.String(
        validate=validate.Length(1, MAX_COMMAND_BYTES),
        metadata={
            "description": "A program and its arguments; a line for /bin/sh where a pattern of"
            " ALLOWED_COMMANDS with `shell:` allows it",
            "example": "echo hello",
        },
    )
    scheduled_at = Instant(
        allow_none=True,
        metadata={"description": "When it is executed; null says nothing", "example": "2040-12-01T15:00:00Z"},
    )
    status = fields.String(
        validate=validate.OneOf(STATUSES),
        metadata={"description": "Taken and left alone: it follows from runs"},
    )
    created_at = fields.String(allow_none=True, metadata={"description": "Taken and left alone"})
    updated_at = fields.String(allow_none=True, metadata={"description": "Taken and left alone"})


class NewTask(TaskChange):
    """What POST takes."""

    id = ScheduleId(
        required=True, metadata={"description": "An id of your own, but `scheduled`", "example": "my-task-1"}
    )
    name = fields.String(
        required=True, validate=_NAME, metadata={"description": "What people call it", "example": "My Task"}
    )
    command = fields.String(
        required=True,
        validate=validate.Length(1, MAX_COMMAND_BYTES),
        metadata=TaskChange._declared_fields["command"].metadata,
    )


class TaskTime(InputSchema):
    """When a task is executed."""

    scheduled_at = Instant(
        required=True, metadata={"description": "An instant to come", "example": "2040-12-01T15:00:00Z"}
    )


class TaskPart(InputSchema):
    """Which part of a list. Where there is more, the header `Link` has the address of the next part."""

    limit = fields.Integer(
        load_default=MAX_LISTED,
        validate=validate.Range(1, MAX_LISTED),
        metadata={"description": "How many at most"},
    )
    cursor = Cursor(metadata={"description": "Where to go on, as `Link` says"})


class TaskFilter(TaskPart):
    """Which tasks."""

    status = fields.String(
        validate=validate.OneOf(STATUSES), metadata={"description": "Only tasks of this status"}
    )


class ScheduledFilter(TaskPart):
    """Which tasks that wait for their time."""

    since = Instant(data_key="from", metadata={"description": "Only those due at or after this instant"})
    until = Instant(data_key="to", metadata={"description": "Only those due at or before this instant"})


class TaskOutput(OmitNone):
    """A task."""

    id = fields.String(required=True)
    name = fields.String(required=True)
    description = fields.String(required=True)
    command = fields.String(required=True)
    status = fields.String(
        required=True,
        validate=validate.OneOf(STATUSES),
        metadata={"description": "`created` → `pending` → `running` → `completed` or `failed`"},
    )
    created_at = Instant(required=True)
    updated_at = Instant(required=True)
    scheduled_at = Instant(metadata={"description": "When it is, or was, to be executed"})


class TaskDone(OutputSchema):
    """Something was done with a task."""

    message = fields.String(required=True, metadata={"description": "What was done, in words"})
    task_id = fields.String(required=True)


class TaskError(OutputSchema):
    """Why not."""

    error = fields.String(required=True, metadata={"description": "What is wrong, and what would be right"})
