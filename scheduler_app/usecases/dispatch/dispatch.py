"""Dispatch: due events become messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from scheduler_app.clock import monotonic
from scheduler_app.config import DISPATCH_LEASE_SECONDS
from scheduler_app.domain.event import Event
from scheduler_app.domain.flow import Limiter
from scheduler_app.domain.lane import Lane, QueueLengths
from scheduler_app.parallel import Parallel
from scheduler_app.store import Store
from scheduler_app.store.events.outbox import Due
from scheduler_app.telemetry import metrics
from scheduler_app.usecases.dispatch.batches import EVENTS_A_BATCH, Batch, grouped, lane_of
from scheduler_app.usecases.dispatch.lines import Lines
from scheduler_app.usecases.dispatch.room import Room, RoomEstimate
from scheduler_app.usecases.dispatch.selection import EVENTS_A_PAGE, select

PARTS_AT_ONCE = 2
#: Parts of fewer events would break up batches.
WORTH_PARTS = 4 * EVENTS_A_BATCH
#: A selection older than this may no longer name the most urgent events.
SELECTION_SECONDS = 1.0
#: A burst is claimed earlier still: by this share of the horizon, for whoever expects larger bursts than
#: usual makes that longer, but never by so much that its leases would be short.
BURST_AHEAD_SHARE = 5
MAX_BURST_AHEAD = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class DispatchResult:
    """What the dispatch of one page led to."""

    dispatched: int
    """Events whose messages were sent."""
    full: bool
    """There may be more to dispatch at once."""


class Publisher(Protocol):
    """The way to the workers. It raises `unavailable` when the broker cannot be reached."""

    unavailable: tuple[type[Exception], ...]

    def publish(self, batches: Sequence[Batch]) -> None: ...

    def queue_lengths(self) -> QueueLengths: ...


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
        self.publisher = publisher
        self._horizon = timedelta(seconds=horizon_seconds)
        self._burst_ahead = min(self._horizon / BURST_AHEAD_SHARE, MAX_BURST_AHEAD)
        self._parallel = Parallel(PARTS_AT_ONCE, worth=WORTH_PARTS, name="dispatch")
        self._estimate = RoomEstimate(publisher.queue_lengths)

    def dispatch_page(self, now: datetime) -> DispatchResult:
        """Dispatches what waits: what falls due now first, a share of what is late beside it, and each in
        turn among its owners. It ends when little is left, the lanes are full, or time is over.

        Raises a STORE_FAULT or `publisher.unavailable`; what was taken then is put back, here or by recovery.
        """
        began = monotonic()
        room = Room.beside(self.publisher.queue_lengths())
        if not room.fresh and not room.late:
            return DispatchResult(0, full=False)
        # "Full" counts candidates and not those won: another beat may have taken half of them, and both beats
        # would wait for their next tick.
        selection = select(self._outbox, now, now + self._horizon, room)
        dispatched = 0
        for page in selection.pages(EVENTS_A_PAGE):
            if monotonic() - began > SELECTION_SECONDS:
                return DispatchResult(dispatched, full=True)
            done = self._dispatch(_that_have_room(page, now, room), now)
            dispatched, room = dispatched + done.events, room.without(done.lanes)
        return DispatchResult(dispatched, full=selection.more)

    def dispatch_these(self, events: Sequence[Event], now: datetime, *, urgent: bool = False) -> int:
        """Dispatches those of the given events that are due within the horizon, before the next tick.

        `urgent`: a person asked for them this moment; more than a batch of them is bulk, and waits its turn.
        Returns how many went out: what there is no room for is left to beat. Raises as `dispatch_page`.
        """
        until = now + self._horizon
        due = sorted(
            Due(event.due_at, event.id, event.origin, event.lost_leases)
            for event in events
            if event.due_at <= until
        )
        dispatched = 0
        for first in range(0, len(due), EVENTS_A_PAGE):
            room = self._estimate.room()
            first_of_all = urgent and len(due) <= EVENTS_A_BATCH and room.urgent > 0
            page = due[first : first + EVENTS_A_PAGE]
            done = self._dispatch(
                page if first_of_all else _that_have_room(page, now, room), now, urgent=first_of_all
            )
            self._estimate.published(done.lanes)
            dispatched += done.events
        return dispatched

    def _dispatch(self, due: Sequence[Due], now: datetime, *, urgent: bool = False) -> "_Done":
        due = self._lines.in_time(due, now + self._horizon, now)
        parts = self._parallel.each(
            lambda part: self._dispatch_part(part, now, urgent=urgent), self._parallel.of(due)
        )
        return _Done(sum(part.events for part in parts), [lane for part in parts for lane in part.lanes])

    def _dispatch_part(self, due: Sequence[Due], now: datetime, *, urgent: bool) -> "_Done":
        until = now + self._horizon
        token, taken = self._outbox.take(due, until, now, lease_seconds=DISPATCH_LEASE_SECONDS)
        batches = grouped(taken, now, self._burst_ahead, urgent=urgent)
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
