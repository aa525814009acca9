"""The ids of messages. A message is its own event, and its event's id is derived from the message's id.

`msg_<id>`, and `<tenant>:msg_<id>` for a tenant that has a name. The underscore keeps the two kinds of events
apart: no schedule's id has one (letters, digits and hyphens), so no schedule's event can have a message's id.
"""

import hashlib
import re

from scheduler_app.domain.tenants import SEPARATOR, whole_id

PREFIX = "msg_"
MAX_MESSAGE_ID = 128
#: How the ids of notifications end: no message that people schedule may take one away.
_OF_NOTIFICATION = re.compile(r"-on-(success|failure|pause)(-[0-9]+)?\Z")


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


def notification_id(about: str, suffix: str) -> str:
    """The id of the message that tells of the event or schedule with the id `about`; `suffix` begins with
    `-on-`. Of an id that is too long it has the beginning and a hash."""
    own = _own(about)
    if len(own) + len(suffix) > MAX_MESSAGE_ID:
        digest = hashlib.sha256(own.encode()).hexdigest()[:32]
        own = f"{own[: MAX_MESSAGE_ID - len(suffix) - len(digest) - 1]}-{digest}"
    return own + suffix


def is_notification(message_id: str) -> bool:
    """Whether a message of this id is one that tells of an event or of a schedule."""
    return _OF_NOTIFICATION.search(message_id) is not None


def _own(event_id: str) -> str:
    """The id without its tenant."""
    return event_id.partition(SEPARATOR)[2] if SEPARATOR in event_id else event_id
