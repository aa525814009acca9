"""The states of an event and the moves between them, written once, as data; and the kinds of events."""

from dataclasses import dataclass
from enum import StrEnum


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
#: An event that lost this many leases while its own request was being made, alone, is set aside. Leases lost
#: beside other events never set it aside: its workers may have died of anything.
MAX_ISOLATED_LOSSES = 3
