"""Dispatch: due events become messages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from scheduler_app.config import DISPATCH_LEASE_SECONDS
from scheduler_app.domain.event import Event
from scheduler_app.parts import Parts
from scheduler_app.store import Store
from scheduler_app.store.outbox import Due
from scheduler_app.telemetry import metrics

EVENTS_A_PAGE = 1_000
EVENTS_A_BATCH = 100
PARTS_AT_ONCE = 2
#: Parts of fewer events would break up batches.
WORTH_PARTS = 4 * EVENTS_A_BATCH
BATCH_SPAN = timedelta(milliseconds=100)
#: What is claimed before its time has only to be sent when that has come. An edit that finds an event claimed
#: has to wait for its end, so it is no more than a claim takes where others are made beside it.
CLAIM_AHEAD = timedelta(milliseconds=50)
#: A burst is claimed earlier still: by this share of the horizon, for whoever expects larger bursts than
#: usual makes that longer, but never by so much that its leases would be short.
BURST_AHEAD_SHARE = 5
MAX_BURST_AHEAD = timedelta(seconds=5)
#: Beyond this the backlog waits in MongoDB, where it is sorted by due time and can still be cancelled.
MESSAGES_IN_QUEUE = 1_000


@dataclass(frozen=True, slots=True)
class Batch:
    """Events that travel in one message; `eta` is when a worker takes it up, some time before the first of
    them is due; None when that has come."""

    ids: tuple[str, ...]
    eta: datetime | None


@dataclass(frozen=True, slots=True)
class Page:
    """How many events of a page were dispatched. `full`: there may be more at once."""

    dispatched: int
    full: bool


class Publisher(Protocol):
    """The way to the workers. It raises `unavailable` when the broker cannot be reached."""

    unavailable: tuple[type[Exception], ...]

    def publish(self, batches: Sequence[Batch]) -> None: ...

    def queue_length(self) -> int: ...


class Dispatch:
    """Sends what is due within the horizon. Any number of beats and API processes may do it at once."""

    def __init__(self, store: Store, publisher: Publisher, *, horizon_seconds: float) -> None:
        self._outbox = store.outbox
        self.publisher = publisher
        self._horizon = timedelta(seconds=horizon_seconds)
        self._burst_ahead = min(self._horizon / BURST_AHEAD_SHARE, MAX_BURST_AHEAD)
        self._parts = Parts(PARTS_AT_ONCE, worth=WORTH_PARTS, name="dispatch")

    def dispatch_page(self, now: datetime) -> Page:
        """Dispatches one page of due events, oldest first.

        Nothing while the queue is long. Raises a STORE_FAULT or `publisher.unavailable`; what was taken then
        is put back, here or by recovery.
        """
        room = MESSAGES_IN_QUEUE - self.publisher.queue_length()
        if room <= 0:
            return Page(0, full=False)
        due = self._outbox.due(now + self._horizon, limit=min(EVENTS_A_PAGE, room * EVENTS_A_BATCH))
        # Full by what was there, not by what was won of it: another beat may have had half of the page, and
        # both of them would wait for their next tick.
        return Page(self._dispatch(due, now), full=len(due) == EVENTS_A_PAGE)

    def dispatch_these(self, events: Sequence[Event], now: datetime) -> int:
        """Dispatches those of the given events that are due within the horizon, before the next tick."""
        until = now + self._horizon
        return self._dispatch([Due(event.due_at, event.id) for event in events if event.due_at <= until], now)

    def _dispatch(self, due: Sequence[Due], now: datetime) -> int:
        return sum(self._parts.each(lambda part: self._dispatch_part(part, now), self._parts.of(due)))

    def _dispatch_part(self, due: Sequence[Due], now: datetime) -> int:
        until = now + self._horizon
        token, taken = self._outbox.take(due, until, now, lease_seconds=DISPATCH_LEASE_SECONDS)
        batches = list(grouped(taken, now, self._burst_ahead))
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
        return len(taken)


def grouped(events: Sequence[Due], now: datetime, burst_ahead: timedelta) -> Iterator[Batch]:
    """Batches of events (sorted by due time) due within the same span; all past ones count as now. Full ones
    are taken up `burst_ahead` of their time."""
    batch: list[Due] = []
    first = now
    for event in events:
        due = max(event.due_at, now)
        if batch and (len(batch) == EVENTS_A_BATCH or due - first >= BATCH_SPAN):
            yield _batch(batch, first, now, burst_ahead)
            batch = []
        if not batch:
            first = due
        batch.append(event)
    if batch:
        yield _batch(batch, first, now, burst_ahead)


def _batch(events: Sequence[Due], first: datetime, now: datetime, burst_ahead: timedelta) -> Batch:
    eta = first - (burst_ahead if len(events) == EVENTS_A_BATCH else CLAIM_AHEAD)
    return Batch(ids=tuple(event.id for event in events), eta=eta if eta > now else None)
