"""Wakes the events that wait for earlier ones of their schedules, as soon as those end."""

import queue
import threading
from collections.abc import Callable, Collection, Iterable
from datetime import datetime

from scheduler_app.clock import monotonic
from scheduler_app.domain.event import Event
from scheduler_app.domain.schedule import OverlapScope, Schedule
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.telemetry.logs import UnexpectedErrors
from scheduler_app.worker.capacity import WorkerStopping

log = get_logger(__name__)

#: Schedules whose next event is looked up. Beyond that bound, a waiting event finds out by itself: it looks
#: now and then.
MAX_WAITING = 10_000
#: Claimed events that are remembered. An event that loses its lease before its request may never be settled.
MAX_HELD = 100_000
STOP = ""


class Followers(threading.Thread):
    """A thread of each worker process; it does nothing where no schedule queues its events.

    It is told of each event of such a schedule that this worker is done with, also of one that began to wait:
    the one that it waits for may have ended before that was written.
    """

    def __init__(self, store: Store, *, now: Callable[[], datetime]) -> None:
        super().__init__(name="followers", daemon=True)
        self._overlaps = store.overlaps
        self._now = now
        self._deliver: Callable[[list[str]], int] | None = None
        self._held: dict[str, tuple[str, OverlapScope]] = {}
        self._ended: queue.Queue[tuple[str, OverlapScope]] = queue.Queue(MAX_WAITING)
        self._lock = threading.Lock()
        self._unexpected = UnexpectedErrors(
            metrics.worker_failures,
            "followers.failed",
            "A waiting event could not be woken",
            monotonic=monotonic,
        )

    def deliver_by(self, deliver: Callable[[list[str]], int]) -> None:
        """Sets what claims the events that were woken. Call it before `start`."""
        self._deliver = deliver

    def note(self, pairs: Iterable[tuple[Event, Schedule]]) -> None:
        """Takes events that this worker has claimed."""
        with self._lock:
            for event, schedule in pairs:
                if schedule.run_overlap == "queue":
                    self._held[event.id] = schedule.id, schedule.overlap_scope
            while len(self._held) > MAX_HELD:
                del self._held[next(iter(self._held))]

    def settled(self, event_ids: Collection[str]) -> None:
        """Takes events that this worker has nothing to do with any more."""
        if not self._held:
            return
        with self._lock:
            found = {self._held.pop(each) for each in event_ids if each in self._held}
        for each in found:
            self._put(each)

    def _put(self, schedule: tuple[str, OverlapScope]) -> None:
        try:
            self._ended.put_nowait(schedule)
        except queue.Full:
            log.warning(
                "followers.full",
                message="More schedules wait than can be looked up; their next events look by themselves",
            )

    def run(self) -> None:
        while True:
            schedule_id, scope = self._ended.get()
            if schedule_id == STOP:
                return
            try:
                woken = self._overlaps.wake_next(schedule_id, self._now(), scope=scope)
                if woken is not None and self._deliver is not None:
                    # Without a message: a beat sends one as well, should this worker not claim it.
                    self._deliver([woken.id])
            except STORE_FAULTS as error:
                # The event looks by itself after some seconds.
                log.warning(
                    "followers.delayed",
                    message="The next event of a schedule could not be woken; it will check by itself",
                    schedule_id=schedule_id,
                    error=str(error)[:300],
                )
            except WorkerStopping:
                return
            except Exception as error:  # one schedule's fault must not keep the others' events waiting
                # Its event looks by itself, as after a fault of the store.
                self._unexpected.note("followers", error, schedule_id=schedule_id)

    def stop(self) -> None:
        """Ends the thread after the schedules that were put before; a full queue has no room for that, and
        the thread ends with the process."""
        try:
            self._ended.put_nowait((STOP, "event"))
        except queue.Full:
            log.debug("followers.abandoned", message="The process ends with events to be woken")
