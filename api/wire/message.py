"""A message as it is asked for and as answers show it, and the filters of their list."""

from collections.abc import Callable
from functools import partial
from typing import Any

from marshmallow import ValidationError, post_load, validate, validates, validates_schema

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.bulk import MAX_BULK, ListOfResults
from scheduler_app.api.wire.event import AttemptLine, States, StatusLine
from scheduler_app.api.wire.field_types import MESSAGE_WORDS, DestinationId, Instant, check_visible
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OutputSchema, Problem, attributes, without_none
from scheduler_app.api.wire.paging import Listed, Paging
from scheduler_app.api.wire.resource_fields import (
    Show,
    draft_values,
    new_fields,
    output_fields,
    shows,
    view_of,
)
from scheduler_app.api.wire.schedule import CallbackInput, note_missing_receiver
from scheduler_app.api.wire.schedule_fields import REQUEST_SHOWN, read_body
from scheduler_app.domain.http_action import HttpAction
from scheduler_app.domain.ids import is_notification, message_id_of, name_of
from scheduler_app.domain.masking import MASK, masked
from scheduler_app.domain.message import MAX_EVENT_NAME, METADATA_PREFIX, Message, Timing
from scheduler_app.domain.message_draft import MessageDraft
from scheduler_app.domain.notice_action import NoticeAction
from scheduler_app.domain.resources.message import MESSAGE, MESSAGE_FIELDS, OWN, SHARED, TIMING
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.domain.states import State
from scheduler_app.store.events.messages import MessageRecord

BODY_FIELDS = ("payload", "body", "body_base64")
#: What usually differs between the messages of a bulk, which have all the rest in common. `_own_parts` puts
#: them into the draft of a message; all others go into its draft of a schedule.
OF_ONE = tuple(dict.fromkeys((*(row.name for row in (*OWN, *TIMING)), *BODY_FIELDS)))


class TimingInput(InputSchema):
    """When a message is to be delivered."""

    class Meta(InputSchema.Meta):
        include = new_fields(TIMING)

    @validates_schema
    def check_timing(self, data: Loaded, **_: object) -> None:
        if "scheduled_at" in data and "delay_seconds" in data:
            raise ValidationError("is given beside scheduled_at: give one of them", "delay_seconds")


class RescheduleInput(TimingInput):
    """A message's new time."""

    @validates_schema
    def check_given(self, data: Loaded, **_: object) -> None:
        if "scheduled_at" not in data and "delay_seconds" not in data:
            raise ValidationError("is missing: give it, or delay_seconds", "scheduled_at")

    @post_load
    def timing(self, data: Loaded, **_: object) -> Timing:
        return Timing(**data)


class NewMessage(TimingInput, CallbackInput):
    """What POST takes, and each item of a bulk."""

    BODIES = BODY_FIELDS
    HEADERS = {"headers": "", "metadata": METADATA_PREFIX}  # noqa: RUF012 (a ClassVar of the base)

    class Meta(InputSchema.Meta):
        include = new_fields(MESSAGE)

    def check_receiver(self, data: Loaded, problems: dict[str, list[str]]) -> None:
        note_missing_receiver(data, problems)

    @validates("id")
    def check_id(self, value: str, **_: object) -> None:
        if value in MESSAGE_WORDS:
            raise ValidationError(f"{value} is a word of this API's paths; take another")
        if is_notification(value):
            raise ValidationError("ends as the ids of notifications do (-on-failure); take another")

    @post_load
    def draft(self, data: Loaded, **_: object) -> MessageDraft:
        own = _own_parts(data)
        return MessageDraft(draft=ScheduleDraft(**draft_values(MESSAGE_FIELDS, data)), **own)

    def like(self, item: Loaded, request: ScheduleDraft) -> MessageDraft | None:
        """The message of an item whose fields beside OF_ONE are known to make `request`; None if something is
        wrong with its own, for whoever reads it as a whole to say what."""
        try:
            data = {
                name: self.fields[name].deserialize(item[name], name, item) for name in OF_ONE if name in item
            }
            problems: dict[str, list[str]] = {}
            self.check_headers_and_body(data, problems)
            self.check_timing(data)
            if "id" in data:
                self.check_id(data["id"])
            return None if problems else MessageDraft(draft=request, **_own_parts(data))
        except ValidationError:
            return None


def _own_parts(data: Loaded) -> Loaded:
    """Takes the fields in OF_ONE out of `data`; returns those of a MessageDraft. Raises ValidationError."""
    timing = Timing(**{row.name: data.pop(row.name) for row in TIMING if row.name in data})
    own = {name: data.pop(name) for name in OF_ONE if name in data}
    return {"timing": timing, **draft_values(MESSAGE_FIELDS, own, _READERS)}


def _read_body(name: str, value: Any) -> Any:
    """The body as a draft has it. Raises ValidationError."""
    kind = "json" if name == "payload" else name
    try:
        return read_body(kind, value)
    except ValidationError as error:
        raise ValidationError(error.normalized_messages()[kind], name) from None


_READERS = {name: partial(_read_body, name) for name in BODY_FIELDS}


class MessageList(ListOfResults):
    """Messages, each of which is accepted or refused by itself. What one has in common with the one before,
    in the same words, is not read again: most bulks repeat all but OF_ONE."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        self.check_length(value)
        schema, found = NewMessage(), []
        known, request = "", ScheduleDraft()
        for item in value:
            rest = _written(item)
            one = schema.like(item, request) if rest is not None and rest == known else None
            if one is None:
                one = self._one(item)
                if rest is not None and isinstance(one, MessageDraft):
                    known, request = rest, one.draft
            found.append(one)
        return found


def _written(item: Any) -> str | None:
    """The fields beside OF_ONE as they were written, so that 1 and true differ; None if values are deep."""
    if not isinstance(item, dict):
        return None
    rest = {name: value for name, value in item.items() if name not in _OWN}
    return repr(rest) if all(map(_is_flat, rest.values())) else None


_OWN = frozenset(OF_ONE)


def _is_flat(value: Any) -> bool:
    """Whether no value in it has members of its own."""
    if isinstance(value, dict):
        value = list(value.values())
    members = value if isinstance(value, list) else (value,)
    return not any(isinstance(member, dict | list) for member in members)


class MessageBulkInput(InputSchema):
    max_values = 1_000_000
    messages = MessageList(
        NewMessage,
        "Each is accepted or refused by itself",
        required=True,
        validate=validate.Length(1, MAX_BULK),
    )


class MessageFilter(Paging):
    """The parameters of the list of messages."""

    event_name = fields.String(
        "Their subject",
        validate=[validate.Length(1, MAX_EVENT_NAME), check_visible],
        example="orders.reminder",
    )
    destination = DestinationId("The destination that they name")
    since = Instant("Those scheduled for this instant or later", data_key="after")
    until = Instant("Those scheduled for before this instant", data_key="before")
    state = States()


class MessageOutput(OutputSchema):
    """A message with its history."""

    class Meta(OutputSchema.Meta):
        include = output_fields((*OWN, *SHARED))

    id = fields.String("The message's id", required=True)
    event_id = fields.String(
        "The id of its event, which its callbacks carry as Idempotency-Key", required=True
    )
    state = fields.String(
        "The state it is in, as every event",
        required=True,
        validate=validate.OneOf([state.value for state in State]),
    )
    scheduled_at = Instant("The instant of its delivery", required=True)
    due_at = Instant("When the next attempt is due; finished messages have none")
    attempt = fields.Integer("Attempts made so far")
    status = fields.List(StatusLine, "Its history, the oldest line first")
    attempts = fields.List(AttemptLine, "Its attempts, the oldest first")
    created_at = Instant("When it was scheduled")
    archived_at = Instant("When it was finished")
    receiver = fields.String(
        "Of what a notification says by mail or by a service: `email`, or the service and a digest of whom it"
        " is for; its text is not shown"
    )
    unreadable = fields.String(
        "Why its content cannot be shown; absent if it can. Cancelled messages keep"
        " no body, header values or metadata"
    )
    corrupt = fields.Dict(
        "The corrupt fields of its stored document, each with the reason; absent if none",
        keys=fields.String(),
        values=fields.String(),
    )


class ScheduledMessage(MessageOutput):
    """The answer to a request for a message."""

    signing_secret = fields.String("Shown only in the answer that generates it, if `signing` was asked for")


class MessagePage(Listed):
    messages = fields.List(MessageOutput, required=True)


class MessageResult(OutputSchema):
    """The result of the item at the same place in the request."""

    status = fields.Integer(
        "The status that a request of its own would have: 201, 200 where the message was"
        " there already, or a problem's",
        required=True,
        example=201,
    )
    id = fields.String("The id of the message")
    event_id = fields.String("The id of its event")
    scheduled_at = Instant("The instant of its delivery")
    signing_secret = fields.String("Shown only in this answer, if `signing` was asked for")
    problem = fields.Nested(Problem, "Why it was refused")


class MessageBulkOutput(OutputSchema):
    created = fields.Integer("How many messages were made", required=True)
    refused = fields.Integer("How many were refused", required=True)
    results = fields.List(MessageResult, "One for each item, in the order of the request", required=True)


def message_shown(record: MessageRecord) -> View:
    """The fields of MessageOutput without those that have no value."""
    event, content = record.event, record.content
    view: View = {
        "id": message_id_of(event.id),
        "event_id": name_of(event.id),
        "state": event.state.value,
        "scheduled_at": event.run_time,
        **attributes(event, "due_at", "attempt", "status", "attempts"),
        **attributes(event, "created_at", "archived_at", "corrupt"),
    }
    view |= view_of(_CONTENT, content) if isinstance(content, Message) else {"unreadable": content.reason}
    if isinstance(content, Message) and isinstance(content.action, NoticeAction):
        view["receiver"] = content.action.receiver
    return without_none(view)


def _of_request(show: Callable[[HttpAction], object]) -> Show:
    """Nothing for a notice, which is no request."""
    return lambda message: show(message.action) if isinstance(message.action, HttpAction) else None


#: What shows each field of its content. Most are shown as a message has them.
_CONTENT = shows(
    (*OWN, *SHARED),
    {
        **{name: _of_request(show) for name, show in REQUEST_SHOWN.items()},
        "payload": _of_request(REQUEST_SHOWN["json"]),
        "headers": lambda message: dict(masked(message.headers)),
        "metadata": lambda message: dict.fromkeys((name for name, _ in message.metadata), MASK),
        "signing": lambda message: message.signing is not None,
    },
)
