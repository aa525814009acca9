"""The table of the fields of heartbeats."""

from dataclasses import replace

from scheduler_app.domain.heartbeat import (
    DEFAULT_GRACE,
    LEAST_GRACE,
    MAX_GRACE,
    HeartbeatState,
)
from scheduler_app.domain.resource_fields import (
    ListOf,
    Moment,
    Null,
    Number,
    Object,
    ResourceField,
    Text,
    by_name,
)
from scheduler_app.domain.resources.schedule import SCHEDULE_FIELDS
from scheduler_app.domain.schedule import MAX_NOTE
from scheduler_app.domain.triggers import FIELDS

#: The fields that say when pings are due, which heartbeats have as schedules have them.
WHEN = tuple(name for name in FIELDS if name != "on_demand")
BESIDE = ("timezone", "gap", "overlap", "calendar", "on_holiday")

#: Every field of a heartbeat, in the order of specifications and answers.
HEARTBEAT = (
    ResourceField("name", Text(), "Its name, in the path", given=False, always_shown=True),
    *(replace(SCHEDULE_FIELDS[name], null=Null.NEVER) for name in (*WHEN, *BESIDE)),
    ResourceField(
        "grace_seconds",
        Number(LEAST_GRACE, MAX_GRACE),
        "How long after its time a ping may come, and how long a run may last that says when it begins",
        default=f"{DEFAULT_GRACE:g}",
    ),
    ResourceField("note", Text(1, MAX_NOTE, visible=True), f"What it is, in up to {MAX_NOTE} characters"),
    SCHEDULE_FIELDS["tags"],
    ResourceField(
        "state",
        Text(),
        "`new`: no ping has come yet; `up`; `started`: a run has begun and has not ended; `missed`: no ping"
        " came in time, or a run has failed",
        given=False,
        shown_words=tuple(each.value for each in HeartbeatState),
    ),
    ResourceField("due_at", Moment(), "When the next ping is due; absent if none is", given=False),
    ResourceField("succeeded_at", Moment(), "When the last ping of a success came", given=False),
    ResourceField(
        "started_at", Moment(), "When the run that has not ended began; absent without one", given=False
    ),
    ResourceField("missed_at", Moment(), "Since when it is missed; absent if it is not", given=False),
    ResourceField("missed_why", Text(), "Why it is missed, in words", given=False),
    ResourceField(
        "pings", ListOf(Object("ping")), "The newest pings, at most 20, the oldest first", given=False
    ),
    ResourceField(
        "output",
        Text(),
        "The first 10 KiB of what the last ping said that had a body; of a single heartbeat",
        given=False,
    ),
    ResourceField("description", Text(), "When pings are due, in words", given=False, computed=True),
    ResourceField("created_at", Moment(), "When it was created", given=False),
    ResourceField(
        "ping_url",
        Text(),
        "The URL to call; whoever has it can ping. Shown when it is made, and never again",
        given=False,
        computed=True,
    ),
    ResourceField("corrupt", Text(), "Why its document cannot be read", given=False, computed=True),
)
#: Every field by its name.
HEARTBEAT_FIELDS = by_name(HEARTBEAT)
