"""Selects what is dispatched next, where more waits than can be dispatched at once.

`Room` is how many messages may wait in each lane of the queue; a `Batch` is the events that travel in one
message.
"""

import math
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Protocol

from scheduler_app.clock import monotonic
from scheduler_app.domain.action import CALLBACKS, FRESH_FOR, Lane, QueueLengths, in_turn
from scheduler_app.domain.ids import SEPARATOR, is_backfill, schedule_of, tenant_of
from scheduler_app.domain.states import SUSPECT_AFTER
from scheduler_app.store.events.outbox import DueEvent
from scheduler_app.usecases.duties.fair_reads import with_those_behind

#: How many messages may wait in each lane. A burst is not held up: workers fetch what has an eta at once.
LANE_MESSAGES = {Lane.URGENT: 50, Lane.FRESH: 150, Lane.LATE: 50}
#: With this many messages in the queue, beat sends no more.
MESSAGES_IN_QUEUE = LANE_MESSAGES[Lane.FRESH] + LANE_MESSAGES[Lane.LATE]
#: A program that triggers without end is urgent so often; the rest of what it asks for is fresh.
URGENT_A_SECOND = 20
ASK_AGAIN_SECONDS = 1.0
#: Workers fetch faster than that: what seems to be full is looked at again before anything is left to beat.
ASK_FULL_AGAIN_SECONDS = 0.01
#: A backlog is read once there is room for this many messages, not for each one that a worker takes.
LATE_REFILL = LANE_MESSAGES[Lane.LATE] // 4


@dataclass(frozen=True, slots=True)
class Room:
    """How many messages more each lane may take; not negative."""

    urgent: int
    fresh: int
    late: int

    @classmethod
    def beside(cls, lengths: QueueLengths) -> "Room":
        late = LANE_MESSAGES[Lane.LATE] - lengths.late
        return cls(
            urgent=max(0, LANE_MESSAGES[Lane.URGENT] - lengths.urgent),
            fresh=max(0, LANE_MESSAGES[Lane.FRESH] - lengths.fresh),
            late=late if late >= LATE_REFILL else 0,
        )

    def of(self, lane: Lane) -> int:
        return {Lane.URGENT: self.urgent, Lane.FRESH: self.fresh, Lane.LATE: self.late}[lane]

    def after_publishing(self, published: Sequence[Lane]) -> "Room":
        """The room that is left after messages in these lanes."""
        count = Counter(published)
        return Room(*(max(0, self.of(lane) - count[lane]) for lane in Lane))


class RoomEstimate:
    """The room for those who publish too often to ask the broker each time: what it was within the last
    second, less what this process has published since. Thread-safe."""

    def __init__(self, lengths: Callable[[], QueueLengths], seconds: Callable[[], float] = monotonic) -> None:
        self._lengths = lengths
        self._seconds = seconds
        self._lock = threading.Lock()
        self._asked_at = self._urgent_since = -math.inf
        self._urgent = URGENT_A_SECOND
        self._room = Room.beside(QueueLengths())

    def room(self) -> Room:
        """Raises what `lengths` raises."""
        with self._lock:
            now = self._seconds()
            if now - self._asked_at < (ASK_AGAIN_SECONDS if self._room.fresh else ASK_FULL_AGAIN_SECONDS):
                return self._room
            # Others go by what is known meanwhile: a broker that hangs holds one thread here and not all.
            self._asked_at = now
        room = Room.beside(self._lengths())
        with self._lock:
            if now - self._urgent_since >= 1.0:
                self._urgent_since, self._urgent = now, URGENT_A_SECOND
            self._room = Room(min(room.urgent, self._urgent), room.fresh, room.late)
            return self._room

    def published(self, lanes: Sequence[Lane]) -> None:
        with self._lock:
            self._room = self._room.after_publishing(lanes)
            self._urgent = max(0, self._urgent - lanes.count(Lane.URGENT))


EVENTS_A_BATCH = 100
BATCH_SPAN = timedelta(milliseconds=100)
#: An origin with this many events in a span has batches of its own there.
EVENTS_OF_A_BUSY_ORIGIN = 50
#: A span of fewer events goes on for so long: at 20 a second, a message for each two of them was a third of
#: what a worker did. Its last events are claimed earlier by as much, so an edit may wait longer for them.
SPARSE_SPAN = timedelta(milliseconds=500)
#: Claiming early leaves only the request itself for the due instant. An edit has to wait for the end of an
#: event that is claimed, so this is no longer than a claim takes in a worker that is busy with others'.
CLAIM_AHEAD = timedelta(milliseconds=200)


@dataclass(frozen=True, slots=True)
class Batch:
    """Events that travel in one message; `eta` is when a worker takes it up, some time before the first of
    them is due; None when that has come."""

    ids: tuple[str, ...]
    eta: datetime | None
    lane: Lane = Lane.FRESH
    queue: str = CALLBACKS


def lane_of(event: DueEvent, now: datetime) -> Lane:
    """The lane of an event that no person has just asked for. What is backfilled comes after what falls due
    by itself."""
    late = event.lost_leases >= SUSPECT_AFTER or event.due_at <= now - FRESH_FOR or is_backfill(event.id)
    return Lane.LATE if late else Lane.FRESH


def grouped(
    events: Sequence[DueEvent],
    now: datetime,
    burst_ahead: timedelta,
    *,
    queue: str = CALLBACKS,
    urgent: bool = False,
) -> list[Batch]:
    """Batches of events (sorted by due time) due within the same span, for `queue`; all past ones count as
    now.

    In the order in which they are to be published: what workers take first, and then what several share,
    before those of busy origins. Full ones are taken up `burst_ahead` of their time.
    """
    alone = [event for event in events if event.lost_leases >= SUSPECT_AFTER]
    batches = [_batch([event], now, burst_ahead, Lane.LATE, queue) for event in alone]
    busy: list[Batch] = []
    others = [event for event in events if event.lost_leases < SUSPECT_AFTER] if alone else events
    # The claim of a retry reads it, and takes several times as long as that of events as they were made.
    returning = [event for event in others if event.returns]
    first = [event for event in others if not event.returns] if returning else others
    for span in (*_spans(first, now), *_spans(returning, now)):
        lane = Lane.URGENT if urgent else lane_of(span[0], now)
        shared, of_their_own = _shared_and_busy(span)
        batches += [_batch(some, now, burst_ahead, lane, queue) for some in _cut(shared)]
        for origin in of_their_own:
            busy += [_batch(some, now, burst_ahead, lane, queue) for some in _cut(origin)]
    order = list(Lane)
    return sorted([*batches, *busy], key=lambda batch: order.index(batch.lane))


def _spans(events: Sequence[DueEvent], now: datetime) -> Iterator[list[DueEvent]]:
    """The key of events that may travel in one message by their times; late events travel apart from fresh
    ones."""
    span: list[DueEvent] = []
    first, lane = now, Lane.FRESH
    for event in events:
        due = max(event.due_at, now)
        full_after = BATCH_SPAN if len(span) >= EVENTS_OF_A_BUSY_ORIGIN - 1 else SPARSE_SPAN
        if span and (due - first >= full_after or lane_of(event, now) is not lane):
            yield span
            span = []
        if not span:
            first, lane = due, lane_of(event, now)
        span.append(event)
    if span:
        yield span


def _shared_and_busy(span: list[DueEvent]) -> tuple[list[DueEvent], list[list[DueEvent]]]:
    """The events that share batches, and those of each busy origin: how long a worker needs for its events,
    and whether their claim succeeds, does not concern the others."""
    if len(span) < EVENTS_OF_A_BUSY_ORIGIN:
        return span, []
    by_origin: dict[str, list[DueEvent]] = {}
    for event in span:
        by_origin.setdefault(event.origin, []).append(event)
    busy = {origin for origin, theirs in by_origin.items() if len(theirs) >= EVENTS_OF_A_BUSY_ORIGIN}
    shared = [event for event in span if event.origin not in busy]
    return shared, [by_origin[origin] for origin in by_origin if origin in busy]


def _cut(events: Sequence[DueEvent]) -> Iterator[Sequence[DueEvent]]:
    for first in range(0, len(events), EVENTS_A_BATCH):
        yield events[first : first + EVENTS_A_BATCH]


def _batch(
    events: Sequence[DueEvent], now: datetime, burst_ahead: timedelta, lane: Lane, queue: str
) -> Batch:
    ahead = burst_ahead if len(events) == EVENTS_A_BATCH else CLAIM_AHEAD
    eta = max(events[0].due_at, now) - ahead
    ids = tuple(event.id for event in events)
    return Batch(ids, eta if eta > now else None, lane, queue)


#: Events that are marked at one time, in parts, and then published.
EVENTS_A_PAGE = 1_000
#: Events of one read: enough to share out an ordinary burst.
CANDIDATES = 4_000
#: While fresh events wait, one in this many dispatched events is a late one.
LATE_SHARE = 4
#: Within so much time those who are served in turn may overtake each other; what is due later comes later.
SLICE = timedelta(seconds=1)
#: The first slice is longer: a beat that has as much to do as it can may look again only then, and what falls
#: due meanwhile would be dispatched too late.
FIRST_SLICE = timedelta(seconds=3)


class WaitingEvents(Protocol):
    """`Outbox.due` of one queue."""

    def __call__(
        self,
        until: datetime,
        *,
        limit: int,
        after: datetime | None = None,
        but: Collection[str] = (),
        but_tenants: Collection[str] = (),
    ) -> list[DueEvent]: ...


@dataclass(frozen=True, slots=True)
class DispatchSelection:
    """The events to dispatch, in this order. `more` says that others wait, for which there is room."""

    fresh: list[DueEvent]
    late: list[DueEvent]
    more: bool

    def pages(self, size: int) -> Iterator[list[DueEvent]]:
        """`size` events at a time: what is fresh first, and at least a share of what is late in each."""
        fresh, late = 0, 0
        while fresh < len(self.fresh) or late < len(self.late):
            fresh_left, late_left = len(self.fresh) - fresh, len(self.late) - late
            share = min(late_left, max(size // LATE_SHARE, size - fresh_left))
            page = self.fresh[fresh : fresh + size - share] + self.late[late : late + share]
            fresh, late = fresh + size - share, late + share
            yield sorted(page)


def select(
    waiting: WaitingEvents,
    now: datetime,
    until: datetime,
    room: Room,
    has_tenants: Callable[[], bool] = lambda: False,
) -> DispatchSelection:
    """Selects among the events of one queue that wait up to `until`. One read is enough, unless more wait
    than it returns. `has_tenants`: whether there are others than the default one; asked only then.

    Raises a STORE_FAULT.
    """
    stale = now - FRESH_FOR
    # A backlog without room for it is not even read.
    found = waiting(until, limit=CANDIDATES, after=None if room.late else stale)
    full = len(found) == CANDIDATES
    if full:
        found = _read_beyond(waiting, found, stale, until, has_tenants())
    fresh: list[DueEvent] = []
    late: list[DueEvent] = []
    for event in found:
        (fresh if lane_of(event, now) is Lane.FRESH else late).append(event)
    if len(found) > EVENTS_A_PAGE:  # less goes out together, in whatever order
        owners = (_tenant, _origin, _schedule) if any(SEPARATOR in each.id for each in found) else _OWNERS
        fresh, late = list(_by_urgency(fresh, now, owners)), list(in_turn(late, *owners))
    fresh = fresh[: min(CANDIDATES, room.fresh * EVENTS_A_BATCH)]
    late = _fitting(late, room.late)
    more = full or len(fresh) + len(late) < len(found)
    return DispatchSelection(fresh, late, more=more and bool(fresh or late))


def _read_beyond(
    waiting: WaitingEvents, found: list[DueEvent], stale: datetime, until: datetime, has_tenants: bool
) -> list[DueEvent]:
    """Reads on behind a full read, `found`, so that neither late nor fresh events, nor those of any tenant or
    origin, are hidden."""
    late = [event for event in found if event.due_at <= stale]
    if not late:
        return _events_of_others(waiting, found, stale, until, has_tenants)
    fresh = waiting(until, limit=CANDIDATES, after=stale)
    if len(late) == CANDIDATES:
        late = _events_of_others(waiting, late, None, stale, has_tenants)
    if len(fresh) == CANDIDATES:
        fresh = _events_of_others(waiting, fresh, stale, until, has_tenants)
    return late + fresh


def _events_of_others(
    waiting: WaitingEvents,
    found: list[DueEvent],
    after: datetime | None,
    until: datetime,
    has_tenants: bool,
) -> list[DueEvent]:
    """`found`, and the events behind it of tenants, and of origins, that have fewer of them."""

    def but_origins(hogs: Collection[str]) -> list[DueEvent]:
        return waiting(until, limit=CANDIDATES, after=after, but=hogs)

    def but_tenants(hogs: Collection[str]) -> list[DueEvent]:
        return waiting(until, limit=CANDIDATES, after=after, but_tenants=hogs)

    of_tenants = with_those_behind(found, _tenant, but_tenants, full=CANDIDATES) if has_tenants else found
    of_origins = with_those_behind(found, _origin, but_origins, full=CANDIDATES)
    return sorted({each.id: each for each in (*of_tenants, *of_origins)}.values())


def _by_urgency(
    events: Sequence[DueEvent], now: datetime, owners: Sequence[Callable[[DueEvent], str]]
) -> Iterator[DueEvent]:
    """The soonest first. Events due within the same slice of time, in the first of which all overdue ones
    are, are taken in turn among their owners."""

    def slice_of(event: DueEvent) -> int:
        return max(0, (event.due_at - now - FIRST_SLICE) // SLICE + 1)

    for _, some in groupby(events, slice_of):
        yield from in_turn(some, *owners)


def _fitting(events: Sequence[DueEvent], messages: int) -> list[DueEvent]:
    """As many events as fit into that number of messages. A suspect event, which travels alone, takes a whole
    message."""
    fitting: list[DueEvent] = []
    room = messages * EVENTS_A_BATCH
    for event in events:
        room -= EVENTS_A_BATCH if event.lost_leases >= SUSPECT_AFTER else 1
        if room < 0:
            break
        fitting.append(event)
    return fitting


def _tenant(event: DueEvent) -> str:
    return tenant_of(event.id)


def _origin(event: DueEvent) -> str:
    return event.origin


def _schedule(event: DueEvent) -> str:
    return schedule_of(event.id)


#: Where there is one tenant.
_OWNERS = (_origin, _schedule)
