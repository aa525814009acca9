"""Messages in answers."""

from marshmallow import fields, validate

from scheduler_app.api.json_types import View
from scheduler_app.api.wire.event_output import AttemptLine, StatusLine
from scheduler_app.api.wire.field_types import Instant
from scheduler_app.api.wire.message_input import SHARED
from scheduler_app.api.wire.output_schema import OutputSchema
from scheduler_app.api.wire.paging import Listed
from scheduler_app.api.wire.problem_output import Problem
from scheduler_app.api.wire.schedule_fields import OUTPUT_FIELDS
from scheduler_app.domain.event import State
from scheduler_app.domain.http_action import Body, BodyKind, HttpAction
from scheduler_app.domain.masking import MASK, masked, masked_url
from scheduler_app.domain.message import Message
from scheduler_app.domain.message_ids import message_id_of
from scheduler_app.domain.tenants import SEPARATOR
from scheduler_app.store.events.messages import MessageRecord


class MessageOutput(OutputSchema):
    """A message with its history."""

    class Meta(OutputSchema.Meta):
        include = {name: OUTPUT_FIELDS[name] for name in SHARED}  # noqa: RUF012 (marshmallow's own name)

    id = fields.String(required=True, metadata={"description": "The message's id"})
    event_id = fields.String(
        required=True,
        metadata={"description": "The id of its event, which its callbacks carry as Idempotency-Key"},
    )
    event_name = fields.String(metadata={"description": "Its subject; absent if it has none"})
    state = fields.String(
        required=True,
        validate=validate.OneOf([state.value for state in State]),
        metadata={"description": "The state it is in, as every event"},
    )
    scheduled_at = Instant(required=True, metadata={"description": "The instant of its delivery"})
    due_at = Instant(metadata={"description": "When the next attempt is due; finished messages have none"})
    payload = fields.Raw(metadata={"description": f"`{MASK}` where the body was given as JSON"})
    metadata = fields.Dict(
        keys=fields.String(),
        values=fields.String(),
        metadata={"description": f"The names of its metadata, with `{MASK}` for the values"},
    )
    attempt = fields.Integer(metadata={"description": "Attempts made so far"})
    status = fields.List(
        fields.Nested(StatusLine), metadata={"description": "Its history, the oldest line first"}
    )
    attempts = fields.List(
        fields.Nested(AttemptLine), metadata={"description": "Its attempts, the oldest first"}
    )
    created_at = Instant(metadata={"description": "When it was scheduled"})
    archived_at = Instant(metadata={"description": "When it was finished"})
    unreadable = fields.String(
        metadata={
            "description": "Why its content cannot be shown; absent if it can. Cancelled messages keep"
            " no body, header values or metadata"
        }
    )
    corrupt = fields.Dict(
        keys=fields.String(),
        values=fields.String(),
        metadata={
            "description": "The corrupt fields of its stored document, each with the reason; absent if none"
        },
    )


class ScheduledMessage(MessageOutput):
    """The answer to a request for a message."""

    signing_secret = fields.String(
        metadata={"description": "Shown only in the answer that generates it, if `signing` was asked for"}
    )


class MessagePage(Listed):
    messages = fields.List(fields.Nested(MessageOutput), required=True)


class MessageResult(OutputSchema):
    """The result of the item at the same place in the request."""

    status = fields.Integer(
        required=True,
        metadata={
            "description": "The status that a request of its own would have: 201, 200 where the message was"
            " there already, or a problem's",
            "example": 201,
        },
    )
    id = fields.String(metadata={"description": "The id of the message"})
    event_id = fields.String(metadata={"description": "The id of its event"})
    scheduled_at = Instant(metadata={"description": "The instant of its delivery"})
    signing_secret = fields.String(
        metadata={"description": "Shown only in this answer, if `signing` was asked for"}
    )
    problem = fields.Nested(Problem, metadata={"description": "Why it was refused"})


class MessageBulkOutput(OutputSchema):
    created = fields.Integer(required=True, metadata={"description": "How many messages were made"})
    refused = fields.Integer(required=True, metadata={"description": "How many were refused"})
    results = fields.List(
        fields.Nested(MessageResult),
        required=True,
        metadata={"description": "One for each item, in the order of the request"},
    )


def message_shown(record: MessageRecord) -> View:
    """The fields of MessageOutput without those that have no value."""
    event, content = record.event, record.content
    view: View = {
        "id": message_id_of(event.id),
        "event_id": event.id,
        "state": event.state.value,
        "scheduled_at": event.run_time,
        "due_at": event.due_at,
        "attempt": event.attempt,
        "status": event.status,
        "attempts": event.attempts,
        "created_at": event.created_at,
        "archived_at": event.archived_at,
        "corrupt": event.corrupt,
    }
    view |= _content(content) if isinstance(content, Message) else {"unreadable": content.reason}
    return {name: value for name, value in view.items() if value is not None}


def _content(message: Message) -> View:
    return {
        "event_name": message.event_name,
        **_receiver(message.action),
        "method": message.action.method or None,
        "headers": dict(masked(message.headers)),
        "metadata": dict.fromkeys((name for name, _ in message.metadata), MASK),
        **_body(message.action.body),
        "queue": message.queue,
        "max_retries": message.retry.max_retries,
        "retry_backoff_seconds": message.retry.backoff_seconds,
        "retry_backoff_max_seconds": message.retry.backoff_max_seconds,
        "retry_codes": message.retry.codes,
        "timeout_seconds": message.timeout_seconds,
        "success_codes": message.success,
        "expire_after_seconds": message.lateness.expire_after_seconds,
        "on_success": message.on_success,
        "on_failure": message.on_failure,
        "signing": message.signing is not None,
    }


def _receiver(action: HttpAction) -> View:
    if action.destination is None:
        return {"callback_url": masked_url(action.url)}
    name = action.destination.rpartition(SEPARATOR)[2]
    return {"destination": name, "path": masked_url(action.url) or None}


def _body(body: Body | None) -> View:
    if body is None:
        return {}
    return {"payload" if body.kind is BodyKind.JSON else body.kind.value: MASK}
