"""Starts each attempt at its own instant, and collects the verdicts: one thread for a whole worker."""

import heapq
import itertools
import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cache

from prometheus_client import Counter

from scheduler_app.actions.kind import Executors, Verdict
from scheduler_app.clock import monotonic
from scheduler_app.domain.states import State
from scheduler_app.domain.tenant import DeliverySlots
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.worker.attempt import Job, postponed, postponed_for_another, set_aside
from scheduler_app.worker.capacity import Capacity, RecordingBacklog
from scheduler_app.worker.essential_thread import EssentialThread
from scheduler_app.worker.origins import Load, OriginQueues, Postponed
from scheduler_app.worker.recorder import AttemptResult, Delayed, GivenBack, Recorder
from scheduler_app.worker.rejudging import Present
from scheduler_app.worker.withholding import Withholding

log = get_logger(__name__)

IDLE_SECONDS = 60.0
#: While something waits for what wakes nobody, it is looked at this often: for the pace of a burst, or for
#: outcomes and a fresh look at the kill switches. What waits for a request that ends is woken by that.
UNBLOCK_SECONDS = 0.01
REVIEW_SECONDS = 0.5
SHOWN_ORIGINS = 20
#: After starting this many requests the courier looks for answers and for what has fallen due, and goes on:
#: while one origin has hundreds to start, what comes for another waits for as long as a few take.
STARTS_AT_ONCE = 12


@cache
def _ended_counter(state: State) -> Counter:
    return metrics.attempts.labels(state.value)


class Courier(EssentialThread):
    """Starts each attempt when it is due, while its lease has room; hands outcomes to the recorder.

    One thread serves all batches of a process, so that executors keep their connections across batches. A
    receiver that hangs occupies its own attempts and its origin's share, and nothing else. The thread waits
    for verdicts only: whatever MongoDB has to be told goes through the recorder.
    """

    def __init__(
        self,
        executors: Executors,
        recorder: Recorder,
        backlog: RecordingBacklog,
        capacity: Capacity,
        *,
        now: Callable[[], datetime],
        withholding: Withholding,
    ) -> None:
        super().__init__("courier")
        self._withholding = withholding
        self._executors = executors
        self._recorder = recorder
        self._backlog = backlog
        self._capacity = capacity
        self._now = now
        self._handed: queue.SimpleQueue[Sequence[Job]] = queue.SimpleQueue()
        self._future: list[tuple[datetime, int, Job]] = []
        self._order = itertools.count()
        self._queues = OriginQueues(concurrency=executors.concurrency, max_events=capacity.limit)
        self._unleased: list[Job] = []
        self._flying: dict[str, tuple[Job, datetime]] = {}
        self._judged: defaultdict[State, int] = defaultdict(int)
        """Verdicts since the last ones were counted for Prometheus: a count for each would cost more."""
        self._isolated: str | None = None
        self._reviewed_at = 0.0
        self._loads: tuple[Load, ...] = ()
        self._tell_finished: Callable[[Verdict], None] = _ignore
        self._tell_dropped: Callable[[Sequence[str]], None] = _ignore
        self._judge_again: Callable[[Sequence[Job]], None] = _ignore
        self._wait_for_slot: Callable[[Sequence[tuple[DeliverySlots, Job]]], None] = _ignore
        self._present: queue.SimpleQueue[Present] = queue.SimpleQueue()
        self._waiting: tuple[Job, ...] = ()
        self._giving_back = threading.Event()
        self._interrupted = False
        self._ended = False

    def report_to(
        self,
        finished: Callable[[Verdict], None],
        dropped: Callable[[Sequence[str]], None],
        judge_again: Callable[[Sequence[Job]], None],
    ) -> None:
        """Sets what is called with each verdict, with events that are no longer this worker's, and with jobs
        that have to be judged again. Call it before `start`."""
        self._tell_finished, self._tell_dropped, self._judge_again = finished, dropped, judge_again

    def take_slots_by(self, wait: Callable[[Sequence[tuple[DeliverySlots, Job]]], None]) -> None:
        """Sets what is called with jobs that need a slot of their tenant, and that come back with it. Call it
        before `start`."""
        self._wait_for_slot = wait

    def waiting(self) -> Sequence[Job]:
        """The jobs that have been waiting for a second or longer, as they were at the last review."""
        return self._waiting

    def compare(self, present: Present) -> None:
        """Lets go of the jobs that differ from it, before it starts the next one. Any thread may call it."""
        self._present.put(present)
        self._executors.wake()

    def lost(self, count: int) -> None:
        """Frees the room of events that were lost before they came here. Any thread may call it."""
        self._capacity.release(count)

    def send(self, jobs: Sequence[Job]) -> None:
        """Takes over attempts. What becomes of each reaches the recorder."""
        self._handed.put(jobs)
        self._executors.wake()

    def stop_starting(self) -> None:
        """From now on gives back what has not started. Attempts in flight continue."""
        self._giving_back.set()
        self._executors.wake()

    def interrupt(self) -> None:
        """Interrupts attempts in flight and gives back their events. Receivers may have got them."""
        self._interrupted = True
        self._executors.wake()

    def stop(self) -> None:
        """Ends the thread."""
        self._ended = True
        self._executors.wake()

    @property
    def in_flight(self) -> int:
        return len(self._flying)

    def event_ids(self) -> tuple[str, ...]:
        """Returns the events whose attempts are in flight."""
        return tuple(self._flying)

    def loads(self) -> tuple[Load, ...]:
        """The busiest origins, as they were at the last review."""
        return self._loads

    def work(self) -> None:
        try:
            while not self._ended:
                self._take_over()
                self._obey_present()
                self._start_due()
                if self._interrupted:
                    self._let_go()
                self._review(monotonic())
                verdicts = self._executors.wait(self._pause())
                if verdicts:
                    # One call for all of them: each `put` wakes the recorder's thread.
                    at = monotonic()
                    finished = [outcome for verdict in verdicts if (outcome := self._finish(verdict, at))]
                    for state, count in self._judged.items():
                        _ended_counter(state).inc(count)
                    self._judged.clear()
                    self._recorder.put(finished)
        finally:
            self._executors.close()

    def _take_over(self) -> None:
        while not self._handed.empty():
            for job in self._handed.get():
                heapq.heappush(self._future, (job.attempt.event.due_at, next(self._order), job))

    def _obey_present(self) -> None:
        while not self._present.empty():
            present = self._present.get()
            again = self._queues.take_out(present.differs)
            cancelled = self._queues.take_out(present.cancels)
            self._unleased, more, withdrawn = present.parted(self._unleased)
            future, early, gone = present.parted([job for _, _, job in self._future])
            self._future = [(job.attempt.event.due_at, next(self._order), job) for job in future]
            heapq.heapify(self._future)
            if again or more or early:
                self._forget([*again, *more, *early])
            if cancelled or withdrawn or gone:
                self._recorder.put([present.voided(job) for job in (*cancelled, *withdrawn, *gone)])

    def _forget(self, jobs: Sequence[Job]) -> None:
        """Lets jobs go that have to be judged again; they come back like any other."""
        self._tell_dropped([job.attempt.event.id for job in jobs])
        self._judge_again(jobs)

    def _start_due(self) -> None:
        self._more_can_start = False
        if self._giving_back.is_set():
            self._give_back_all()
        now, held = self._now(), self._capacity.held
        delayed: list[Delayed] = []
        while self._future and self._future[0][0] <= now:
            job = heapq.heappop(self._future)[2]
            if job.isolated:
                self._start_isolated(job)
            elif (busy := self._queues.add(job, monotonic(), held)) is not None:
                delayed.append(self._delayed(busy, now))
        if delayed:
            self._recorder.put(delayed)
        self._held_up = self._is_behind()  # nothing may start just now, whatever has room
        if self._held_up:
            return
        self._queues.unblock()
        for _ in range(STARTS_AT_ONCE):
            at = monotonic()
            next_job = self._queues.next(at)
            if next_job is None:
                self._more_can_start = self._queues.has_room_again
                return
            self._start(next_job, at)
        self._more_can_start = True

    def _is_behind(self) -> bool:
        return self._backlog.is_behind(monotonic()) or not self._withholding.may_start()

    def _pause(self) -> float:
        if self._more_can_start:
            return 0.0
        if self._queues.waiting and (self._held_up or self._queues.is_pacing):
            return UNBLOCK_SECONDS
        pause = REVIEW_SECONDS if self._flying or self._unleased else IDLE_SECONDS
        if self._future:
            pause = min(pause, max(0.0, (self._future[0][0] - self._now()).total_seconds()))
        return pause

    def _start(self, job: Job, at: float) -> None:
        """Starts the attempt; `at` is the monotonic time now."""
        event, lease = job.attempt.event, job.lease
        if lease.is_lost(event.id):
            self._lose(event.id)
            return
        if event.id in self._flying:
            # A claim that was lost and won again by this same process: one request at a time.
            self._recorder.put([self._until_later(job, "its last request is still in flight in this worker")])
            return
        if not lease.has_room_for(job.attempt.deliverable.timeout_seconds, at):
            self._unleased.append(job)
            return
        started_at = self._now()
        if job.attempt.may_be_late(started_at):
            self._forget([job])
            return
        if (withheld := self._withholding.withheld(job, started_at)) is not None:
            self._recorder.put([withheld])
            return
        if (slots := self._withholding.slots_of(job)) is not None:
            self._wait_for_slot([(slots, job)])
            return
        try:
            deliverable = job.attempt.deliverable
            self._executors.of(deliverable.action.kind).start(event, deliverable, started_at)
        except (
            Exception
        ) as error:  # a defect that one event triggers: the event is set aside, the others continue
            self._recorder.put([self._set_aside(job, error)])
            return
        lease.start(event.id)
        self._flying[event.id] = job, started_at
        self._queues.started(job, at)
        metrics.lag.observe(max(0.0, job.attempt.lag(started_at)))

    def _start_isolated(self, job: Job) -> None:
        """Starts the request of a suspect now, or postpones it: the mark on the event must mean that this
        request is being made."""
        event, lease, at = job.attempt.event, job.lease, monotonic()
        if (
            self._isolated is None
            and not self._is_behind()
            and lease.has_room_for(job.attempt.deliverable.timeout_seconds, at)
            and self._queues.can_start(job, at)
        ):
            self._start(job, at)
            self._isolated = event.id if event.id in self._flying else None
        else:
            reason = f"it lost {event.lost_leases} workers, and another such event is being tried by this one"
            self._recorder.put([self._until_later(job, reason)])

    def _lose(self, event_id: str) -> None:
        """Another worker has it."""
        self._capacity.release()
        self._tell_dropped((event_id,))

    def _finish(self, verdict: Verdict, at: float) -> AttemptResult | None:
        landed = self._flying.pop(verdict.event_id, None)
        if landed is None:
            return None  # it was let go
        job, started_at = landed
        self._queues.ended(job, at)
        self._tell_finished(verdict)
        if verdict.event_id == self._isolated:
            self._isolated = None
        try:
            record = job.attempt.record(verdict, started_at, job.origin)
        except Exception as error:  # a defect that one outcome triggers
            return self._set_aside(job, error)
        self._judged[record.state] += 1
        metrics.callback_duration.observe(verdict.duration_ms / 1000)
        return AttemptResult(record, job.lease, job.attempt.is_awaited)

    # -- now and then ------------------------------------------------------------------------------------

    def _review(self, now: float) -> None:
        if now - self._reviewed_at < REVIEW_SECONDS:
            return
        self._reviewed_at = now
        at = self._now()
        delayed = [self._delayed(busy, at) for busy in self._queues.review(now, self._capacity.held)]
        if delayed:
            self._recorder.put(delayed)
        unleased, self._unleased = self._unleased, []
        for job in unleased:
            self._try_again(job, now)
        self._loads = tuple(self._queues.loads(now, most=SHOWN_ORIGINS))
        self._waiting = (*self._queues.waiting_long(now), *self._unleased)

    def _try_again(self, job: Job, now: float) -> None:
        """Tries a job again whose lease had no room: `Leases` may have renewed it since."""
        event = job.attempt.event
        if job.lease.is_lost(event.id):
            self._lose(event.id)
        elif not job.lease.has_room_for(job.attempt.deliverable.timeout_seconds, now):
            self._unleased.append(job)
        else:
            heapq.heappush(self._future, (event.due_at, next(self._order), job))

    def _delayed(self, busy: Postponed, now: datetime) -> Delayed:
        reason = (
            f"{busy.full} has {busy.in_flight} requests in flight and {busy.waiting} waiting in this worker"
        )
        job = busy.job
        return postponed(job.attempt.event, job.lease, now + timedelta(seconds=busy.seconds), reason)

    def _until_later(self, job: Job, reason: str) -> Delayed:
        return postponed_for_another(job.attempt.event, job.lease, reason, self._now())

    def _give_back_all(self) -> None:
        jobs = [job for _, _, job in self._future] + list(self._queues.drain()) + self._unleased
        self._future.clear()
        self._unleased.clear()
        if jobs:
            self._recorder.put([GivenBack(job.attempt.event.id, job.lease) for job in jobs])

    def _let_go(self) -> None:
        self._executors.interrupt()
        jobs = [job for job, _ in self._flying.values()]
        for job in jobs:
            self._queues.ended(job, monotonic())
        self._flying.clear()
        if jobs:
            self._recorder.put([GivenBack(job.attempt.event.id, job.lease) for job in jobs])

    def _set_aside(self, job: Job, error: Exception) -> AttemptResult:
        attempt = job.attempt
        log.exception(
            "deliver.broken", message="An event breaks our code; it is set aside", event_id=attempt.event.id
        )
        reason = f"{type(error).__name__}: {error}"
        return set_aside(attempt.event, job.lease, attempt.worker, reason, self._now(), attempt.deliverable)


def _ignore(_: object) -> None:
    """The default of `report_to`, which ignores the call."""
