"""The table of a schedule's fields. A new field of a schedule is one row of it."""

from typing import get_args

from scheduler_app.domain.event import (
    DEFAULT_COMPLETION_TIMEOUT,
    LEAST_COMPLETION_TIMEOUT,
    MAX_COMPLETION_TIMEOUT,
    MAX_JITTER_SECONDS,
    Completion,
)
from scheduler_app.domain.expectation import LEAST_EXPECTED_SECONDS, MAX_EXPECTED_SECONDS
from scheduler_app.domain.lateness import (
    DEFAULT_LATE_AFTER_SECONDS,
    DEFAULT_WINDOW_SECONDS,
    LEAST_SECONDS,
    MAX_SECONDS,
    CatchUp,
)
from scheduler_app.domain.masking import MASK
from scheduler_app.domain.recurrence import OnHoliday
from scheduler_app.domain.resource_fields import (
    ListOf,
    Moment,
    Name,
    Null,
    Number,
    Object,
    ResourceField,
    Text,
    Whole,
    Word,
    by_name,
    computed,
)
from scheduler_app.domain.resources.delivery import (
    EXPIRY,
    NOTIFIED,
    QUEUE,
    REQUEST,
    RETRY,
    SIGNING,
    SIGNING_SINCE,
    SUCCESS,
    TIMEOUT,
)
from scheduler_app.domain.schedule import (
    DEFAULT_QUEUE_LIMIT,
    MAX_FAILURES,
    MAX_NAME,
    MAX_NOTE,
    MAX_PURPOSE,
    MAX_QUEUE_LIMIT,
    MAX_TAGS,
    OverlapScope,
    RunOverlap,
    ScheduleState,
)
from scheduler_app.domain.triggers import FIELDS

MAX_TIMEZONE = 64
MAX_TAG = 64
MAX_REASON = 2_000
#: The states that a request may name.
STATES = tuple(each.value for each in ScheduleState if each is not ScheduleState.DELETED)

NAMING = (
    ResourceField(
        "id",
        Name("schedule"),
        "An id of your own: 1 to 64 letters, digits and hyphens. The id of a deleted schedule may be"
        " used again",
        default="generated",
        previewed=True,
        always_shown=True,
        shown_meaning="The schedule's id",
        edit_meaning="The id in the path, once more",
        preview_meaning="The id that the schedule will have: it decides the jitter",
    ),
    ResourceField(
        "name",
        Text(most=MAX_NAME, visible=True),
        f"What people call it, up to {MAX_NAME} characters",
        new_type=Text(1, MAX_NAME, visible=True),
        default="required",
        required=True,
        example="Daily Backup",
        aliases="title",
    ),
    ResourceField(
        "purpose",
        Text(most=MAX_PURPOSE, visible=True),
        f"What it is for, in words for people, up to {MAX_PURPOSE} characters",
        default="empty",
        sparse=True,
        aliases="notes comment about",
    ),
)


TIMEZONE = ResourceField(
    "timezone",
    Text(1, MAX_TIMEZONE),
    "The IANA zone in which times without a zone or an offset are read",
    default="`UTC`",
    example="Europe/Zurich",
    at="trigger.timezone",
    previewed=True,
    aliases="tz time_zone zone",
)

TRIGGER = (
    # Those of each trigger kind come from the registry of kinds: a new kind needs no row here.
    *FIELDS.values(),
    computed("recurrence", Text(), "The trigger as an RFC 5545 recurrence with its DTSTART made explicit"),
    computed("dtstart", Moment(), "The instant from which the recurrence counts"),
    TIMEZONE,
    ResourceField(
        "gap",
        Word(("shift", "skip")),
        "What happens to a local time that a clock change leaves out: `shift` fires later by the"
        " gap's length, `skip` does not fire",
        default="`shift`",
        at="trigger.gap",
        previewed=True,
    ),
    ResourceField(
        "overlap",
        Word(("first", "last")),
        "Which of the two a local time means that a clock change repeats: the `first` or the `last`",
        default="`first`",
        at="trigger.overlap",
        previewed=True,
    ),
    ResourceField(
        "calendar",
        Name("calendar"),
        "The name of a calendar, whose holidays and weekend days the trigger observes",
        example="zurich",
        at="calendar.name",
        previewed=True,
        null=Null.IN_EDITS,
        aliases="holidays holiday_calendar business_days",
    ),
    ResourceField(
        "on_holiday",
        Word(get_args(OnHoliday)),
        "What an occurrence on a closed day of the calendar does: it is left out (`skip`), or moves"
        " to the `next` or the `previous` open day at the same time of day, or BYSETPOS and COUNT count open"
        " days alone (`uncounted`)",
        default="as the phrase says; else `skip`",
        at="calendar.on_holiday",
        previewed=True,
    ),
    computed("description", Text(), "What the trigger says, in words"),
    computed("next_run_at", Moment(), "The next occurrence of an active schedule"),
    computed("next_run", Object("next_run"), "The next occurrence of an active schedule"),
    computed("warnings", ListOf(Text()), "What may surprise the person who wrote the trigger"),
)

ACTION = (
    ResourceField(
        "sealed",
        Text(),
        f"The encrypted values of an export, which its masks (`{MASK}`) stand for",
        shown=False,
    ),
    ResourceField(
        "action",
        Object("action"),
        "What it does instead of an HTTP request, such as"
        ' `{"type": "command", "command": ["/opt/jobs/report", "--daily"]}`',
    ),
)

SIGNING_OVERLAP = computed("signing_overlap_until", Moment(), "Until when an older secret signs as well")

#: What becomes of events that are late.
LATENESS = (
    ResourceField(
        "catch_up",
        Word(tuple(each.value for each in CatchUp), kind=CatchUp),
        "Which occurrences are still sent that were missed: `all`; `latest`, the newest one alone;"
        " `none`. The others expire",
        default="`all`",
        at="lateness.catch_up",
        shown_words=tuple(each.value for each in CatchUp),
        quiet=True,
        aliases="catchup misfire misfire_policy missed missed_runs missed_run_policy catch_up_policy",
    ),
    ResourceField(
        "catch_up_window_seconds",
        Number(LEAST_SECONDS, MAX_SECONDS),
        "With `catch_up` `latest`: how late the newest one may still be sent. `all` means all, however late",
        default=f"{DEFAULT_WINDOW_SECONDS:g}",
        at="lateness.window_seconds",
        quiet=True,
        aliases="catchup_window catch_up_window",
    ),
    ResourceField(
        "late_after_seconds",
        Number(LEAST_SECONDS, MAX_SECONDS),
        "How late an occurrence must be to count as missed, for `catch_up`",
        default=f"{DEFAULT_LATE_AFTER_SECONDS:g}",
        at="lateness.late_after_seconds",
        quiet=True,
        aliases="late_after misfire_grace_time starting_deadline_seconds",
    ),
    EXPIRY,
)

#: What becomes of events that fall due while earlier ones are not finished.
OVERLAP = (
    ResourceField(
        "run_overlap",
        Word(get_args(RunOverlap)),
        "What an occurrence does while an earlier one is not finished: it runs beside it (`allow`),"
        " is left out (`skip`), waits for it (`queue`), or runs and ends the earlier one's retries"
        " (`cancel_earlier`)",
        default="`allow`",
        sparse=True,
        quiet=True,
        aliases="overlap_policy concurrency_policy concurrency",
    ),
    ResourceField(
        "overlap_scope",
        Word(get_args(OverlapScope)),
        "What `skip` and `queue` count as not finished: an `event` with its retries, or only an"
        " `attempt` that is running",
        default="`event`",
        sparse=True,
        quiet=True,
    ),
    ResourceField(
        "queue_limit",
        Whole(1, MAX_QUEUE_LIMIT),
        f"How many occurrences may wait where `run_overlap` is `queue`, 1 to {MAX_QUEUE_LIMIT}; the"
        " others are left out",
        default=f"{DEFAULT_QUEUE_LIMIT}",
        sparse=True,
        quiet=True,
        aliases="max_queue queue_size buffer_limit",
    ),
    ResourceField(
        "completion",
        Word(get_args(Completion)),
        "Who says that an event's work is done: the `response` to its request, or the receiver by a"
        " `callback` of its own, until which the event is running",
        default="`response`",
        sparse=True,
        quiet=True,
    ),
    ResourceField(
        "completion_timeout_seconds",
        Number(LEAST_COMPLETION_TIMEOUT, MAX_COMPLETION_TIMEOUT),
        "How long an event waits for that callback before its attempt has failed,"
        f" {LEAST_COMPLETION_TIMEOUT:g} to {MAX_COMPLETION_TIMEOUT:g} seconds",
        default=f"{DEFAULT_COMPLETION_TIMEOUT:g}",
        sparse=True,
        quiet=True,
    ),
)

JITTER = (
    ResourceField(
        "jitter_seconds",
        Number(0, MAX_JITTER_SECONDS),
        "Each callback falls due up to this many seconds after its occurrence, by a hash of the"
        " schedule's id and the instant: the same whenever it is asked, and another for each schedule",
        default="0",
        previewed=True,
        sparse=True,
        aliases="jitter spread splay random_delay randomized_delay",
    ),
    computed(
        "next_due_at",
        Moment(),
        "When the callback of `next_run_at` falls due; only of a schedule with jitter",
    ),
)

_EXPECTED = Number(LEAST_EXPECTED_SECONDS, MAX_EXPECTED_SECONDS)
#: What `expect` holds.
EXPECT = (
    ResourceField(
        "max_runtime_seconds",
        _EXPECTED,
        "How long an attempt may run, with the work that a receiver reports later",
        sparse=True,
    ),
    ResourceField(
        "completes_within_seconds",
        _EXPECTED,
        "How long after its time a run is completed at the latest",
        sparse=True,
    ),
    ResourceField(
        "success_within_seconds",
        _EXPECTED,
        "The longest time without a run that succeeded, while the schedule is active",
        sparse=True,
    ),
)
#: What is expected of runs.
EXPECTATION = ResourceField(
    "expect",
    Object("expect", values="float"),
    "What is expected of its runs, in seconds: `max_runtime_seconds`,"
    " `completes_within_seconds` of a run's time, `success_within_seconds`. A violation is reported, and ends"
    " no run",
    default="nothing",
    example={"success_within_seconds": 93_600},
    null=Null.ALWAYS,
    aliases="expectation expects sla max_runtime",
)

TAG = Text(1, MAX_TAG, visible=True)

#: The state that it is in, and what has become of it.
LIFECYCLE = (
    ResourceField(
        "tags",
        ListOf(TAG, most=MAX_TAGS),
        f"Words to find schedules by, up to {MAX_TAGS}",
        default="none",
        aliases="tag labels label",
    ),
    ResourceField(
        "state",
        Word(STATES, kind=ScheduleState),
        "The state to be in. A schedule that is not active may have a `run_at` that has passed; an"
        " active one without an occurrence left is finished",
        default="`active`",
        always_shown=True,
        shown_words=tuple(each.value for each in ScheduleState),
        shown_meaning="The state it is in",
        aliases="status enabled disabled active paused",
    ),
    ResourceField(
        "reason",
        Text(most=MAX_REASON, visible=True),
        "Why it is in the state `error`",
        shown_meaning="Why it is in the state `error`; of one that is paused, `by request` or `failures`",
    ),
    ResourceField(
        "note",
        Text(1, MAX_NOTE, visible=True),
        f"Why it is paused, in up to {MAX_NOTE} characters; only with the state `paused`",
        at="pause.note",
        null=Null.ALWAYS,
        shown_meaning="What was written of its pause",
    ),
    ResourceField(
        "paused_until",
        Moment(),
        "When its pause ends by itself; only with the state `paused`",
        default="it stays paused until it is resumed",
        at="pause.until",
        null=Null.ALWAYS,
        shown_meaning="When its pause ends by itself",
    ),
    ResourceField(
        "pause_after_failures",
        Whole(1, MAX_FAILURES),
        "It is paused after this many events in a row that ended in `error`, 1 to"
        f" {MAX_FAILURES}; a resume starts the count over",
        default="it goes on, whatever fails",
        null=Null.ALWAYS,
        sparse=True,
        aliases="max_failures max_consecutive_failures disable_after_failures",
    ),
    ResourceField("version", Whole(), "How many times people have edited it, from 1", given=False),
    ResourceField("revision", Whole(), "How many times its events were planned again, from 1", given=False),
    ResourceField(
        "last_run",
        Object("last_run"),
        "Its newest run; it is kept longer than events are",
        given=False,
    ),
    ResourceField("created_at", Moment(), "When it was created", given=False),
    ResourceField("updated_at", Moment(), "When it was last edited", given=False),
)

#: Every field, in the order of specifications, answers and the manual.
SCHEDULE = (
    *NAMING,
    *TRIGGER,
    *REQUEST,
    *ACTION,
    QUEUE,
    *RETRY,
    TIMEOUT,
    SUCCESS,
    *NOTIFIED,
    SIGNING,
    SIGNING_SINCE,
    SIGNING_OVERLAP,
    *LATENESS,
    *OVERLAP,
    *JITTER,
    EXPECTATION,
    *LIFECYCLE,
)
#: Every field by its name.
SCHEDULE_FIELDS = by_name(SCHEDULE)
