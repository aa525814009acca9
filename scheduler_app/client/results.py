"""What the methods of the clients return."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from scheduler_app.client.destination_fields import DestinationValues
from scheduler_app.client.message_fields import MessageValues
from scheduler_app.client.record import Record, renamed
from scheduler_app.client.schedule_fields import ScheduleValues


class Schedule(ScheduleValues):
    """A schedule. Header values, the values of the URL's query and the body are masked."""

    #: Only in the answer to the request that generated it.
    signing_secret: str | None = None
    #: What an edit did: `created`, `changed` or `unchanged`, and the same in words.
    result: str | None = None
    message: str | None = None
    #: Where it was asked for.
    promise: Mapping[str, Any] | None = None


class StatusLine(Record):
    """A line of an event's history."""

    time: datetime | None = None
    status: str | None = None
    message: str | None = None


class Attempt(Record):
    """One execution of an event's action; durations and lags are milliseconds."""

    number: int | None = None
    started_at: datetime | None = None
    duration_ms: float | None = None
    lag_ms: float | None = None
    status_code: int | None = None
    error: str | None = None
    snippet: str | None = None
    worker: str | None = None
    late: bool | None = None


class Event(Record):
    """An occurrence with its history; `due_at` is when its next attempt is due."""

    id: str = renamed("_id")
    schedule_id: str | None = None
    run_time: datetime | None = None
    kind: str | None = None
    state: str | None = None
    due_at: datetime | None = None
    revision: int | None = None
    attempt: int | None = None
    status: tuple[StatusLine, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    created_at: datetime | None = None
    archived_at: datetime | None = None
    #: Of a record of missed occurrences, for which it stands: `first`, `last` and `count`.
    missed: Mapping[str, Any] | None = None
    #: The fields of its stored document that are corrupt, each with the reason.
    corrupt: Mapping[str, str] | None = None


class Occurrence(Record):
    """An instant in UTC, and the same in the trigger's zone, with its offset."""

    run_time: datetime
    local: datetime
    #: What a clock change did: `gap_shifted`, `overlap_first` or `overlap_last`.
    dst: str | None = None
    #: Of a schedule with jitter: when its callback falls due.
    due_at: datetime | None = None
    #: Of a schedule: the blackout that it falls into, with `name`, `until` and `policy`.
    blackout: Mapping[str, Any] | None = None


class Preview(Record):
    """When a trigger fires."""

    occurrences: tuple[Occurrence, ...]
    warnings: tuple[str, ...] = ()
    description: str | None = None
    recurrence: str | None = None
    trigger: Mapping[str, Any] | None = None
    #: Where it was asked for.
    promise: Mapping[str, Any] | None = None


class Reason(Record):
    """Why a schedule does not fire, or why it does: `code` is a part of RFC 5545, such as `BYDAY`, or a word
    such as `paused`."""

    code: str
    message: str
    rule: str | None = None


class Explanation(Record):
    """Why a schedule fires at an instant (`causes`), or does not; `reason` is the first reason."""

    at: Occurrence
    fires: bool
    reason: Reason | None = None
    further_reasons: tuple[Reason, ...] = ()
    #: Why it fires: what names the instant, and what moved it.
    causes: tuple[Reason, ...] = ()
    previous: Occurrence | None = None
    next: Occurrence | None = None
    event: Event | None = None
    warnings: tuple[str, ...] = ()


class Move(Record):
    """An occurrence as it is planned and as newer zone data compute it, and how much later that is."""

    before: datetime | None = None
    after: datetime | None = None
    seconds: int | None = None


class MovedSchedule(Record):
    """A schedule that newer zone data or holiday data would move; `error` says why that cannot be told."""

    id: str
    name: str | None = None
    timezone: str | None = None
    zone_data: str | None = None
    calendar: str | None = None
    holiday_data: str | None = None
    moves: tuple[Move, ...] = ()
    error: str | None = None


class BulkResult(Record):
    """What became of the schedule at the same place in the request: 201, or another status and a problem."""

    status: int
    id: str | None = None
    next_run_at: datetime | None = None
    signing_secret: str | None = None
    problem: Mapping[str, Any] | None = None


class Skipped(Record):
    """A schedule or an event that an edit of many left as it was."""

    id: str
    reason: str


class EditResult(Record):
    """What an edit of many did. In JSON `count` has the edit's name: `paused`, `resumed`, `deleted` or
    `redriven`."""

    count: int
    skipped: tuple[Skipped, ...] = ()
    #: How many more were skipped than `skipped` shows.
    skipped_omitted: int = 0


class KillSwitch(Record):
    """One that is on: `all`, or its `tag`, or its `destination`. In the answer that turned it
    on `stopped` says how many active `schedules` and waiting `events` it stops, and `at_least` and
    `events_at_least` whether there may be more; `warning` says so where it stops nothing."""

    all: bool | None = None
    tag: str | None = None
    destination: str | None = None
    since: datetime | None = None
    note: str | None = None
    #: Events that it holds; 10,000 at most.
    held: int | None = None
    stopped: Mapping[str, Any] | None = None
    warning: str | None = None


class Message(MessageValues):
    """A message with its history. Its body, header values and metadata are masked."""

    id: str
    event_id: str
    state: str
    scheduled_at: datetime
    due_at: datetime | None = None
    attempt: int | None = None
    status: tuple[StatusLine, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    created_at: datetime | None = None
    archived_at: datetime | None = None
    #: Only in the answer to the request that generated it.
    signing_secret: str | None = None
    #: Why its content cannot be shown.
    unreadable: str | None = None


class MessageResult(Record):
    """What became of the message at the same place in the request: 201, 200 for one that was there already,
    or another status and a problem."""

    status: int
    id: str | None = None
    event_id: str | None = None
    scheduled_at: datetime | None = None
    signing_secret: str | None = None
    problem: Mapping[str, Any] | None = None


class Answer(Record):
    """A destination's answer, or that there was none: `well` or `failed`."""

    time: datetime
    answer: str
    status_code: int | None = None


class Flow(Record):
    """How a destination with limits is at this moment, of all workers together. `breaker` is `closed`, `open`
    or `half-open`; `tokens`, how many requests may start at this instant."""

    breaker: str
    failures_in_a_row: int
    in_flight: int
    waiting: int | None = None
    tokens: float | None = None
    next_probe_at: datetime | None = None
    asked_to_wait_until: datetime | None = None
    line_until: datetime | None = None
    last_answers: tuple[Answer, ...] = ()


class DestinationHealth(Record):
    """How a destination is, where a list is asked for it: `state` is one of `paused`, `stopped`, `failing`,
    `slowed` and `well`."""

    state: str
    waiting: int
    schedules: int
    last_runs: tuple[Mapping[str, Any], ...] = ()
    failing_since: datetime | None = None
    failure_id: str | None = None
    error: str | None = None


class Destination(DestinationValues):
    """A named receiver. Header values, the values of the URL's query and credentials are masked."""

    allowed_methods: tuple[str, ...] = ()
    flow: Flow | None = None
    #: Only in a list that it is asked of.
    health: DestinationHealth | None = None
    #: `created`, `changed` or `unchanged`, in answers to `put` and `update`.
    result: str | None = None
    #: Why the stored document cannot be read.
    corrupt: str | None = None


class DestinationTest(Record):
    """What one call to a destination came to; `outcome` is `success`, `retry` or `permanent`."""

    event_id: str
    method: str
    url: str
    sent: bool
    outcome: str | None = None
    status_code: int | None = None
    error: str | None = None
    snippet: str | None = None
    duration_ms: float | None = None


class ImportedItem(Record):
    """What became of an event, or of another component of the file."""

    component: str
    name: str
    result: str
    """`created`, `changed`, `unchanged`, `over`, `ignored` or `refused`."""
    uid: str | None = None
    reason: str | None = None
    schedules: tuple[Mapping[str, Any], ...] = ()
    """One for each series, as in a BulkResult, with its `recurrence`, `timezone` and `warnings`."""
    removed: tuple[str, ...] = ()
    """Ids of schedules that were deleted."""
    ignored: tuple[str, ...] = ()
    """Parts of it that a callback has no use for."""
    notes: tuple[str, ...] = ()


class ImportResult(Record):
    """How many schedules were created, changed, the same already and deleted; how many items were refused,
    over or ignored; and every item of the file, in `found`."""

    created: int
    changed: int
    unchanged: int
    removed: int
    refused: int
    over: int
    ignored: int
    found: tuple[ImportedItem, ...] = renamed("items")


class ForecastBucket(Record):
    """One part of a forecast's time; in JSON `start` is `from`."""

    count: int
    start: datetime = renamed("from")


class ForecastReceiver(Record):
    """What falls due for one destination, or for one origin where none is named."""

    count: int
    counts: tuple[int, ...] = ()
    destination: str | None = None
    origin: str | None = None


class Forecast(Record):
    """How many callbacks fall due when; `notes` says why they are estimates where `sampled` is true."""

    bucket_seconds: int
    count: int
    overdue: int
    sampled: bool
    buckets: tuple[ForecastBucket, ...] = ()
    receivers: tuple[ForecastReceiver, ...] = ()
    receivers_omitted: int = 0
    sources: Mapping[str, Any] | None = None
    blackouts: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()
    busiest: ForecastBucket | None = None


class Backfill(Record):
    """A backfill and how far it has come; `state` is `running`, `made`, `done`, `cancelled` or `error`. In
    JSON `since` and `until` are `from` and `to`."""

    schedule_id: str
    state: str
    occurrences: int
    made: int
    left_out: int
    waiting: int
    completed: int
    failed: int
    rate_per_second: float
    overlap: str
    only_missing: bool
    since: datetime = renamed("from")
    until: datetime = renamed("to")
    seconds_left: int | None = None
    reason: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    #: Whether it only says what it would do.
    dry_run: bool = False


class OwedOfSchedule(Record):
    """What one schedule owes; `schedule_id` is None for messages."""

    count: int
    oldest: datetime
    schedule_id: str | None = None


class OwedToReceiver(Record):
    """What one destination is owed, or one origin where none is named."""

    count: int
    oldest: datetime
    destination: str | None = None
    origin: str | None = None


class OwedByPolicy(Record):
    """What is late under the same policies; `expires` says whether `expire_after_seconds` is among them."""

    catch_up: str
    expires: bool
    run_overlap: str
    count: int
    oldest: datetime


class Backlog(Record):
    """What was due before now and waits."""

    count: int
    sampled: bool
    finished_per_second: float
    at: datetime
    oldest: datetime | None = None
    seconds_to_drain: float | None = None
    schedules: tuple[OwedOfSchedule, ...] = ()
    schedules_omitted: int = 0
    receivers: tuple[OwedToReceiver, ...] = ()
    receivers_omitted: int = 0
    policies: tuple[OwedByPolicy, ...] = ()


class BacklogExpired(Record):
    """How many late events were given up, and whether there are more."""

    expired: int
    more: bool


class FailureTouched(Record):
    """What a failure touches: how many, and the first ones by name."""

    count: int
    exact: bool
    names: tuple[str, ...] = ()


class EventsOfFailure(Record):
    """The events of a failure."""

    failed: int
    gave_up: int
    waiting: int
    dead_letters: int


class Failure(Record):
    """What fails, since when and for whom. `newest_events` are there where one is asked for by its id."""

    id: str
    kind: str
    state: str
    subject: str
    message: str
    since: datetime
    last: datetime
    events: EventsOfFailure
    schedules: FailureTouched
    tags: FailureTouched
    destination: str | None = None
    origin: str | None = None
    failure: str | None = None
    error: str | None = None
    event_id: str | None = None
    next_try_at: datetime | None = None
    answering_since: datetime | None = None
    over_at: datetime | None = None
    resent: int = 0
    resent_at: datetime | None = None
    dismissed_at: datetime | None = None
    dismissed_by: str | None = None
    note: str | None = None
    newest_events: tuple[Event, ...] = ()
    expired: int = 0
    more: bool = False


class VerdictReason(Record):
    """One thing that is wrong, and what to do."""

    kind: str
    subject: str
    message: str
    remedy: str
    schedules: int
    events: int
    since: datetime | None = None
    failure_id: str | None = None
    destination: str | None = None
    tags: tuple[str, ...] = ()
    silence: Mapping[str, Any] | None = None
    """What keeps it from being told: `name`, `until` and `reason`."""


class SystemVerdict(Record):
    """Whether all is `well`, needs `attention` or is `down`, and why."""

    verdict: str
    since: datetime | None = None
    reasons: tuple[VerdictReason, ...] = ()
    reasons_omitted: int = 0


class RedriveProgress(Record):
    """A redrive that beats carry out."""

    redrive_id: str
    state: str
    which: str
    when: str
    planned: int
    sent: int
    skipped: int
    started_at: datetime
    rate: float | None = None
    reason: str | None = None
    ended_at: datetime | None = None
