"""Claimed batches: they wait here until shortly before they are due, and then their schedules and
destinations are read, for as long as MongoDB does not answer. What has to be judged at the instant itself
waits again.
"""

import heapq
import itertools
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

from scheduler_app.domain.destination import Destination
from scheduler_app.domain.event import Event
from scheduler_app.domain.message import Message
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.states import SUSPECT_AFTER, Kind
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.destinations import CorruptDestination
from scheduler_app.store.schedules.documents import CorruptSchedule
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.duties.dispatch_selection import EVENTS_OF_A_BUSY_ORIGIN
from scheduler_app.worker.capacity import WorkerStopping
from scheduler_app.worker.lease import Lease

#: The schedules of a batch by their ids, without those that are gone.
Schedules = Mapping[str, Schedule | CorruptSchedule]
#: The destinations that a batch needs by their ids, without those that are gone.
Destinations = Mapping[str, Destination | CorruptDestination]


class ClaimedBatch(NamedTuple):
    """The events that one claim won, soonest first, and its lease."""

    events: Sequence[Event]
    lease: Lease


class ReadBatch(NamedTuple):
    """A batch with what its events ask for, as it was shortly before they are due."""

    batch: ClaimedBatch
    schedules: Schedules
    destinations: Destinations

    def is_judged_when_due(self) -> bool:
        """Whether what becomes of its events depends on more than what was read: on how late it is, on other
        runs, on the room at a destination, or on a worker that may die of one of them."""
        found = self.schedules.values()
        return (
            any(isinstance(each, Destination) and each.is_limited for each in self.destinations.values())
            or any(
                isinstance(each, Schedule) and (each.lateness.judges or each.run_overlap != "allow")
                for each in found
            )
            or any(
                event.lost_leases >= SUSPECT_AFTER
                or (isinstance(event.message, Message) and event.message.lateness.judges)
                for event in self.batch.events
            )
        )


def is_withdrawn(event: Event, schedule: Schedule) -> bool:
    """Whether an edit, a pause or a deletion of its schedule withdrew the event."""
    if event.revision < schedule.first_revision:
        return True
    if event.kind in (Kind.MANUAL, Kind.BACKFILL):
        return schedule.state is ScheduleState.DELETED
    if event.lost_leases and schedule.state is not ScheduleState.DELETED:
        # A lost worker may have sent it; the revision after an edit makes no other event for this instant.
        return schedule.state is ScheduleState.PAUSED and event.run_time > schedule.revised_at
    return schedule.is_cancelled_by_edit(event.revision, event.run_time)


#: Schedules and destinations are read so long before their batch is due: reading takes some ms. The nearer
#: the first event is, the more are read together with it.
READ_AHEAD = timedelta(milliseconds=40)
#: The same for a batch of EVENTS_OF_A_BUSY_ORIGIN and more: reading takes longer where others are read, too.
READ_AHEAD_OF_MANY = timedelta(milliseconds=60)
#: An edit that was answered so long before an event is due is obeyed: what of a batch is due later than this
#: is read later.
OBEYED_AHEAD = timedelta(milliseconds=100)

#: The clock may be corrected while a batch waits: a thread looks at it at least this often.
LOOK_SECONDS = 1.0


def _read_at(batch: ClaimedBatch) -> datetime:
    many = len(batch.events) >= EVENTS_OF_A_BUSY_ORIGIN
    return batch.events[0].due_at - (READ_AHEAD_OF_MANY if many else READ_AHEAD)


class WaitingBatches:
    """A queue of batches by the time at which something is to be done with them: they are to be read, or, if
    they have been, to be judged. Threads share it."""

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        """`now` is the clock, in UTC."""
        self._now = now
        self._waiting: list[tuple[datetime, int, ClaimedBatch | ReadBatch]] = []
        self._order = itertools.count()
        lock = threading.Lock()
        # One thread waits for the time of the next batch, the others for their turn to do so: if all of them
        # waited for that instant, each event would wake them all.
        self._changed = threading.Condition(lock)
        self._turn = threading.Condition(lock)
        self._is_waited_for = False
        self._giving_back = False
        self._ended = False

    @property
    def giving_back(self) -> bool:
        """Whether `give_back` was called."""
        return self._giving_back

    def put(self, batch: ClaimedBatch) -> None:
        """Keeps a batch until it is to be read."""
        self._put(_read_at(batch), batch)

    def put_read(self, read: ReadBatch) -> None:
        """Keeps a batch until its first event is due."""
        self._put(read.batch.events[0].due_at, read)

    def _put(self, at: datetime, item: ClaimedBatch | ReadBatch) -> None:
        with self._changed:
            self._keep(at, item)
            if self._waiting[0][2] is item:  # else it is not what is waited for next
                (self._changed if self._is_waited_for else self._turn).notify()

    def _keep(self, at: datetime, item: ClaimedBatch | ReadBatch) -> None:
        heapq.heappush(self._waiting, (at, next(self._order), item))

    def take_out(self, event_ids: Collection[str]) -> list[tuple[Event, Lease]]:
        """Takes those of the events out that wait here."""
        found: list[tuple[Event, Lease]] = []
        kept = []
        with self._changed:
            for at, order, item in self._waiting:
                batch = item.batch if isinstance(item, ReadBatch) else item
                found += [(event, batch.lease) for event in batch.events if event.id in event_ids]
                if left := [event for event in batch.events if event.id not in event_ids]:
                    batch = batch._replace(events=left)
                    kept.append(
                        (at, order, item._replace(batch=batch) if isinstance(item, ReadBatch) else batch)
                    )
            heapq.heapify(kept)
            self._waiting = kept
        return found

    def give_back(self) -> None:
        """Makes every batch due at once, also those that are put later."""
        with self._changed:
            self._giving_back = True
            self._wake_all()

    def stop(self) -> None:
        """Lets every `next` return None, also those that wait."""
        with self._changed:
            self._ended = True
            self._wake_all()

    def next(self) -> ClaimedBatch | ReadBatch | None:
        """Waits for a batch whose time has come and takes it out; None after `stop`. What of a batch may not
        be read yet waits on."""
        with self._changed:
            while not self._ended:
                if self._waiting and self._is_due():
                    item = heapq.heappop(self._waiting)[2]
                    if isinstance(item, ClaimedBatch) and not self._giving_back:
                        item = self._due_soon(item)
                    if self._waiting:
                        self._turn.notify()
                    return item
                if self._is_waited_for:
                    self._turn.wait()
                else:
                    self._is_waited_for = True
                    self._changed.wait(self._seconds_to_next())
                    self._is_waited_for = False
        return None

    def _due_soon(self, batch: ClaimedBatch) -> ClaimedBatch:
        """The events that may be read now; the others are kept."""
        events, until = batch.events, self._now() + OBEYED_AHEAD
        count = max(1, sum(event.due_at <= until for event in events))
        if count < len(events):
            later = batch._replace(events=events[count:])
            self._keep(_read_at(later), later)
        return batch._replace(events=events[:count])

    def _wake_all(self) -> None:
        self._changed.notify_all()
        self._turn.notify_all()

    def _is_due(self) -> bool:
        return self._giving_back or self._waiting[0][0] <= self._now()

    def _seconds_to_next(self) -> float | None:
        if not self._waiting:
            return None
        return min(LOOK_SECONDS, max(0.0, (self._waiting[0][0] - self._now()).total_seconds()))


log = get_logger(__name__)

Answer = TypeVar("Answer")

BACKOFF_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


class StoreRetry:
    """Threads share it."""

    def __init__(self) -> None:
        self._ending = threading.Event()

    def stop(self) -> None:
        """From now on a question that MongoDB does not answer at once is given up."""
        self._ending.set()

    def until_answered(self, ask: Callable[[], Answer]) -> Answer:
        """What `ask` returns, as soon as it raises no STORE_FAULT. Raises Stopping after `stop`."""
        for pause in itertools.chain(BACKOFF_SECONDS, itertools.repeat(BACKOFF_SECONDS[-1])):
            try:
                return ask()
            except STORE_FAULTS as error:
                log.warning(
                    "deliver.delayed",
                    message="MongoDB does not give what claimed events need; the worker asks again",
                    retry_in_seconds=pause,
                    error=str(error)[:300],
                )
            if self._ending.wait(pause):
                raise WorkerStopping
        raise AssertionError("unreachable")


class BatchReader:
    """Threads share it."""

    def __init__(self, store: Store, retrying: StoreRetry) -> None:
        self._store = store
        self._retrying = retrying

    def schedules(self, events: Sequence[Event]) -> Schedules:
        """The schedules of the events; a claim brings messages whole. Raises Stopping."""
        ids = list({event.schedule_id for event in events if event.kind is not Kind.MESSAGE})
        if not ids:
            return {}
        return self._retrying.until_answered(lambda: self._store.schedules.for_delivery(ids))

    def destinations(self, events: Sequence[Event], schedules: Schedules) -> Destinations:
        """The destinations that the schedules and messages name; most name none. Raises Stopping."""
        found = [each.action for each in schedules.values() if isinstance(each, Schedule)]
        found += [event.message.action for event in events if isinstance(event.message, Message)]
        ids = list({own_id for action in found if (own_id := action.destination)})
        if not ids:
            return {}
        return self._retrying.until_answered(lambda: self._store.destinations.for_delivery(ids))
