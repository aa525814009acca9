"""An event: an occurrence made durable. Its states and the moves between them are written here, once.

Who says that an event's work is done is its `completion`: the response to its request, or its receiver,
which calls back with a token. Jitter is how much later than its occurrence a callback falls due, the same
each time it is asked: an event's id and run time stay those of its occurrence; only `due_at` carries the
jitter.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, NamedTuple

from scheduler_app.domain.action import UNKNOWN_ORIGIN
from scheduler_app.domain.ids import compact, event_id, instant_of, manual_event_id, tenant_of
from scheduler_app.domain.queues import CALLBACKS

if TYPE_CHECKING:
    from scheduler_app.domain.message import Message, UnreadableMessage


class CompletionToken(str):
    """What a receiver shows to say how its work went. It is shown in no log: its `repr` is a mask."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "CompletionToken('***')"


def new_completion_token() -> CompletionToken:
    """192 random bits."""
    return CompletionToken(secrets.token_urlsafe(24))


class State(StrEnum):
    """The states of an event: the words in the code, in MongoDB and on the wire."""

    READY_QUEUE = "ready_queue"
    WORKER_QUEUE = "worker_queue"
    RUNNING = "running"
    RETRYING = "retrying"
    COMPLETED = "completed"
    ERROR = "error"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    SKIPPED = "skipped"


class Kind(StrEnum):
    """Why an event exists: its schedule's rule, a person who asked for it now, a person who asked for
    occurrences of the past, or a message without a schedule."""

    SCHEDULED = "scheduled"
    MANUAL = "manual"
    BACKFILL = "backfill"
    MESSAGE = "message"


@dataclass(frozen=True, slots=True)
class StateDescription:
    """A state explained: what it means, who moves an event out of it, what a crash leaves behind."""

    meaning: str
    moved_on_by: str
    after_a_crash: str
    final: bool = False
    unsent: bool = False
    """Whether no request is made for the event any more, so that lists show that it did not happen."""


STATE_DESCRIPTIONS: dict[State, StateDescription] = {
    State.READY_QUEUE: StateDescription(
        "expanded, waits in MongoDB for its time", "dispatch", "nothing to repair"
    ),
    State.WORKER_QUEUE: StateDescription(
        "a message for it is in the broker or in a worker's memory, or will be in a moment",
        "deliver",
        "its page's lease, or its own grace after it was due, is over: recover puts it back",
    ),
    State.RUNNING: StateDescription(
        "claimed by one worker: its request is in flight, or about to be",
        "deliver",
        "lease over: recover makes it retrying and leaves owner; a lost lease is no attempt. After two it is"
        " tried alone, and three leases lost while its own request was being made are error",
    ),
    State.RETRYING: StateDescription(
        "the last attempt failed, the next has its time", "dispatch", "nothing to repair"
    ),
    State.COMPLETED: StateDescription("the callback answered with success", "retention", "", final=True),
    State.ERROR: StateDescription(
        "attempts spent, or a permanent failure: the dead letters", "redrive, retention", "", final=True
    ),
    State.CANCELLED: StateDescription(
        "withdrawn by an edit, a deletion, a pause or a person", "retention", "", final=True, unsent=True
    ),
    State.EXPIRED: StateDescription("too late to be worth sending", "retention", "", final=True, unsent=True),
    State.SKIPPED: StateDescription(
        "an earlier event was not finished, or a blackout lasted, and its policy said no",
        "retention",
        "",
        final=True,
        unsent=True,
    ),
}

FINAL = frozenset(state for state, life in STATE_DESCRIPTIONS.items() if life.final)
LIVING = frozenset(STATE_DESCRIPTIONS) - FINAL
UNSENT = frozenset(state for state, life in STATE_DESCRIPTIONS.items() if life.unsent)


@dataclass(frozen=True, slots=True)
class Transition:
    """A named move: the states it may start from, and where it leads."""

    sources: frozenset[State]
    targets: frozenset[State]


def _move(sources: set[State], targets: set[State]) -> Transition:
    return Transition(frozenset(sources), frozenset(targets))


WAITING = frozenset({State.READY_QUEUE, State.RETRYING})
UNCLAIMED = WAITING | {State.WORKER_QUEUE}

#: Every write to an event is one of these; each is a verb of one of the store's classes.
TRANSITIONS: dict[str, Transition] = {
    "mark_dispatched": _move(set(WAITING), {State.WORKER_QUEUE}),
    # Its destination has no room before later; it keeps its place in the line.
    "put_off": _move(set(WAITING), {State.READY_QUEUE}),
    # It falls due within a blackout that says so; or did, before its worker was lost.
    "skip_waiting": _move(set(WAITING), {State.SKIPPED}),
    # A kill switch stops it; it has its own time again when that is off.
    "hold": _move(set(WAITING), {State.READY_QUEUE}),
    "release": _move({State.READY_QUEUE}, {State.READY_QUEUE}),
    # The dispatcher that marked them died, or the broker was away, before their messages were sent.
    "put_back": _move({State.WORKER_QUEUE}, {State.READY_QUEUE}),
    # Marked or not: what was put back may have a message all the same.
    "claim": _move(set(UNCLAIMED), {State.RUNNING}),
    # Any living state while `owner` is still the claim's token: recovery ends the lease of a worker that was
    # only slow and leaves the token, and dispatch may be quicker than that worker's record.
    "record": _move(
        {State.RUNNING, *UNCLAIMED}, {State.COMPLETED, State.RETRYING, State.ERROR, State.EXPIRED}
    ),
    # Its receiver is still working, and reports the outcome later.
    "await_completion": _move({State.RUNNING, *UNCLAIMED}, {State.RUNNING}),
    # The receiver said how it went, or its time is over.
    "tell": _move({State.RUNNING, *UNCLAIMED}, {State.COMPLETED, State.RETRYING, State.ERROR}),
    "give_back": _move({State.RUNNING}, {State.READY_QUEUE}),
    # Its origin has no room: it comes again later, and no attempt is counted.
    "postpone": _move({State.RUNNING}, {State.READY_QUEUE}),
    "cancel_claimed": _move({State.RUNNING}, {State.CANCELLED}),
    # Too late by a policy of its schedule or message: no request is made.
    "expire_claimed": _move({State.RUNNING}, {State.EXPIRED}),
    "cancel": _move(set(UNCLAIMED), {State.CANCELLED}),
    # A person gives up what is late.
    "expire": _move(set(UNCLAIMED), {State.EXPIRED}),
    # The policy of overlapping runs holds it back, before its request.
    "skip": _move({State.RUNNING}, {State.SKIPPED, State.CANCELLED}),
    # A later event of its schedule has begun, and ends what is left of it.
    "supersede": _move(set(UNCLAIMED), {State.CANCELLED}),
    # It waits for an earlier event, which has ended.
    "wake": _move({State.READY_QUEUE}, {State.READY_QUEUE}),
    # Its request was answered, and its receiver has not said yet how it went.
    "cancel_awaited": _move({State.RUNNING}, {State.CANCELLED}),
    # Of a message that no worker has claimed: it waits for another time.
    "reschedule": _move(set(UNCLAIMED), {State.READY_QUEUE}),
    "redrive": _move({State.ERROR}, {State.READY_QUEUE}),
    # Of a dead letter that a person does not want to be sent any more.
    "dismiss": _move({State.ERROR}, {State.EXPIRED}),
    "recover_message": _move({State.WORKER_QUEUE}, {State.READY_QUEUE}),
    "recover_worker": _move({State.RUNNING}, {State.RETRYING, State.ERROR}),
}

#: An event that lost this many leases may be what its workers died of: from then on it is tried alone.
SUSPECT_AFTER = 2
#: So many leases lost while its own request was being made, alone, and an event is set aside. Leases that it
#: lost in company never set it aside: its workers may have died of anything.
MAX_ISOLATED_LOSSES = 3


class Event(NamedTuple):
    """What delivery and dispatch need to know of an event. The history stays in the store."""

    id: str
    schedule_id: str
    """Empty for a message, which has none."""
    revision: int
    run_time: datetime
    due_at: datetime
    kind: Kind = Kind.SCHEDULED
    attempt: int = 0
    """Attempts made so far."""
    attempts_before: int = 0
    """Those of them made before the last redrive, which gave it a new budget of retries."""
    lost_leases: int = 0
    """Claims of it whose workers did not report: it may have been sent."""
    postponed_from: datetime | None = None
    """When it was due before it was postponed, or its worker was lost; None if neither has happened."""
    origin: str = UNKNOWN_ORIGIN
    """Of the URL that its schedule had when it was made. For sharing and counting: an edit may have changed
    the URL since, and what is known by its id alone has none."""
    hops: int = 0
    """Callbacks of ours, one after another, that led to the request that made it."""
    queue: str = CALLBACKS
    """Its message travels in it, and only workers that serve it claim the event."""
    due_since: datetime | None = None
    """Since when it counts as late, where that is not its run time: a redrive starts the time again."""
    completion_token: CompletionToken | None = None
    """With which its receiver says how its work went; None if the response does, and where no request is
    about to be made."""
    message: "Message | UnreadableMessage | None" = None
    """What a message delivers; None for an occurrence, and where only the event itself was read."""

    @property
    def tenant(self) -> str:
        """Whose it is; its id says so."""
        return tenant_of(self.id)


def scheduled(
    schedule_id: str,
    revision: int,
    run_time: datetime,
    origin: str = UNKNOWN_ORIGIN,
    queue: str = CALLBACKS,
) -> Event:
    """The event of one occurrence of a schedule's rule, due when it runs."""
    return Event(
        id=event_id(schedule_id, revision, run_time),
        schedule_id=schedule_id,
        revision=revision,
        run_time=run_time,
        due_at=run_time,
        origin=origin,
        queue=queue,
    )


def from_id(own_id: str) -> Event | None:
    """The event that `scheduled` made under this id; None if the id says that it was not made by it."""
    schedule_id, _, rest = own_id.rpartition("-")
    schedule_id, _, revision = schedule_id.rpartition("-")
    run_time = instant_of(rest)
    if run_time is None or not schedule_id or not (revision.isascii() and revision.isdigit()):
        return None
    return Event(own_id, schedule_id, int(revision), run_time, run_time)


def manual(
    schedule_id: str,
    revision: int,
    now: datetime,
    request_seed: str | None = None,
    *,
    origin: str = UNKNOWN_ORIGIN,
    queue: str = CALLBACKS,
    hops: int = 0,
) -> Event:
    """The event of a trigger: due at once."""
    return Event(
        id=manual_event_id(schedule_id, request_seed),
        schedule_id=schedule_id,
        revision=revision,
        run_time=now,
        due_at=now,
        kind=Kind.MANUAL,
        origin=origin,
        queue=queue,
        hops=hops,
    )


Completion = Literal["response", "callback"]

DEFAULT_COMPLETION_TIMEOUT = 3_600.0
LEAST_COMPLETION_TIMEOUT = 1.0
MAX_COMPLETION_TIMEOUT = 604_800.0
#: The tokens of this many attempts are known: a receiver may keep the one that it was sent first.
KEPT_TOKENS = 10
MAX_REASON = 500


def token_digest(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def is_known_token(token: str, digests: Iterable[str]) -> bool:
    """Whether it is one of the tokens; the time that it takes says nothing of them."""
    given = token_digest(token)
    # All of them are compared, whichever fits.
    return sum(hmac.compare_digest(given, each) for each in digests) > 0


class CompletionReport(NamedTuple):
    """What was said of an attempt, or that its time was over."""

    how: Literal["completed", "failed", "timed_out"]
    attempt: int
    at: datetime


class AwaitedEvent(NamedTuple):
    """What is known of an event whose receiver says how its work went."""

    event_id: str
    schedule_id: str
    run_time: datetime
    state: State
    owner: str | None
    """The claim's token, while a worker has it, or may still record."""
    attempt: int
    """Attempts recorded so far."""
    number: int
    """The attempt that the newest token was made for."""
    digests: tuple[str, ...]
    seconds: float
    """For how long it is waited for."""
    retry_in: timedelta | None
    """What follows that attempt's failure; None: it is the last one."""
    awaiting: bool
    """The request was answered, and the work goes on."""
    told: CompletionReport | None
    last_message: str
    """Of its history."""


def why_report_is_too_late(awaited: AwaitedEvent, how: Literal["completed", "failed"]) -> str | None:
    """Why it is too late to say so; None if it is not. It is empty where the same was said before."""
    told = awaited.told
    said_before = told is not None and told.attempt == awaited.attempt and told.how == how
    if awaited.state is State.RUNNING:
        return None
    if awaited.state in FINAL:
        again = said_before or (awaited.state is State.COMPLETED and how == "completed")
        return "" if again else f"the event is {awaited.state}: {awaited.last_message}"
    if told is None or told.attempt != awaited.attempt:
        # Its worker was lost, or did not get the answer; the receiver knows better.
        return None
    return "" if said_before else f"this attempt is over: {awaited.last_message}"


#: A day: more than that is another rule.
MAX_JITTER_SECONDS = 86_400.0
_FRACTIONS = 2**64


def jitter_of(schedule_id: str, run_time: datetime, seconds: float) -> timedelta:
    """The jitter of one occurrence: from zero up to but not including `seconds`, in whole milliseconds.

    A hash of the schedule's id, with its tenant, and of the instant: neither a preview nor an edit of
    something else moves it, and the occurrences of many schedules at one instant spread evenly.
    """
    if not seconds:
        return timedelta()
    drawn = blake2b(f"{schedule_id} {compact(run_time)}".encode(), digest_size=8).digest()
    return timedelta(milliseconds=int.from_bytes(drawn) * round(seconds * 1000) // _FRACTIONS)


def due(schedule_id: str, run_time: datetime, seconds: float) -> datetime:
    """When the callback of an occurrence falls due."""
    return run_time + jitter_of(schedule_id, run_time, seconds)


def jittered(events: Sequence[Event], seconds: float) -> list[Event]:
    """The events of occurrences, due with their jitter."""
    if not seconds:
        return list(events)
    return [each._replace(due_at=due(each.schedule_id, each.run_time, seconds)) for each in events]
