"""The fields of a destination as the API takes them, and as answers show them, each with its meaning.

Generated from the table of its fields by `make docs`: do not edit it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal, TypedDict

from scheduler_app.client.record import Record


class DestinationFields(TypedDict, total=False):
    """The fields of a destination; None takes one away."""

    url: Annotated[str, "The http or https URL to call, with a query where all need one"]
    method: Annotated[
        Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] | None,
        "The method of schedules that give none",
    ]
    headers: Annotated[
        Mapping[str, str], "Sent with every request; a schedule's header of the same name replaces one"
    ]
    auth: Annotated[
        Mapping[str, str] | None,
        "The credentials of every request: `basic` with `username` and `password`, or `bearer` with `token`;"
        " answers mask them",
    ]
    allowed_methods: Annotated[Sequence[str], "The methods that schedules may use; all of them unless given"]
    signing: Annotated[
        bool,
        "Whether requests are signed (Standard Webhooks). The answer that generates a secret is the only one"
        " that shows it",
    ]
    max_retries: Annotated[
        int | None, "For all that come here: how many attempts may follow the first one, 0 to 50"
    ]
    retry_backoff_seconds: Annotated[
        float | None,
        "For all that come here: the delay before the first retry. Each later one doubles it, and each delay"
        " is drawn from its upper half",
    ]
    retry_backoff_max_seconds: Annotated[
        float | None, "For all that come here: the longest delay before a retry"
    ]
    retry_codes: Annotated[
        Sequence[int | str] | None,
        'For all that come here: the statuses after which an attempt is retried: numbers, `"5xx"`, '
        '`"500-504"`',
    ]
    success_codes: Annotated[
        Sequence[int | str] | None,
        "For all that come here: the statuses that complete an event, given as `retry_codes` are",
    ]
    timeout_seconds: Annotated[
        float | None, "For all that come here: how long the whole answer may take, up to 300 seconds"
    ]
    rate_per_second: Annotated[
        float | None, "How many requests may start each second, of all workers together"
    ]
    burst: Annotated[int, "How many may start at one instant after a quiet time; 1 unless given"]
    concurrency: Annotated[int | None, "How many requests may be in flight, of all workers together"]
    breaker: Annotated[
        Mapping[str, float] | None,
        "When to stop calling a receiver that fails, and for how long: after `failures` in a row nothing is "
        "sent for `open_seconds`; then one probe at a time",
    ]
    paused: Annotated[bool, "Nothing is sent; what is due waits until it is resumed"]
    queue: Annotated[
        str | None, "Which workers send what comes here, where the schedule or message names no queue"
    ]


class DestinationValues(Record):
    """What an answer says about a destination; None is what does not apply to it."""

    #: Its name, in the path
    name: str
    #: The http or https URL to call, with a query where all need one
    url: str | None = None
    #: The method of schedules that give none
    method: str | None = None
    #: Sent with every request; a schedule's header of the same name replaces one
    headers: Mapping[str, str] | None = None
    #: The credentials of every request: `basic` with `username` and `password`, or `bearer` with `token`;
    #: answers mask them
    auth: Mapping[str, str] | None = None
    #: The methods that schedules may use; all of them unless given
    allowed_methods: tuple[str, ...] | None = None
    #: Whether requests are signed (Standard Webhooks). The answer that generates a secret is the only one
    #: that shows it
    signing: bool | None = None
    #: When the signing secret in force was generated
    signing_since: datetime | None = None
    #: Only in the answer that generated it: a repeated request is answered with a mask
    signing_secret: str | None = None
    #: For all that come here: how many attempts may follow the first one, 0 to 50
    max_retries: int | None = None
    #: For all that come here: the delay before the first retry. Each later one doubles it, and each delay
    #: is drawn from its upper half
    retry_backoff_seconds: float | None = None
    #: For all that come here: the longest delay before a retry
    retry_backoff_max_seconds: float | None = None
    #: For all that come here: the statuses after which an attempt is retried: numbers, `"5xx"`,
    #: `"500-504"`
    retry_codes: tuple[int | str, ...] | None = None
    #: For all that come here: the statuses that complete an event, given as `retry_codes` are
    success_codes: tuple[int | str, ...] | None = None
    #: For all that come here: how long the whole answer may take, up to 300 seconds
    timeout_seconds: float | None = None
    #: How many requests may start each second, of all workers together
    rate_per_second: float | None = None
    #: How many may start at one instant after a quiet time; 1 unless given
    burst: int | None = None
    #: How many requests may be in flight, of all workers together
    concurrency: int | None = None
    #: When to stop calling a receiver that fails, and for how long: after `failures` in a row nothing is
    #: sent for `open_seconds`; then one probe at a time
    breaker: Mapping[str, float] | None = None
    #: Nothing is sent; what is due waits until it is resumed
    paused: bool | None = None
    #: Which workers send what comes here, where the schedule or message names no queue
    queue: str | None = None
    #: How many times it was edited, from 1
    version: int | None = None
    #: When it was created
    created_at: datetime | None = None
    #: When it was last edited
    updated_at: datetime | None = None
