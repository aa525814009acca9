"""What is sent, and how it is delivered: the fields that schedules, messages and destinations share."""

from scheduler_app.domain.action import CALLBACKS, COMMANDS, MAX_QUEUE
from scheduler_app.domain.deliverable import DEFAULT_TIMEOUT_SECONDS
from scheduler_app.domain.http_action import (
    DEFAULT_METHOD,
    DEFAULT_METHOD_WITH_BODY,
    MAX_BODY_BYTES,
    MAX_HEADERS,
    METHODS,
)
from scheduler_app.domain.lateness import LEAST_SECONDS, MAX_SECONDS
from scheduler_app.domain.masking import HARMLESS, MASK
from scheduler_app.domain.resource_fields import (
    Flag,
    Json,
    Moment,
    Name,
    Null,
    Number,
    Pairs,
    ResourceField,
    Statuses,
    Text,
    Url,
    UrlPath,
    Whole,
    Word,
)
from scheduler_app.domain.retry import DEFAULT_RETRY, MAX_BACKOFF_SECONDS, MAX_RETRIES, MAX_TIMEOUT_SECONDS

METHOD = Word(METHODS, error="must be one of {choices}, in capital letters")
LEAST_WAIT = 0.1
_BACKOFF = Number(LEAST_WAIT, MAX_BACKOFF_SECONDS, least_stored=0.0)

CALLBACK_URL = ResourceField(
    "callback_url",
    Url(),
    "The http or https URL to call",
    default="this, `destination` or `action` required",
    example="https://example.com/backup",
    draft="url",
    shown_meaning=f"The URL to call, with `{MASK}` for the values of its query",
    aliases="url uri callback endpoint target webhook webhook_url callback_uri link address",
)

REQUEST = (
    CALLBACK_URL,
    ResourceField(
        "destination",
        Name("destination"),
        "The name of a destination to call, instead of `callback_url`: it says how often and how"
        " fast, and what a request needs besides",
        null=Null.ALWAYS,
    ),
    ResourceField(
        "path",
        UrlPath(),
        "The path and query below the destination's URL, such as `/orders?kind=new`",
        default="empty",
        example="/orders",
        shown_meaning=f"The path and query below the destination's URL, with `{MASK}` for the values of the"
        " query",
    ),
    ResourceField(
        "method",
        METHOD,
        "The HTTP method, in capital letters",
        default=f"the destination's; `{DEFAULT_METHOD}`; with a body `{DEFAULT_METHOD_WITH_BODY}`",
        aliases="http_method verb",
    ),
    ResourceField(
        "headers",
        Pairs(MAX_HEADERS),
        f"Header names and values, up to {MAX_HEADERS}. Answers mask the values of all but harmless"
        " names; a mask that is sent back leaves the value as it is while the URL's scheme, host and port"
        " stay the same",
        shown_meaning=f"Header names and values, with `{MASK}` for the values of all but harmless names"
        f" ({', '.join(sorted(HARMLESS))})",
        aliases="header http_headers",
    ),
    ResourceField(
        "body",
        Text(invalid="must be text; give a JSON value as json instead"),
        f"The body as text, up to {MAX_BODY_BYTES // 1024} KiB; answers mask it",
        null=Null.ALWAYS,
        shown_meaning=f"`{MASK}` where the body was given as text",
    ),
    ResourceField(
        "json",
        Json(),
        "The body as a JSON value, instead of `body`",
        draft="body",
        shown_meaning=f"`{MASK}` where the body was given as JSON",
    ),
    ResourceField(
        "body_base64",
        Text(),
        "The body in base64, for one that is not text, instead of `body`",
        draft="body",
        shown_meaning=f"`{MASK}` where the body was given in base64",
    ),
)

QUEUE = ResourceField(
    "queue",
    Name("queue"),
    f"Which workers deliver its events: those started with `-Q` and this name, of up to {MAX_QUEUE}"
    " letters, digits and hyphens",
    default=f"`{CALLBACKS}`; of a command `{COMMANDS}`",
    shown_meaning="Which workers deliver its events",
)

RETRY = (
    ResourceField(
        "max_retries",
        Whole(0, MAX_RETRIES),
        f"How many attempts may follow the first one, 0 to {MAX_RETRIES}",
        default="`WORKER_MAX_RETRIES`",
        at="retry.max_retries",
        aliases="retries retry attempts max_attempts retry_count",
    ),
    ResourceField(
        "retry_backoff_seconds",
        _BACKOFF,
        "The delay before the first retry. Each later one doubles it, and each delay is drawn from"
        " its upper half",
        default=f"{DEFAULT_RETRY.backoff_seconds:g}",
        draft="backoff_seconds",
        at="retry.backoff_seconds",
        aliases="backoff retry_delay retry_backoff",
    ),
    ResourceField(
        "retry_backoff_max_seconds",
        _BACKOFF,
        "The longest delay before a retry",
        default=f"{DEFAULT_RETRY.backoff_max_seconds:g}",
        draft="backoff_max_seconds",
        at="retry.backoff_max_seconds",
    ),
    ResourceField(
        "retry_codes",
        Statuses(),
        'The statuses after which an attempt is retried: numbers, `"5xx"`, `"500-504"`',
        default='`[408, 425, 429, "5xx"]`',
        at="retry.codes",
    ),
)

TIMEOUT = ResourceField(
    "timeout_seconds",
    Number(LEAST_WAIT, MAX_TIMEOUT_SECONDS, least_stored=0.001),
    f"How long the whole answer may take, up to {MAX_TIMEOUT_SECONDS:g} seconds",
    default=f"{DEFAULT_TIMEOUT_SECONDS:g}",
    aliases="timeout timeout_ms",
)

SUCCESS = ResourceField(
    "success_codes",
    Statuses(),
    "The statuses that complete an event, given as `retry_codes` are",
    default='`["2xx"]`',
    draft="success",
)

NOTIFIED = (
    ResourceField(
        "on_success",
        Name("destination"),
        "The name of a destination that is told of each event that was completed: by a message with"
        " the event, its attempts and the beginning of the answer. A null takes it away",
        null=Null.IN_EDITS,
        shown_meaning="The destination that is told of each event that was completed",
    ),
    ResourceField(
        "on_failure",
        Name("destination"),
        "The name of a destination that is told of each event that ended in error, as `on_success`",
        null=Null.IN_EDITS,
        shown_meaning="The destination that is told of each event that ended in error",
    ),
)

SIGNING = ResourceField(
    "signing",
    Flag(),
    "Whether callbacks are signed (Standard Webhooks). The answer that generates a secret is the"
    " only one that shows it",
    default="`false`",
    shown_meaning="Whether its callbacks are signed",
    aliases="sign signed secret signing_secret",
)

SIGNING_SINCE = ResourceField(
    "signing_since",
    Moment(),
    "When the signing secret in force was generated",
    at="signing.since",
    given=False,
)

EXPIRY = ResourceField(
    "expire_after_seconds",
    Number(LEAST_SECONDS, MAX_SECONDS),
    "How long after it was due an event is given up, its retries included; null for never",
    at="lateness.expire_after_seconds",
    null=Null.ALWAYS,
    aliases="expire_after expires expires_after ttl deadline",
)
