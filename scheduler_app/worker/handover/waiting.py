"""A queue in which claimed batches wait until they are due."""

import heapq
import itertools
import threading
from collections.abc import Callable, Collection
from datetime import datetime

from scheduler_app.domain.event import Event
from scheduler_app.worker.handover.batch import ClaimedBatch
from scheduler_app.worker.lease import Lease

#: The clock may be corrected while a batch waits: a thread looks at it at least this often.
LOOK_SECONDS = 1.0


class WaitingBatches:
    """A queue of batches by the time of their first event. Threads share it."""

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        """`now` is the clock, in UTC."""
        self._now = now
        self._waiting: list[tuple[datetime, int, ClaimedBatch]] = []
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
        with self._changed:
            heapq.heappush(self._waiting, (batch.events[0].due_at, next(self._order), batch))
            self._changed.notify()

    def take_out(self, event_ids: Collection[str]) -> list[tuple[Event, Lease]]:
        """Takes those of the events out that wait here."""
        with self._changed:
            found = [
                (event, batch.lease)
                for _, _, batch in self._waiting
                for event in batch.events
                if event.id in event_ids
            ]
            kept = [
                (at, order, batch._replace(events=left))
                for at, order, batch in self._waiting
                if (left := [event for event in batch.events if event.id not in event_ids])
            ]
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

    def next(self) -> ClaimedBatch | None:
        """Waits for a batch that is due and takes it out; None after `stop`."""
        with self._changed:
            while not self._ended:
                if self._waiting and self._is_due():
                    self._turn.notify()
                    return heapq.heappop(self._waiting)[2]
                if self._is_waited_for:
                    self._turn.wait()
                else:
                    self._is_waited_for = True
                    self._changed.wait(self._seconds_to_next())
                    self._is_waited_for = False
        return None

    def _wake_all(self) -> None:
        self._changed.notify_all()
        self._turn.notify_all()

    def _is_due(self) -> bool:
        return self._giving_back or self._waiting[0][0] <= self._now()

    def _seconds_to_next(self) -> float | None:
        if not self._waiting:
            return None
        return min(LOOK_SECONDS, max(0.0, (self._waiting[0][0] - self._now()).total_seconds()))
