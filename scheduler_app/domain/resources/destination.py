"""The table of a destination's fields. A new field of a destination is one row of it."""

from dataclasses import replace

from scheduler_app.domain.destination import (
    LEAST_RATE,
    MAX_BURST,
    MAX_CONCURRENCY,
    MAX_RATE,
)
from scheduler_app.domain.http_action import MAX_HEADERS, METHODS
from scheduler_app.domain.resource_fields import (
    Flag,
    ListOf,
    Moment,
    Name,
    Null,
    Number,
    Object,
    Pairs,
    ResourceField,
    Text,
    Whole,
    by_name,
    computed,
)
from scheduler_app.domain.resources.delivery import METHOD, RETRY, SIGNING_SINCE, SUCCESS, TIMEOUT


def _for_all(row: ResourceField) -> ResourceField:
    """A field of schedules that a destination may decide for all that name it."""
    meaning = f"For all that come here: {row.meaning[0].lower()}{row.meaning[1:]}"
    return replace(row, at="", null=Null.ALWAYS, meaning=meaning)


NAME = ResourceField("name", Name("destination"), "Its name, in the path", given=False, always_shown=True)

#: What is sent to it.
REQUEST = (
    ResourceField(
        "url", Text(), "The http or https URL to call, with a query where all need one", required=True
    ),
    ResourceField("method", METHOD, "The method of schedules that give none", null=Null.ALWAYS),
    ResourceField(
        "headers",
        Pairs(MAX_HEADERS),
        "Sent with every request; a schedule's header of the same name replaces one",
    ),
    ResourceField(
        "auth",
        Object("auth", values="str"),
        "The credentials of every request: `basic` with `username` and `password`, or `bearer` with"
        " `token`; answers mask them",
        null=Null.ALWAYS,
    ),
    ResourceField(
        "allowed_methods",
        ListOf(METHOD, 1, len(METHODS)),
        "The methods that schedules may use; all of them unless given",
    ),
    ResourceField(
        "signing",
        Flag(),
        "Whether requests are signed (Standard Webhooks). The answer that generates a secret is the"
        " only one that shows it",
        shown_meaning="Whether requests are signed (Standard Webhooks)",
    ),
    SIGNING_SINCE,
    computed(
        "signing_secret",
        Text(),
        "Only in the answer that generated it: a repeated request is answered with a mask",
    ),
)

#: How much of it is sent.
LIMITS = (
    ResourceField(
        "rate_per_second",
        Number(LEAST_RATE, MAX_RATE),
        "How many requests may start each second, of all workers together",
        null=Null.ALWAYS,
    ),
    ResourceField(
        "burst", Whole(1, MAX_BURST), "How many may start at one instant after a quiet time; 1 unless given"
    ),
    ResourceField(
        "concurrency",
        Whole(1, MAX_CONCURRENCY),
        "How many requests may be in flight, of all workers together",
        null=Null.ALWAYS,
    ),
    ResourceField(
        "breaker",
        Object("breaker", values="float"),
        "When to stop calling a receiver that fails, and for how long: after `failures` in a row"
        " nothing is sent for `open_seconds`; then one probe at a time",
        null=Null.ALWAYS,
    ),
    ResourceField("paused", Flag(), "Nothing is sent; what is due waits until it is resumed"),
    ResourceField(
        "queue",
        Name("queue"),
        "Which workers send what comes here, where the schedule or message names no queue",
        null=Null.ALWAYS,
    ),
)

#: Every field, in the order of specifications and answers.
DESTINATION = (
    NAME,
    *REQUEST,
    *map(_for_all, (*RETRY, SUCCESS, TIMEOUT)),
    *LIMITS,
    ResourceField("version", Whole(1), "How many times it was edited, from 1", given=False),
    ResourceField("created_at", Moment(), "When it was created", given=False),
    ResourceField("updated_at", Moment(), "When it was last edited", given=False),
)
#: Every field by its name.
DESTINATION_FIELDS = by_name(DESTINATION)
