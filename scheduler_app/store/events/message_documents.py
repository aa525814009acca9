"""Messages as MongoDB keeps them: an event's document, with what it delivers beside its history.

Named as in a schedule's document, so that its secrets are sealed, opened and removed by the same functions.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from scheduler_app.actions.registry import kind_of
from scheduler_app.domain.event import Event
from scheduler_app.domain.field_types import Corrupt, Newer, fields, instant, number, optional, text, whole
from scheduler_app.domain.http_action import http_action
from scheduler_app.domain.message import Message, Timing, UnreadableMessage
from scheduler_app.domain.queues import CALLBACKS
from scheduler_app.domain.tenants import tenant_of
from scheduler_app.store.documents.delivery_fields import (
    delivery_document,
    lateness_document,
    notifies_document,
    read_delivery,
    read_lateness,
    read_notifies,
    read_signing,
    signing_document,
)
from scheduler_app.store.encryption import SecretBox, UnreadableSecret
from scheduler_app.store.events.documents import stored_queue, to_document
from scheduler_app.store.events.fields import MESSAGE_VERSION
from scheduler_app.store.mongo import Document
from scheduler_app.store.schedules.sealed_parts import ACTION_WITHOUT_SECRETS, action_kind, opened, sealed

#: The fields that hold what a message delivers.
CONTENT = {
    "action": 1,
    "sealed": 1,
    "signing": 1,
    "event_name": 1,
    "asked": 1,
    "retry": 1,
    "timeout_seconds": 1,
    "success": 1,
    "lateness": 1,
    "wiped": 1,
    "notifies": 1,
    "queue_by_destination": 1,
}
#: What a cancellation sets: nothing secret is left. `$$REMOVE` takes a field away.
WIPED: Document = {
    "action": ACTION_WITHOUT_SECRETS,
    "sealed": "$$REMOVE",
    "signing": "$$REMOVE",
    "wiped": True,
}


def to_message_document(event: Event, now: datetime, line_message: str, secret_box: SecretBox) -> Document:
    """A new message's document. Raises ValueError for an event without a message's content."""
    message = event.message
    if not isinstance(message, Message):
        raise ValueError(f"{event.id} has no content to store")
    document = to_document(event, now, line_message) | {
        "event_name": message.event_name,
        "asked": {
            "scheduled_at": message.timing.scheduled_at,
            "delay_seconds": message.timing.delay_seconds,
        },
        **delivery_document(message.retry, message.timeout_seconds, message.success),
        "lateness": lateness_document(message.lateness),
        "notifies": notifies_document(message.on_success, message.on_failure),
        **sealed_content(message, secret_box),
    }
    if message.queue == CALLBACKS != event.queue:
        document["queue_by_destination"] = True
    del document["schedule_id"]
    return {name: value for name, value in document.items() if value is not None}


def sealed_content(message: Message, secret_box: SecretBox) -> Document:
    """The fields of a message's document that depend on the key: what is secret, and `v`."""
    content: Document = {"v": MESSAGE_VERSION, "action": kind_of(message.action).to_document(message.action)}
    if message.signing is not None:
        content["signing"] = signing_document(message.signing)
    return sealed(content, secret_box)


def read_message(row: Mapping[str, Any], secret_box: SecretBox) -> Message | UnreadableMessage:
    """What a stored message delivers, or why that cannot be read."""
    try:
        return _message(row, secret_box)
    except (Newer, UnreadableSecret) as error:
        return UnreadableMessage(str(error), readable_elsewhere=True)
    except Corrupt as error:
        return UnreadableMessage(str(error))
    except Exception as error:  # a document edited by hand may cause any error
        return UnreadableMessage(f"{type(error).__name__}: {error}"[:300])


def _message(stored: Mapping[str, Any], secret_box: SecretBox) -> Message:
    row = opened(stored, secret_box)
    document = fields(row.get("action"), "action")
    action = http_action(action_kind(document).from_document(document))
    if action.destination is not None and tenant_of(action.destination) != tenant_of(row["_id"]):
        # It would be sent this tenant's secrets.
        raise Corrupt("action.destination is another tenant's")
    retry, timeout_seconds, success = read_delivery(row)
    return Message(
        action=action,
        event_name=optional(text, row.get("event_name"), "event_name"),
        timing=_timing(row.get("asked")),
        retry=retry,
        timeout_seconds=timeout_seconds,
        success=success,
        signing=read_signing(row.get("signing"), secret_box),
        queue=CALLBACKS if row.get("queue_by_destination") is True else stored_queue(row),
        hops=whole(row.get("hops") or 0, "hops"),
        lateness=read_lateness(row.get("lateness")),
        wiped=row.get("wiped") is True,
        **read_notifies(row.get("notifies")),
    )


def _timing(value: Any) -> Timing:
    asked = fields(value, "asked")
    return Timing(
        scheduled_at=optional(instant, asked.get("scheduled_at"), "asked.scheduled_at"),
        delay_seconds=optional(number, asked.get("delay_seconds"), "asked.delay_seconds"),
    )
