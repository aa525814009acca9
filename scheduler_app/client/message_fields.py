"""The fields of a message as the API takes them, and as answers show them, each with its meaning.

Generated from the table of its fields by `make docs`: do not edit it.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypedDict

from scheduler_app.client.record import Record


class MessageFields(TypedDict, total=False):
    """What a message delivers, and how; None is as if a field were not given."""

    id: Annotated[
        str | None,
        "An id of your own: 1 to 128 letters, digits, hyphens and underscores. The same content under an id "
        "that is known is answered as the first time and delivered once; generated unless given",
    ]
    event_name: Annotated[str | None, "The subject, which the callback carries as X-Scheduler-Event-Name"]
    payload: Annotated[object | None, "The body as a JSON value, instead of `body`"]
    metadata: Annotated[
        Mapping[str, str] | None,
        "Names and values, each of which the callback carries as a header X-Scheduler-Metadata-<name>; "
        "answers mask the values",
    ]
    path: Annotated[str | None, "The path and query below the destination's URL, such as `/orders?kind=new`"]
    method: Annotated[
        Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] | None,
        "The HTTP method, in capital letters; the destination's, or POST, unless given",
    ]
    headers: Annotated[
        Mapping[str, str] | None,
        "Header names and values, up to 50. Answers mask the values of all but harmless names; a mask that "
        "is sent back leaves the value as it is while the URL's scheme, host and port stay the same",
    ]
    queue: Annotated[
        str | None,
        "Which workers deliver it: those started with `-Q` and this name, of up to 64 letters, digits and "
        "hyphens",
    ]
    max_retries: Annotated[int | None, "How many attempts may follow the first one, 0 to 50"]
    retry_backoff_seconds: Annotated[
        float | None,
        "The delay before the first retry. Each later one doubles it, and each delay is drawn from its upper"
        " half",
    ]
    retry_backoff_max_seconds: Annotated[float | None, "The longest delay before a retry"]
    retry_codes: Annotated[
        Sequence[int | str] | None,
        'The statuses after which an attempt is retried: numbers, `"5xx"`, `"500-504"`',
    ]
    timeout_seconds: Annotated[float | None, "How long the whole answer may take, up to 300 seconds"]
    success_codes: Annotated[
        Sequence[int | str] | None, "The statuses that complete an event, given as `retry_codes` are"
    ]
    on_success: Annotated[
        str | None,
        "The name of a destination that is told when the message was delivered, by another message",
    ]
    on_failure: Annotated[str | None, "The same for a message that ended in error"]
    expire_after_seconds: Annotated[
        float | None, "How long after it was due an event is given up, its retries included; null for never"
    ]
    signing: Annotated[
        bool | None,
        "Whether callbacks are signed (Standard Webhooks). The answer that generates a secret is the only "
        "one that shows it",
    ]


class MessageValues(Record):
    """What an answer says about what a message delivers; None is what does not apply to it."""

    #: The subject, which the callback carries as X-Scheduler-Event-Name
    event_name: str | None = None
    #: The body as a JSON value, instead of `body`
    payload: object | None = None
    #: Names and values, each of which the callback carries as a header X-Scheduler-Metadata-<name>;
    #: answers mask the values
    metadata: Mapping[str, str] | None = None
    #: The http or https URL to call
    callback_url: str | None = None
    #: The name of a destination to call, instead of `callback_url`: it says how often and how fast, and
    #: what a request needs besides
    destination: str | None = None
    #: The path and query below the destination's URL, such as `/orders?kind=new`
    path: str | None = None
    #: The HTTP method, in capital letters; the destination's, or POST, unless given
    method: str | None = None
    #: Header names and values, up to 50. Answers mask the values of all but harmless names; a mask that
    #: is sent back leaves the value as it is while the URL's scheme, host and port stay the same
    headers: Mapping[str, str] | None = None
    #: The body as text, up to 256 KiB; answers mask it
    body: str | None = None
    #: The body in base64, for one that is not text, instead of `body`
    body_base64: str | None = None
    #: Which workers deliver it: those started with `-Q` and this name, of up to 64 letters, digits and
    #: hyphens
    queue: str | None = None
    #: How many attempts may follow the first one, 0 to 50
    max_retries: int | None = None
    #: The delay before the first retry. Each later one doubles it, and each delay is drawn from its upper
    #: half
    retry_backoff_seconds: float | None = None
    #: The longest delay before a retry
    retry_backoff_max_seconds: float | None = None
    #: The statuses after which an attempt is retried: numbers, `"5xx"`, `"500-504"`
    retry_codes: tuple[int | str, ...] | None = None
    #: How long the whole answer may take, up to 300 seconds
    timeout_seconds: float | None = None
    #: The statuses that complete an event, given as `retry_codes` are
    success_codes: tuple[int | str, ...] | None = None
    #: The name of a destination that is told when the message was delivered, by another message
    on_success: str | None = None
    #: The same for a message that ended in error
    on_failure: str | None = None
    #: How long after it was due an event is given up, its retries included; null for never
    expire_after_seconds: float | None = None
    #: Whether callbacks are signed (Standard Webhooks). The answer that generates a secret is the only
    #: one that shows it
    signing: bool | None = None
