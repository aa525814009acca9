"""The tables of the fields of notifications and of silences."""

from scheduler_app.domain.cause_match import MAX_PATTERN, MAX_VALUES
from scheduler_app.domain.notification_rule import (
    LEAST_REMIND_SECONDS,
    MAX_AFTER_SECONDS,
    MAX_CHANNELS,
    MAX_HOURS,
    MAX_REMIND_SECONDS,
    Told,
)
from scheduler_app.domain.resource_fields import (
    ListOf,
    Moment,
    Name,
    Number,
    Object,
    ResourceField,
    Text,
    Word,
    computed,
)
from scheduler_app.domain.silence import MAX_REASON

#: What both are about.
MATCH = (
    ResourceField(
        "tags",
        ListOf(Text(1, MAX_PATTERN, visible=True), 1, MAX_VALUES),
        "Patterns, one of which a tag must match: `*` is any text, `?` one character",
    ),
    ResourceField(
        "schedules", ListOf(Name("schedule"), 1, MAX_VALUES), "Schedules, one of which must be affected"
    ),
    ResourceField(
        "destinations", ListOf(Name("destination"), 1, MAX_VALUES), "Destinations, one of which must fail"
    ),
)
_MATCH = "What it is about: all that is given must match; everything unless given"

#: When a notification may ring, as blackouts say when their windows begin.
HOURS = (
    ResourceField("rrule", Text(), "When a time begins at which it may ring, as an RFC 5545 recurrence"),
    ResourceField("cron", Text(), "The same as a cron expression", example="0 8 * * 1-5"),
    ResourceField("phrase", Text(), "The same in words"),
    ResourceField("timezone", Text(), "The zone of these times; `UTC` unless given"),
    ResourceField(
        "calendar", Name("calendar"), "The name of a calendar: on its closed days it does not ring"
    ),
    ResourceField(
        "duration_seconds",
        Number(1.0, MAX_HOURS.total_seconds()),
        "How long it lasts, in elapsed time",
        required=True,
    ),
)

NOTIFICATION = (
    ResourceField("name", Text(), "Its name, in the path", given=False, always_shown=True),
    ResourceField(
        "on",
        ListOf(Word(tuple(word.value for word in Told), Told), 1, len(Told)),
        "What is told; all but `dead_letter` unless given",
    ),
    ResourceField("match", Object("match"), _MATCH),
    ResourceField(
        "after_seconds",
        Number(0.0, MAX_AFTER_SECONDS),
        "What lasts for less is not told; 60 unless given",
    ),
    ResourceField(
        "remind_seconds",
        Number(LEAST_REMIND_SECONDS, MAX_REMIND_SECONDS),
        "How often it is told again while it lasts; never unless given",
    ),
    ResourceField("hours", Object("hours"), "When it may ring, else it waits; at any time unless given"),
    ResourceField(
        "to",
        ListOf(Object("channel"), 1, MAX_CHANNELS),
        "Who is told, by one or several channels",
        required=True,
    ),
    ResourceField("created_at", Moment(), "When it was set", given=False),
    computed(
        "signing_secret",
        Text(),
        "What webhooks are signed with (Standard Webhooks). Only in the answer that generated it",
    ),
    computed("corrupt", Text(), "Why its document cannot be read; it tells nothing"),
)

SILENCE = (
    ResourceField("name", Text(), "Its name, in the path", given=False, always_shown=True),
    ResourceField("match", Object("match"), _MATCH),
    ResourceField("until", Moment(), "When it ends", required=True),
    ResourceField("reason", Text(1, MAX_REASON, visible=True), "Why; whoever looks sees it", required=True),
    ResourceField("by", Text(), "The name of the key that set it; absent if none", given=False),
    ResourceField("created_at", Moment(), "When it was set", given=False),
)
