"""The fields of a schedule as the API takes them, and as answers show them, each with its meaning.

Generated from the table of its fields by `make docs`: do not edit it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypedDict

from scheduler_app.client.record import Record

#: The fields of which a new schedule has exactly one.
TRIGGERS = ("rrule", "cron", "every_seconds", "phrase", "run_at", "delay_seconds", "on_demand")


class TriggerFields(TypedDict, total=False):
    """When a schedule fires."""

    id: Annotated[
        str,
        "An id of your own: 1 to 64 letters, digits and hyphens. The id of a deleted schedule may be used "
        "again",
    ]
    rrule: Annotated[str | None, "An RFC 5545 rule, with or without DTSTART"]
    cron: Annotated[
        str | None,
        "A cron expression: five fields, @daily and the like, or six fields with seconds; L, W and # as in "
        "Quartz; 0 and 7 are Sunday",
    ]
    cron_seconds: Annotated[
        Literal["first", "last"] | None,
        "Which of six fields of `cron` are the seconds, where both readings are valid",
    ]
    every_seconds: Annotated[
        int | None,
        "Repeatedly, with this many seconds of elapsed time between: first at start_at, or one interval from"
        " now",
    ]
    start_at: Annotated[
        datetime | str | None,
        "The first occurrence of every_seconds, in whole seconds; from one in the past it is counted on",
    ]
    phrase: Annotated[
        str | None,
        "When, in English: what is not understood is refused with the words that were not, what can be read "
        "in several ways with its readings",
    ]
    run_at: Annotated[
        datetime | str | None,
        "A single time: with an offset an instant, in which milliseconds count; without one the local time "
        "in the timezone given beside it",
    ]
    delay_seconds: Annotated[
        int | None,
        "A single time, this many seconds after the field is given; the same value given again restarts "
        "nothing",
    ]
    on_demand: Annotated[
        Literal[True] | None, "No time at all: it runs only when it is triggered by request, and stays active"
    ]
    timezone: Annotated[str, "The IANA zone in which times without a zone or an offset are read"]
    gap: Annotated[
        Literal["shift", "skip"],
        "What happens to a local time that a clock change leaves out: `shift` fires later by the gap's "
        "length, `skip` does not fire",
    ]
    overlap: Annotated[
        Literal["first", "last"],
        "Which of the two a local time means that a clock change repeats: the `first` or the `last`",
    ]
    calendar: Annotated[
        str | None, "The name of a calendar, whose holidays and weekend days the trigger observes"
    ]
    on_holiday: Annotated[
        Literal["skip", "next", "previous", "uncounted"],
        "What an occurrence on a closed day of the calendar does: it is left out (`skip`), or moves to the "
        "`next` or the `previous` open day at the same time of day, or BYSETPOS and COUNT count open days "
        "alone (`uncounted`)",
    ]
    jitter_seconds: Annotated[
        float,
        "Each callback falls due up to this many seconds after its occurrence, by a hash of the schedule's "
        "id and the instant: the same whenever it is asked, and another for each schedule",
    ]


class NewScheduleFields(TriggerFields, total=False):
    """What a new schedule may have beside its name and the URL to call."""

    purpose: Annotated[str, "What it is for, in words for people, up to 2000 characters"]
    destination: Annotated[
        str | None,
        "The name of a destination to call, instead of `callback_url`: it says how often and how fast, and "
        "what a request needs besides",
    ]
    path: Annotated[str, "The path and query below the destination's URL, such as `/orders?kind=new`"]
    method: Annotated[
        Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"], "The HTTP method, in capital letters"
    ]
    headers: Annotated[
        Mapping[str, str],
        "Header names and values, up to 50. Answers mask the values of all but harmless names; a mask that "
        "is sent back leaves the value as it is while the URL's scheme, host and port stay the same",
    ]
    body: Annotated[str | None, "The body as text, up to 256 KiB; answers mask it"]
    json: Annotated[object, "The body as a JSON value, instead of `body`"]
    body_base64: Annotated[str, "The body in base64, for one that is not text, instead of `body`"]
    sealed: Annotated[str, "The encrypted values of an export, which its masks (`********`) stand for"]
    action: Annotated[
        Mapping[str, object],
        'What it does instead of an HTTP request, such as `{"type": "command", "command": '
        '["/opt/jobs/report", "--daily"]}`',
    ]
    queue: Annotated[
        str,
        "Which workers deliver its events: those started with `-Q` and this name, of up to 64 letters, "
        "digits and hyphens",
    ]
    max_retries: Annotated[int, "How many attempts may follow the first one, 0 to 50"]
    retry_backoff_seconds: Annotated[
        float,
        "The delay before the first retry. Each later one doubles it, and each delay is drawn from its upper"
        " half",
    ]
    retry_backoff_max_seconds: Annotated[float, "The longest delay before a retry"]
    retry_codes: Annotated[
        Sequence[int | str], 'The statuses after which an attempt is retried: numbers, `"5xx"`, `"500-504"`'
    ]
    timeout_seconds: Annotated[float, "How long the whole answer may take, up to 300 seconds"]
    success_codes: Annotated[
        Sequence[int | str], "The statuses that complete an event, given as `retry_codes` are"
    ]
    on_success: Annotated[
        str | None,
        "The name of a destination that is told of each event that was completed: by a message with the "
        "event, its attempts and the beginning of the answer. A null takes it away",
    ]
    on_failure: Annotated[
        str | None,
        "The name of a destination that is told of each event that ended in error, as `on_success`",
    ]
    signing: Annotated[
        bool,
        "Whether callbacks are signed (Standard Webhooks). The answer that generates a secret is the only "
        "one that shows it",
    ]
    catch_up: Annotated[
        Literal["all", "latest", "none"],
        "Which occurrences are still sent that were missed: `all`; `latest`, the newest one alone; `none`. "
        "The others expire",
    ]
    catch_up_window_seconds: Annotated[
        float,
        "With `catch_up` `latest`: how late the newest one may still be sent. `all` means all, however late",
    ]
    late_after_seconds: Annotated[float, "How late an occurrence must be to count as missed, for `catch_up`"]
    expire_after_seconds: Annotated[
        float | None, "How long after it was due an event is given up, its retries included; null for never"
    ]
    run_overlap: Annotated[
        Literal["allow", "skip", "queue", "cancel_earlier"],
        "What an occurrence does while an earlier one is not finished: it runs beside it (`allow`), is left "
        "out (`skip`), waits for it (`queue`), or runs and ends the earlier one's retries (`cancel_earlier`)",
    ]
    overlap_scope: Annotated[
        Literal["event", "attempt"],
        "What `skip` and `queue` count as not finished: an `event` with its retries, or only an `attempt` "
        "that is running",
    ]
    queue_limit: Annotated[
        int,
        "How many occurrences may wait where `run_overlap` is `queue`, 1 to 1000; the others are left out",
    ]
    completion: Annotated[
        Literal["response", "callback"],
        "Who says that an event's work is done: the `response` to its request, or the receiver by a "
        "`callback` of its own, until which the event is running",
    ]
    completion_timeout_seconds: Annotated[
        float, "How long an event waits for that callback before its attempt has failed, 1 to 604800 seconds"
    ]
    expect: Annotated[
        Mapping[str, float] | None,
        "What is expected of its runs, in seconds: `max_runtime_seconds`, `completes_within_seconds` of a "
        "run's time, `success_within_seconds`. A violation is reported, and ends no run",
    ]
    tags: Annotated[Sequence[str], "Words to find schedules by, up to 20"]
    state: Annotated[
        Literal["active", "paused", "finished", "error"],
        "The state to be in. A schedule that is not active may have a `run_at` that has passed; an active "
        "one without an occurrence left is finished",
    ]
    reason: Annotated[str, "Why it is in the state `error`"]
    note: Annotated[str | None, "Why it is paused, in up to 500 characters; only with the state `paused`"]
    paused_until: Annotated[
        datetime | str | None, "When its pause ends by itself; only with the state `paused`"
    ]
    pause_after_failures: Annotated[
        int | None,
        "It is paused after this many events in a row that ended in `error`, 1 to 100; a resume starts the "
        "count over",
    ]


class ScheduleFields(NewScheduleFields, total=False):
    """Every field."""

    name: Annotated[str, "What people call it, up to 200 characters"]
    callback_url: Annotated[str, "The http or https URL to call"]


class ScheduleValues(Record):
    """What an answer says about a schedule; None is what does not apply to it."""

    #: An id of your own: 1 to 64 letters, digits and hyphens. The id of a deleted schedule may be used
    #: again
    id: str
    #: The state to be in. A schedule that is not active may have a `run_at` that has passed; an active
    #: one without an occurrence left is finished
    state: str
    #: What people call it, up to 200 characters
    name: str | None = None
    #: What it is for, in words for people, up to 2000 characters
    purpose: str | None = None
    #: An RFC 5545 rule, with or without DTSTART
    rrule: str | None = None
    #: A cron expression: five fields, @daily and the like, or six fields with seconds; L, W and # as in
    #: Quartz; 0 and 7 are Sunday
    cron: str | None = None
    #: Which of six fields of `cron` are the seconds, where both readings are valid
    cron_seconds: str | None = None
    #: Repeatedly, with this many seconds of elapsed time between: first at start_at, or one interval from
    #: now
    every_seconds: int | None = None
    #: The first occurrence of every_seconds, in whole seconds; from one in the past it is counted on
    start_at: datetime | None = None
    #: When, in English: what is not understood is refused with the words that were not, what can be read
    #: in several ways with its readings
    phrase: str | None = None
    #: A single time: with an offset an instant, in which milliseconds count; without one the local time
    #: in the timezone given beside it
    run_at: datetime | None = None
    #: A single time, this many seconds after the field is given; the same value given again restarts
    #: nothing
    delay_seconds: int | None = None
    #: No time at all: it runs only when it is triggered by request, and stays active
    on_demand: bool | None = None
    #: The trigger as an RFC 5545 recurrence with its DTSTART made explicit
    recurrence: str | None = None
    #: The instant from which the recurrence counts
    dtstart: datetime | None = None
    #: The IANA zone in which times without a zone or an offset are read
    timezone: str | None = None
    #: What happens to a local time that a clock change leaves out: `shift` fires later by the gap's
    #: length, `skip` does not fire
    gap: str | None = None
    #: Which of the two a local time means that a clock change repeats: the `first` or the `last`
    overlap: str | None = None
    #: The name of a calendar, whose holidays and weekend days the trigger observes
    calendar: str | None = None
    #: What an occurrence on a closed day of the calendar does: it is left out (`skip`), or moves to the
    #: `next` or the `previous` open day at the same time of day, or BYSETPOS and COUNT count open days
    #: alone (`uncounted`)
    on_holiday: str | None = None
    #: What the trigger says, in words
    description: str | None = None
    #: The next occurrence of an active schedule
    next_run_at: datetime | None = None
    #: The next occurrence of an active schedule
    next_run: Mapping[str, Any] | None = None
    #: What may surprise the person who wrote the trigger
    warnings: tuple[str, ...] | None = None
    #: The http or https URL to call
    callback_url: str | None = None
    #: The name of a destination to call, instead of `callback_url`: it says how often and how fast, and
    #: what a request needs besides
    destination: str | None = None
    #: The path and query below the destination's URL, such as `/orders?kind=new`
    path: str | None = None
    #: The HTTP method, in capital letters
    method: str | None = None
    #: Header names and values, up to 50. Answers mask the values of all but harmless names; a mask that
    #: is sent back leaves the value as it is while the URL's scheme, host and port stay the same
    headers: Mapping[str, str] | None = None
    #: The body as text, up to 256 KiB; answers mask it
    body: str | None = None
    #: The body as a JSON value, instead of `body`
    json: object | None = None
    #: The body in base64, for one that is not text, instead of `body`
    body_base64: str | None = None
    #: What it does instead of an HTTP request, such as `{"type": "command", "command":
    #: ["/opt/jobs/report", "--daily"]}`
    action: Mapping[str, Any] | None = None
    #: Which workers deliver its events: those started with `-Q` and this name, of up to 64 letters,
    #: digits and hyphens
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
    #: The name of a destination that is told of each event that was completed: by a message with the
    #: event, its attempts and the beginning of the answer. A null takes it away
    on_success: str | None = None
    #: The name of a destination that is told of each event that ended in error, as `on_success`
    on_failure: str | None = None
    #: Whether callbacks are signed (Standard Webhooks). The answer that generates a secret is the only
    #: one that shows it
    signing: bool | None = None
    #: When the signing secret in force was generated
    signing_since: datetime | None = None
    #: Until when an older secret signs as well
    signing_overlap_until: datetime | None = None
    #: Which occurrences are still sent that were missed: `all`; `latest`, the newest one alone; `none`.
    #: The others expire
    catch_up: str | None = None
    #: With `catch_up` `latest`: how late the newest one may still be sent. `all` means all, however late
    catch_up_window_seconds: float | None = None
    #: How late an occurrence must be to count as missed, for `catch_up`
    late_after_seconds: float | None = None
    #: How long after it was due an event is given up, its retries included; null for never
    expire_after_seconds: float | None = None
    #: What an occurrence does while an earlier one is not finished: it runs beside it (`allow`), is left
    #: out (`skip`), waits for it (`queue`), or runs and ends the earlier one's retries (`cancel_earlier`)
    run_overlap: str | None = None
    #: What `skip` and `queue` count as not finished: an `event` with its retries, or only an `attempt`
    #: that is running
    overlap_scope: str | None = None
    #: How many occurrences may wait where `run_overlap` is `queue`, 1 to 1000; the others are left out
    queue_limit: int | None = None
    #: Who says that an event's work is done: the `response` to its request, or the receiver by a
    #: `callback` of its own, until which the event is running
    completion: str | None = None
    #: How long an event waits for that callback before its attempt has failed, 1 to 604800 seconds
    completion_timeout_seconds: float | None = None
    #: Each callback falls due up to this many seconds after its occurrence, by a hash of the schedule's
    #: id and the instant: the same whenever it is asked, and another for each schedule
    jitter_seconds: float | None = None
    #: When the callback of `next_run_at` falls due; only of a schedule with jitter
    next_due_at: datetime | None = None
    #: What is expected of its runs, in seconds: `max_runtime_seconds`, `completes_within_seconds` of a
    #: run's time, `success_within_seconds`. A violation is reported, and ends no run
    expect: Mapping[str, float] | None = None
    #: Words to find schedules by, up to 20
    tags: tuple[str, ...] | None = None
    #: Why it is in the state `error`
    reason: str | None = None
    #: Why it is paused, in up to 500 characters; only with the state `paused`
    note: str | None = None
    #: When its pause ends by itself; only with the state `paused`
    paused_until: datetime | None = None
    #: It is paused after this many events in a row that ended in `error`, 1 to 100; a resume starts the
    #: count over
    pause_after_failures: int | None = None
    #: How many times people have edited it, from 1
    version: int | None = None
    #: How many times its events were planned again, from 1
    revision: int | None = None
    #: Its newest run; it is kept longer than events are
    last_run: Mapping[str, Any] | None = None
    #: When it was created
    created_at: datetime | None = None
    #: When it was last edited
    updated_at: datetime | None = None
