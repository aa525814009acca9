"""The tables of the fields of kill switches and of blackouts."""

from dataclasses import replace

from scheduler_app.domain.blackout import KINDS, LEAST_DURATION, MAX_DURATION, POLICIES
from scheduler_app.domain.resource_fields import (
    Flag,
    Moment,
    Name,
    Number,
    Object,
    ResourceField,
    Text,
    Whole,
    Word,
)
from scheduler_app.domain.resources.schedule import SCHEDULE_FIELDS, TAG
from scheduler_app.domain.schedule import MAX_NOTE

TARGETS = (
    ResourceField("all", Flag(), "Everything", shown_meaning="true where it stops everything"),
    ResourceField("tag", TAG, "What has this tag", example="billing"),
    ResourceField("destination", Name("destination"), "What goes to this destination"),
)
_NOTE = ResourceField(
    "note",
    Text(1, MAX_NOTE, visible=True),
    f"Why, in up to {MAX_NOTE} characters; whoever looks sees it",
    shown_meaning="Why",
)

#: Every field of a kill switch, in the order of specifications and answers.
KILL_SWITCH = (
    *TARGETS,
    ResourceField("since", Moment(), "When it was turned on", given=False),
    _NOTE,
    ResourceField("by", Text(), "The name of the key that turned it on; absent if none", given=False),
    ResourceField("held", Whole(), "Events that it holds so far; 10,000 at most", given=False),
    ResourceField(
        "corrupt", Text(), "What of its document cannot be read; it is obeyed all the same", given=False
    ),
)

#: The fields that say when windows begin, which blackouts have as schedules have them.
WHEN = (*KINDS, "cron_seconds")
_POLICY = (
    "`skip`: an occurrence within a window ends as `skipped`. `postpone`: it falls due at the window's end"
)


def _of(row: ResourceField) -> ResourceField:
    meaning = f"It is of {row.meaning[0].lower()}{row.meaning[1:]}"
    return replace(row, meaning=meaning, shown_meaning=None)


#: Every field of a blackout, in the order of specifications and answers.
BLACKOUT = (
    ResourceField("name", Text(), "Its name, in the path", given=False, always_shown=True),
    ResourceField(
        "duration_seconds",
        Number(LEAST_DURATION.total_seconds(), MAX_DURATION.total_seconds()),
        "How long each window lasts, in elapsed time",
        required=True,
    ),
    ResourceField(
        "policy",
        Word(POLICIES),
        f"What becomes of what falls due within. {_POLICY}",
        default="`postpone`",
        shown_meaning=_POLICY,
    ),
    *map(_of, TARGETS),
    ResourceField("schedule", Name("schedule"), "It is of this schedule"),
    replace(_NOTE, meaning=f"Why, in up to {MAX_NOTE} characters"),
    ResourceField("created_at", Moment(), "When it was created", given=False),
    ResourceField("description", Text(), "When its windows begin, in words", given=False),
    ResourceField(
        "window",
        Object("window"),
        "The window that lasts now, or else the next one; absent if none comes",
        given=False,
    ),
    ResourceField("is_on", Flag(), "Whether that window lasts now", given=False),
    ResourceField("corrupt", Text(), "Why it cannot be read; it stops nothing then", given=False),
    *(SCHEDULE_FIELDS[name] for name in (*WHEN, "timezone")),
)
