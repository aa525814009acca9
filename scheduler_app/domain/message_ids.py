"""The ids of messages. A message is its own event, and its event's id is derived from the message's id.

`msg_<id>`, and `<tenant>:msg_<id>` for a tenant that has a name. The underscore keeps the two kinds of events
apart: no schedule's id has one (letters, digits and hyphens), so no schedule's event can have a message's id.
"""

from scheduler_app.domain.tenants import SEPARATOR, whole_id

PREFIX = "msg_"


def message_event_id(message_id: str, *, tenant: str) -> str:
    """The id of a message's event, which is its `_id`, its Idempotency-Key and its `webhook-id`.

    Raises InvalidField for a tenant that cannot be one, and for an id with a colon.
    """
    return whole_id(tenant, f"{PREFIX}{message_id}" if SEPARATOR not in message_id else message_id)


def is_message(event_id: str) -> bool:
    """Whether an event's id is that of a message."""
    return _own(event_id).startswith(PREFIX)


def message_id_of(event_id: str) -> str:
    """The id of the message that an event is, as its owner gave it."""
    return _own(event_id).removeprefix(PREFIX)


def _own(event_id: str) -> str:
    """The id without its tenant."""
    return event_id.partition(SEPARATOR)[2] if SEPARATOR in event_id else event_id
