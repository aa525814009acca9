"""The table of a message's fields: those that it has as a schedule has them, and its own. What answers show
of its event stands in `api/wire/message.py`.
"""

from dataclasses import replace

from scheduler_app.domain.action import MAX_QUEUE
from scheduler_app.domain.http_action import MAX_HEADERS
from scheduler_app.domain.masking import MASK
from scheduler_app.domain.message import DEFAULT_MESSAGE_METHOD, MAX_EVENT_NAME, METADATA_PREFIX
from scheduler_app.domain.resource_fields import (
    Json,
    Moment,
    Name,
    Number,
    Pairs,
    ResourceField,
    Text,
    by_name,
)
from scheduler_app.domain.resources.delivery import (
    EXPIRY,
    NOTIFIED,
    QUEUE,
    REQUEST,
    RETRY,
    SIGNING,
    SUCCESS,
    TIMEOUT,
)
from scheduler_app.domain.triggers.delay_seconds import MAX_DELAY_SECONDS

#: What a schedule's fields mean for a message, where that differs.
_MEANINGS = {
    "on_success": "The name of a destination that is told when the message was delivered, by another message",
    "on_failure": "The same for a message that ended in error",
    "queue": f"Which workers deliver it: those started with `-Q` and this name, of up to {MAX_QUEUE}"
    " letters, digits and hyphens",
    "method": f"The HTTP method, in capital letters; the destination's, or {DEFAULT_MESSAGE_METHOD}, unless"
    " given",
}

#: The fields that a message has as a schedule has them. They reach it by the draft of a schedule.
SHARED = tuple(
    replace(row, meaning=_MEANINGS.get(row.name, row.meaning), shown_meaning=row.shown_meaning or row.meaning)
    for row in (*REQUEST, QUEUE, *RETRY, TIMEOUT, SUCCESS, *NOTIFIED, EXPIRY, SIGNING)
    if row.name != "json"  # it is a message's payload
)

TIMING = (
    ResourceField(
        "scheduled_at",
        Moment(),
        "The instant of delivery, with an offset; one that has passed means at once",
        example="2030-01-05T12:00:00Z",
        at="asked.scheduled_at",
        shown=False,
        sparse=True,
    ),
    ResourceField(
        "delay_seconds",
        Number(0, MAX_DELAY_SECONDS),
        "The delay from now, in seconds, instead of `scheduled_at`",
        at="asked.delay_seconds",
        shown=False,
        sparse=True,
    ),
)

EVENT_NAME = ResourceField(
    "event_name",
    Text(1, MAX_EVENT_NAME, visible=True),
    "The subject, which the callback carries as X-Scheduler-Event-Name",
    example="orders.reminder",
    shown_meaning="Its subject; absent if it has none",
    sparse=True,
)

#: What is a message's own, and usually differs between the messages of a bulk.
OWN = (
    ResourceField(
        "id",
        Name("message"),
        "An id of your own: 1 to 128 letters, digits, hyphens and underscores. The same content"
        " under an id that is known is answered as the first time and delivered once; generated unless"
        " given",
        shown=False,
    ),
    EVENT_NAME,
    ResourceField(
        "payload",
        Json(),
        "The body as a JSON value, instead of `body`",
        draft="body",
        shown_meaning=f"`{MASK}` where the body was given as JSON",
    ),
    ResourceField(
        "metadata",
        Pairs(MAX_HEADERS),
        "Names and values, each of which the callback carries as a header"
        f" {METADATA_PREFIX}<name>; answers mask the values",
        shown_meaning=f"The names of its metadata, with `{MASK}` for the values",
    ),
)

#: Every field that a request may give.
MESSAGE = (*TIMING, *OWN, *SHARED)
MESSAGE_FIELDS = by_name(MESSAGE)
