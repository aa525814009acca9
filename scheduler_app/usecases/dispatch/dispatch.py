"""Dispatch: due events become messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple, Protocol

from scheduler_app.clock import monotonic
from scheduler_app.config import DISPATCH_LEASE_SECONDS
from scheduler_app.domain.event import Event
from scheduler_app.domain.flow import Limiter
from scheduler_app.domain.lane import Lane, QueueLengths
from scheduler_app.domain.queues import CALLBACKS
from scheduler_app.parallel import Parallel
from scheduler_app.store import Store
from scheduler_app.store.events.outbox import Due
from scheduler_app.telemetry import metrics
from scheduler_app.usecases.blackouts import BlackoutGate
from scheduler_app.usecases.dispatch.batches import EVENTS_A_BATCH, Batch, grouped, lane_of
from scheduler_app.usecases.dispatch.lines import Lines
from scheduler_app.usecases.dispatch.room import Room, RoomEstimate
from scheduler_app.usecases.dispatch.selection import EVENTS_A_PAGE, select
from scheduler_app.usecases.kill_switches import KillSwitchGate

PARTS_AT_ONCE = 2
#: Parts of fewer events would break up batches.
WORTH_PARTS = 4 * EVENTS_A_BATCH
#: A selection older than this may no longer name the most urgent events.
SELECTION_SECONDS = 1.0
#: A burst is claimed earlier still, by this share of the horizon: deployments that expect larger bursts than
#: usual have a longer horizon. The bound keeps the time from using up the leases.
BURST_AHEAD_SHARE = 5
MAX_BURST_AHEAD = timedelta(seconds=5)
#: Queues whose room a process remembers.
MOST_ESTIMATES = 64


@dataclass(frozen=True, slots=True)
class DispatchResult:
    """The result of dispatching one page."""

    dispatched: int
    """Events whose messages were sent."""
    full: bool
    """There may be more to dispatch at once."""


class Publisher(Protocol):
    """The way to the workers. It raises `unavailable` when the broker cannot be reached."""

    unavailable: tuple[type[Exception], ...]

    def publish(self, batches: Sequence[Batch]) -> None: ...

    def queue_lengths(self, queue: str = CALLBACKS) -> QueueLengths: ...


class Dispatch:
    """Sends what is due within the horizon. Any number of beats and API processes may do it at once."""

    def __init__(
        self,
        store: Store,
        publisher: Publisher,
        *,
        horizon_seconds: float,
        limiter: Limiter | None = None,
    ) -> None:
        """`limiter` says when destinations have room."""
        self._outbox = store.outbox
        self._lines = Lines(store, limiter)
        self._gate = KillSwitchGate(store)
        self._blackouts = BlackoutGate(store)
        self.publisher = publisher
        self._horizon = timedelta(seconds=horizon_seconds)
        self._burst_ahead = min(self._horizon / BURST_AHEAD_SHARE, MAX_BURST_AHEAD)
        self._parallel = Parallel(PARTS_AT_ONCE, worth=WORTH_PARTS, name="dispatch")
        self._estimates: dict[str, RoomEstimate] = {}
        self._next_queue = ""

    def dispatch_page(self, now: datetime, *, named_queues: bool = True) -> DispatchResult:
        """Dispatches what waits, queue by queue: what falls due now first, a share of what is late beside it,
        and each in turn among its owners. A queue ends when little is left, its lanes are full, or its time
        is over: one that nobody serves holds up no other. `named_queues`: whether to look at others than
        CALLBACKS, for a caller that knows that nothing waits in them.

        Raises a STORE_FAULT or `publisher.unavailable`; what was taken then is put back, here or by recovery.
        """
        results = [self._dispatch_queue(CALLBACKS, now)]
        began = monotonic()
        for queue in self._outbox.named_queues(after=self._next_queue) if named_queues else ():
            if monotonic() - began > SELECTION_SECONDS:
                results.append(DispatchResult(0, full=True))
                break
            results.append(self._dispatch_queue(queue, now))
            self._next_queue = queue
        return DispatchResult(
            sum(result.dispatched for result in results), full=any(result.full for result in results)
        )

    def _dispatch_queue(self, queue: str, now: datetime) -> DispatchResult:
        began = monotonic()
        room = Room.beside(self.publisher.queue_lengths(queue))
        if not room.fresh and not room.late:
            return DispatchResult(0, full=False)
        # "Full" counts candidates and not those won: another beat may have taken half of them, and both beats
        # would wait for their next tick.
        waiting = partial(self._outbox.due, queue=queue)
        selection = select(waiting, now, now + self._horizon, room)
        dispatched = 0
        for number, page in enumerate(selection.pages(EVENTS_A_PAGE)):
            # One page goes out however long the selection took: with a slow MongoDB none would ever.
            if number and monotonic() - began > SELECTION_SECONDS:
                return DispatchResult(dispatched, full=True)
            passed = self._gate.passed(_that_have_room(page, now, room), now + self._horizon, now)
            passed = self._blackouts.passed(passed, now + self._horizon, now)
            done = self._dispatch(passed, now, queue)
            dispatched, room = dispatched + done.events, room.without(done.lanes)
        return DispatchResult(dispatched, full=selection.more)

    def dispatch_these(self, events: Sequence[Event], now: datetime, *, urgent: bool = False) -> int:
        """Dispatches those of the given events that are due within the horizon, before the next tick.

        `urgent`: a person asked for them this moment; more than a batch of them is bulk, and waits its turn.
        Returns how many went out: what there is no room for is left to beat. Raises as `dispatch_page`.
        """
        until = now + self._horizon
        by_queue: dict[str, list[Due]] = {}
        for event in events:
            if event.due_at <= until:
                due = Due(event.due_at, event.id, event.origin, event.lost_leases)
                by_queue.setdefault(event.queue, []).append(due)
        return sum(
            self._dispatch_due(sorted(due), queue, now, urgent=urgent) for queue, due in by_queue.items()
        )

    def _dispatch_due(self, due: Sequence[Due], queue: str, now: datetime, *, urgent: bool) -> int:
        estimate, dispatched = self._estimate(queue), 0
        for first in range(0, len(due), EVENTS_A_PAGE):
            room = estimate.room()
            first_of_all = urgent and len(due) <= EVENTS_A_BATCH and room.urgent > 0
            page = due[first : first + EVENTS_A_PAGE]
            chosen = page if first_of_all else _that_have_room(page, now, room)
            done = self._dispatch(chosen, now, queue, urgent=first_of_all)
            estimate.published(done.lanes)
            dispatched += done.events
        return dispatched

    def _estimate(self, queue: str) -> RoomEstimate:
        """The estimate of a queue; with too many queues all estimates are dropped."""
        found = self._estimates.get(queue)
        if found is None:
            if len(self._estimates) >= MOST_ESTIMATES:
                self._estimates = {}
            found = RoomEstimate(partial(self.publisher.queue_lengths, queue))
            self._estimates[queue] = found
        return found

    def _dispatch(self, due: Sequence[Due], now: datetime, queue: str, *, urgent: bool = False) -> "_Done":
        due = self._lines.in_time(due, now + self._horizon, now, queue=queue)
        parts = self._parallel.each(
            lambda part: self._dispatch_part(part, now, queue, urgent=urgent), self._parallel.of(due)
        )
        return _Done(sum(part.events for part in parts), [lane for part in parts for lane in part.lanes])

    def _dispatch_part(self, due: Sequence[Due], now: datetime, queue: str, *, urgent: bool) -> "_Done":
        until = now + self._horizon
        token, taken = self._outbox.take(due, until, now, lease_seconds=DISPATCH_LEASE_SECONDS)
        batches = grouped(taken, now, self._burst_ahead, queue=queue, urgent=urgent)
        if batches:
            try:
                self.publisher.publish(batches)
            except self.publisher.unavailable:
                self._outbox.put_back(token, now)
                raise
        # A crash before this sends a second message, which finds the event claimed or finished.
        self._outbox.sent(token)
        metrics.messages.inc(len(batches))
        metrics.dispatched.inc(len(taken))
        return _Done(len(taken), [batch.lane for batch in batches])


class _Done(NamedTuple):
    """How many events went out, and the lane of each of their messages."""

    events: int
    lanes: list[Lane]


def _that_have_room(events: Sequence[Due], now: datetime, room: Room) -> Sequence[Due]:
    """Without those whose lane has become full."""
    if room.fresh and room.late:
        return events
    return [event for event in events if room.of(lane_of(event, now))]
