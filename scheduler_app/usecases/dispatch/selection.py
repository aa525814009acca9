"""Selects what is dispatched next, where more waits than can be dispatched at once."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Protocol

from scheduler_app.domain.event import SUSPECT_AFTER
from scheduler_app.domain.event_ids import schedule_of
from scheduler_app.domain.lane import FRESH_FOR, Lane
from scheduler_app.domain.turns import in_turn
from scheduler_app.store.events.outbox import Due
from scheduler_app.usecases.dispatch.batches import EVENTS_A_BATCH, lane_of
from scheduler_app.usecases.dispatch.room import Room

#: Events that are marked at one time, in parts, and then published.
EVENTS_A_PAGE = 1_000
#: Events of one read: enough to share out an ordinary burst.
CANDIDATES = 4_000
#: An origin with this many events of a full read may hide those of others.
EVENTS_OF_A_HOG = CANDIDATES // 8
#: Reads without those origins, for each window. What these rounds do not show waits until it is due.
ROUNDS = 3
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
        self, until: datetime, *, limit: int, after: datetime | None = None, but: Collection[str] = ()
    ) -> list[Due]: ...


@dataclass(frozen=True, slots=True)
class Selection:
    """The events to dispatch, in this order. `more` says that others wait, for which there is room."""

    fresh: list[Due]
    late: list[Due]
    more: bool

    def pages(self, size: int) -> Iterator[list[Due]]:
        """`size` events at a time: what is fresh first, and at least a share of what is late in each."""
        fresh, late = 0, 0
        while fresh < len(self.fresh) or late < len(self.late):
            fresh_left, late_left = len(self.fresh) - fresh, len(self.late) - late
            share = min(late_left, max(size // LATE_SHARE, size - fresh_left))
            page = self.fresh[fresh : fresh + size - share] + self.late[late : late + share]
            fresh, late = fresh + size - share, late + share
            yield sorted(page)


def select(waiting: WaitingEvents, now: datetime, until: datetime, room: Room) -> Selection:
    """Selects among the events of one queue that wait up to `until`. One read is enough, unless more wait
    than it returns.

    Raises a STORE_FAULT.
    """
    stale = now - FRESH_FOR
    # A backlog that there is no room for is not even read.
    found = waiting(until, limit=CANDIDATES, after=None if room.late else stale)
    full = len(found) == CANDIDATES
    if full:
        found = _beyond(waiting, found, stale, until)
    fresh: list[Due] = []
    late: list[Due] = []
    for event in found:
        (fresh if lane_of(event, now) is Lane.FRESH else late).append(event)
    if len(found) > EVENTS_A_PAGE:  # less goes out together, in whatever order
        fresh, late = list(_by_urgency(fresh, now)), list(in_turn(late, _origin, _schedule))
    fresh = fresh[: min(CANDIDATES, room.fresh * EVENTS_A_BATCH)]
    late = _that_fit(late, room.late)
    more = full or len(fresh) + len(late) < len(found)
    return Selection(fresh, late, more=more and bool(fresh or late))


def _beyond(waiting: WaitingEvents, found: list[Due], stale: datetime, until: datetime) -> list[Due]:
    """Reads on behind a full read, `found`, so that neither late nor fresh events, nor those of any origin,
    are hidden."""
    late = [event for event in found if event.due_at <= stale]
    if not late:
        return _of_others(waiting, found, stale, until)
    fresh = waiting(until, limit=CANDIDATES, after=stale)
    if len(late) == CANDIDATES:
        late = _of_others(waiting, late, None, stale)
    if len(fresh) == CANDIDATES:
        fresh = _of_others(waiting, fresh, stale, until)
    return late + fresh


def _of_others(
    waiting: WaitingEvents, found: list[Due], after: datetime | None, until: datetime
) -> list[Due]:
    """`found`, and the events behind it of origins that have fewer of them."""
    rows, hogs = found, set[str]()
    for _ in range(ROUNDS):
        hogs |= {origin for origin, count in Counter(map(_origin, rows)).items() if count >= EVENTS_OF_A_HOG}
        if not hogs or len(rows) < CANDIDATES:
            break
        rows = waiting(until, limit=CANDIDATES, after=after, but=hogs)
        there = {event.id for event in found}
        found = found + [event for event in rows if event.id not in there]
    return sorted(found)


def _by_urgency(events: Sequence[Due], now: datetime) -> Iterator[Due]:
    """The soonest first. Events due within the same slice of time, in the first of which all overdue ones
    are, are taken in turn among origins and schedules."""

    def slice_of(event: Due) -> int:
        return max(0, (event.due_at - now - FIRST_SLICE) // SLICE + 1)

    for _, some in groupby(events, slice_of):
        yield from in_turn(some, _origin, _schedule)


def _that_fit(events: Sequence[Due], messages: int) -> list[Due]:
    """As many events as fit into that number of messages. A suspect event, which travels alone, takes a whole
    message."""
    fitting: list[Due] = []
    room = messages * EVENTS_A_BATCH
    for event in events:
        room -= EVENTS_A_BATCH if event.lost_leases >= SUSPECT_AFTER else 1
        if room < 0:
            break
        fitting.append(event)
    return fitting


# A tenant comes before its origins, once there are tenants: `in_turn` takes any number of owners.
def _origin(event: Due) -> str:
    return event.origin


def _schedule(event: Due) -> str:
    return schedule_of(event.id)
