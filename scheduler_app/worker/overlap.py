"""Applies a schedule's policy of overlapping runs to claimed events, before their requests are made, and
wakes the events that wait for earlier ones as soon as those end.

A worker judges an event after it has claimed it, and by what MongoDB says of earlier events of the
schedule then. The earliest unfinished event is never held back, so that the others wait for something that
ends: for an attempt, for the last retry, or for recovery, which ends the claims of dead workers. A worker
that dies between the claim and the verdict leaves an event without an attempt; its next worker judges it
again.
"""

import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime

from scheduler_app.clock import monotonic
from scheduler_app.domain.event import Event
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.instants import shown_instant, whole_milliseconds
from scheduler_app.domain.schedule import OverlapScope, Schedule, next_look
from scheduler_app.domain.states import Kind, State
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.events.claims import Postponement
from scheduler_app.store.events.overlaps import UnfinishedEvent, UnsentOutcome, superseded_message
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.telemetry.logs import UnexpectedErrors
from scheduler_app.worker.attempt import set_aside
from scheduler_app.worker.batch import ClaimedBatch, Schedules, StoreRetry, is_withdrawn
from scheduler_app.worker.capacity import WorkerStopping
from scheduler_app.worker.lease import Lease
from scheduler_app.worker.recorder import AttemptResult, Delayed, EndedUnsent

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


HeldBack = dict[str, Delayed | EndedUnsent | AttemptResult]


class Overlap:
    """Judges events of schedules whose `run_overlap` is not `allow`. Threads share it."""

    def __init__(self, store: Store, *, now: Callable[[], datetime], worker: str) -> None:
        """`now` is the clock, in UTC; `worker` is the name that people are shown."""
        self._overlaps = store.overlaps
        self._now = now
        self._worker = worker

    def held_back(self, pairs: Sequence[tuple[Event, Schedule]], lease: Lease) -> HeldBack:
        """The claimed events whose requests are not made now, by their ids, and what becomes of
        them instead. Raises a STORE_FAULT."""
        by_schedule: defaultdict[str, list[Event]] = defaultdict(list)
        schedules = {}
        for event, schedule in pairs:
            if event.kind is Kind.BACKFILL:
                continue
            by_schedule[schedule.id].append(event)
            schedules[schedule.id] = schedule
        held: HeldBack = {}
        for schedule_id, events in by_schedule.items():
            held |= self._held_of(schedules[schedule_id], events, lease)
        return held

    def _held_of(self, schedule: Schedule, events: Sequence[Event], lease: Lease) -> HeldBack:
        """Judges the events of one schedule. A schedule that breaks our code stops no other one: its events
        are set aside, because without a judgement their runs might overlap."""
        if schedule.run_overlap != "cancel_earlier":
            # A retry belongs to a run that has begun, which nothing holds back.
            events = [event for event in events if event.attempt == event.attempts_before]
            if not events:
                return {}
        try:
            if schedule.run_overlap == "cancel_earlier":
                return self._cancelled(events, lease)
            return self._after_earlier(schedule, events, lease)
        except STORE_FAULTS:
            raise
        except Exception as error:
            log.exception(
                "overlap.unjudged",
                message="The overlap of a schedule's runs cannot be judged; its claimed events are set aside",
                schedule_id=schedule.id,
            )
            reason = f"run_overlap cannot be judged: {type(error).__name__}: {error}"
            return {event.id: self._set_aside(event, schedule, reason, lease) for event in events}

    def _set_aside(self, event: Event, schedule: Schedule, reason: str, lease: Lease) -> AttemptResult:
        return set_aside(event, lease, self._worker, reason, self._now(), schedule)

    def _cancelled(self, events: Sequence[Event], lease: Lease) -> HeldBack:
        # First cancel what is older than the newest event of the batch, then ask which events newer ones have
        # cancelled: of several in one batch the newest runs, as if they had come one by one.
        self._overlaps.supersede(max(events, key=_order), self._now())
        found = self._overlaps.superseded([event.id for event in events])
        metrics.overlaps.labels("cancelled").inc(len(found))
        return {
            event_id: EndedUnsent(
                UnsentOutcome(event_id, lease.token, State.CANCELLED, superseded_message(newer)), lease
            )
            for event_id, newer in found.items()
        }

    def _after_earlier(self, schedule: Schedule, events: Sequence[Event], lease: Lease) -> HeldBack:
        queues = schedule.run_overlap == "queue"
        unfinished = self._overlaps.unfinished(
            schedule.id,
            max(event.run_time for event in events),
            scope=schedule.overlap_scope,
            # Enough to know which waiting event has the last place in the queue.
            limit=schedule.queue_limit + 1 if queues else 1,
        )
        places = {each.id: place for place, each in enumerate(unfinished)}
        held: HeldBack = {}
        for event in events:
            place = places.get(event.id, len(unfinished))
            if not unfinished or place == 0 or _order(event) < _order(unfinished[0]):
                continue
            if not queues:
                held[event.id] = self._skipped(event, lease, unfinished[0], "skip")
            elif event.id in places or event.postponed_from is not None:
                held[event.id] = self._queued(event, lease, unfinished[max(place, 1) - 1], place)
            else:
                policy = f"queue with room for {schedule.queue_limit}"
                held[event.id] = self._skipped(event, lease, unfinished[0], policy)
        return held

    @staticmethod
    def _skipped(event: Event, lease: Lease, earlier: UnfinishedEvent, policy: str) -> EndedUnsent:
        metrics.overlaps.labels("skipped").inc()
        message = (
            f"Skipped: run_overlap is {policy}, and the earlier event {name_of(earlier.id)} is"
            f" {earlier.state.value}"
        )
        return EndedUnsent(UnsentOutcome(event.id, lease.token, State.SKIPPED, message), lease)

    def _queued(self, event: Event, lease: Lease, earlier: UnfinishedEvent, place: int) -> Delayed:
        metrics.overlaps.labels("queued").inc()
        now, since = self._now(), event.postponed_from or event.due_at
        due_at = whole_milliseconds(now + next_look(now - since, place))
        message = (
            f"Waits in place {place} for the earlier event {name_of(earlier.id)}, until"
            f" {shown_instant(due_at)} at the latest: run_overlap is queue"
        )
        return Delayed(
            Postponement(event.id, lease.token, due_at, since, message, waits_for=earlier.id), lease
        )


def _order(each: Event | UnfinishedEvent) -> tuple[datetime, str]:
    return each.run_time, each.id


class OverlapCheck:
    """Threads share it."""

    def __init__(self, overlap: Overlap, followers: Followers, retrying: StoreRetry) -> None:
        self._overlap = overlap
        self._followers = followers
        self._retrying = retrying

    def held_back(self, batch: ClaimedBatch, schedules: Schedules) -> HeldBack:
        """The events whose requests are not made now, by their ids; most schedules allow runs to overlap.
        Raises Stopping."""
        asking = {
            each.id: each
            for each in schedules.values()
            if isinstance(each, Schedule) and each.run_overlap != "allow"
        }
        if not asking:
            return {}
        pairs = [
            (event, schedule)
            for event in batch.events
            if (schedule := asking.get(event.schedule_id)) and not is_withdrawn(event, schedule)
        ]
        self._followers.note(pairs)
        return self._retrying.until_answered(lambda: self._overlap.held_back(pairs, batch.lease))
