"""The way of a message's events through a worker until their attempts are put to the courier.

`Delivery` reserves room and claims them. `Handover` runs the steps that follow, in this order: wait until
the batch is almost due, read schedules and destinations (`batch`), wait for the instant where one of them
asks to be judged then, take out what is too late and what earlier runs hold back (`policies`),
make an attempt or a result of each other event, give leases as long as the timeouts, and completion tokens,
and isolate suspects (`attempt_maker`). `Routing` gives the jobs to the courier, which starts each when it is
due, or to flow control first where their destination has limits.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

from scheduler_app.clock import monotonic
from scheduler_app.domain.action import CALLBACKS
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.event import Event
from scheduler_app.domain.ids import schedule_of
from scheduler_app.store import Store
from scheduler_app.telemetry import metrics
from scheduler_app.usecases.duties.dispatch_selection import EVENTS_OF_A_BUSY_ORIGIN
from scheduler_app.worker.attempt import Job
from scheduler_app.worker.attempt_maker import AttemptMaker, CompletionTokens, Isolation, TimeoutLeases
from scheduler_app.worker.batch import (
    BatchReader,
    ClaimedBatch,
    Destinations,
    ReadBatch,
    StoreRetry,
    WaitingBatches,
)
from scheduler_app.worker.capacity import Capacity, WorkerStopping
from scheduler_app.worker.courier import Courier
from scheduler_app.worker.essential_thread import EssentialThread
from scheduler_app.worker.flow_control import FlowControl
from scheduler_app.worker.lease import FIRST_TIMEOUT_SECONDS, Lease, Leases
from scheduler_app.worker.policies import ExpiryStep, Followers, LateEvents, Overlap, OverlapCheck
from scheduler_app.worker.recorder import GivenBack, Recorder


class Routing:
    """Threads share it."""

    def __init__(self, courier: Courier, flow_control: FlowControl) -> None:
        self._courier = courier
        self._flow_control = flow_control

    def send(self, jobs: Sequence[Job], destinations: Destinations) -> None:
        """Hands the jobs on; most have no destination."""
        free: list[Job] = []
        limited: list[tuple[Destination, Job]] = []
        for job in jobs:
            named = job.attempt.deliverable.action.destination if destinations else None
            destination = destinations.get(named) if named else None
            if isinstance(destination, Destination) and destination.is_limited:
                limited.append((destination, job))
            else:
                free.append(job)
        if free:
            self._courier.send(free)
        if limited:
            self._flow_control.put(limited)


#: How many batches are read at the same time. Dozens are due at one instant; all at once they would slow each
#: other down.
READS_AT_ONCE = 4


class Handover:
    """Batches wait here for their time, and hold no slot of the pool meanwhile. A few threads take them on.

    Schedules are read after the claim, never before: an edit that came in between is seen here, and one that
    comes later sees the claim. And not long before their time: an edit that was answered `OBEYED_AHEAD` of it
    is obeyed.
    """

    def __init__(
        self,
        store: Store,
        courier: Courier,
        flow_control: FlowControl,
        recorder: Recorder,
        leases: Leases,
        followers: Followers,
        *,
        serves: Callable[[str], bool],
        now: Callable[[], datetime],
        worker: str,
        queues: Collection[str],
    ) -> None:
        """`serves` says of a kind of action whether this worker executes it. `now` is the clock, in UTC;
        `worker` is the name that people are shown, `queues` are those that it serves."""
        self.origins = KnownOrigins()
        self._recorder = recorder
        self._now = now
        self._waiting = WaitingBatches(now=now)
        self._retrying = retrying = StoreRetry()
        self._reading = BatchReader(store, retrying)
        self._expiry = ExpiryStep(LateEvents(store), followers, recorder, retrying)
        self._overlap = OverlapCheck(Overlap(store, now=now, worker=worker), followers, retrying)
        self._attempts = AttemptMaker(recorder, serves=serves, now=now, worker=worker, queues=queues)
        self._timeout_leases = TimeoutLeases(leases)
        self._completion_tokens = CompletionTokens(store, recorder)
        self._isolation = Isolation(store, recorder)
        self._routing = Routing(courier, flow_control)
        self._threads = [_HandoverThread(self) for _ in range(READS_AT_ONCE)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self, seconds: float) -> None:
        for thread in self._threads:
            thread.join(seconds)

    def put(self, batch: ClaimedBatch) -> None:
        """Takes over a batch; its events reach the courier at their time, or the recorder."""
        self._waiting.put(batch)

    def judge_again(self, jobs: Sequence[Job]) -> None:
        """Takes back events that waited for their attempts: something has changed since they were judged."""
        by_lease: dict[Lease, list[Event]] = {}
        for job in jobs:
            by_lease.setdefault(job.lease, []).append(job.attempt.event)
        for lease, events in by_lease.items():
            self.put(ClaimedBatch(sorted(events, key=lambda event: event.due_at), lease))

    def take_out(self, event_ids: Collection[str]) -> Sequence[tuple[Event, Lease]]:
        """Takes those of the events out that still wait for their time."""
        return self._waiting.take_out(event_ids)

    def give_back(self) -> None:
        """From now on every batch is given back: the worker ends."""
        self._retrying.stop()
        self._waiting.give_back()

    def stop(self) -> None:
        self._retrying.stop()
        self._waiting.stop()

    def take_on(self) -> bool:
        """Waits for a batch whose time has come, and takes it a step on; False when the worker ends."""
        item = self._waiting.next()
        if item is None:
            return False
        if self._waiting.giving_back:
            self._give_back(item.batch if isinstance(item, ReadBatch) else item)
        elif isinstance(item, ReadBatch):
            self._hand_over(item)
        else:
            self._read(item)
        return True

    def _read(self, batch: ClaimedBatch) -> None:
        try:
            schedules = self._reading.schedules(batch.events)
            read = ReadBatch(batch, schedules, self._reading.destinations(batch.events, schedules))
        except WorkerStopping:
            self._give_back(batch)
            return
        if batch.events[0].due_at > self._now() and read.is_judged_when_due():
            self._waiting.put_read(read)
        else:
            self._hand_over(read)

    def _hand_over(self, read: ReadBatch) -> None:
        judged_at = self._now()
        batch, schedules, destinations = read
        try:
            # First, because a late event is not sent: it waits for no other, and holds no place in a line.
            batch = self._expiry.without_late(batch, schedules, judged_at)
            held = self._overlap.held_back(batch, schedules)
        except WorkerStopping:
            self._give_back(batch)
            return
        attempts = self._attempts.attempts(batch, schedules, destinations, held, judged_at)
        jobs = [
            job
            for lease, of_class in self._timeout_leases.by_class(attempts, batch.lease)
            for job in self._isolation.jobs(self._completion_tokens.added_to(of_class, lease), lease)
        ]
        self.origins.note(jobs)
        self._routing.send(jobs, destinations)

    def _give_back(self, batch: ClaimedBatch) -> None:
        self._recorder.put([GivenBack(event.id, batch.lease) for event in batch.events])


class _HandoverThread(EssentialThread):
    def __init__(self, handover: Handover) -> None:
        super().__init__("handover")
        self._handover = handover

    def work(self) -> None:
        while self._handover.take_on():
            continue


#: Claims that a worker sends to MongoDB at the same time. Dozens of batches may be due at one instant, and
#: in parallel they slow each other down.
CLAIMS_AT_ONCE = 3
#: Claims of fewer events have turns of their own: those of a bulk take several times as long, and a small one
#: behind a row of them would be late.
SMALL = EVENTS_OF_A_BUSY_ORIGIN
SMALL_CLAIMS_AT_ONCE = 2


class ClaimTurns:
    """Lets so many claims be made at once. Origins take turns among those that wait: a row of one receiver's
    retries does not keep back what is for another. Thread-safe."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: OrderedDict[str, deque[threading.Event]] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def taken(self, origin: Callable[[], str]) -> Iterator[None]:
        """Waits for a turn, and has it meanwhile. `origin` is asked only where it has to wait."""
        mine = None
        with self._lock:
            if self._free:
                self._free -= 1
            else:
                mine = threading.Event()
                self._waiting.setdefault(origin(), deque()).append(mine)
        if mine is not None:
            mine.wait()
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        with self._lock:
            if not self._waiting:
                self._free += 1
                return
            origin, theirs = self._waiting.popitem(last=False)
            theirs.popleft().set()
            if theirs:
                self._waiting[origin] = theirs


#: Schedules whose origins a worker remembers; with more it forgets all.
MOST_ORIGINS = 10_000


class KnownOrigins:
    """The origins of schedules, as a worker saw them last. Thread-safe."""

    def __init__(self) -> None:
        self._origins: dict[str, str] = {}

    def note(self, jobs: Sequence[Job]) -> None:
        if len(self._origins) >= MOST_ORIGINS:
            self._origins.clear()
        self._origins.update((job.attempt.event.schedule_id, job.origin) for job in jobs)

    def of(self, event_ids: Sequence[str]) -> str:
        """The origin that these events have in common; empty where one's is unknown or they have several."""
        found = {self._origins.get(schedule_of(event_id), "") for event_id in event_ids}
        return found.pop() if len(found) == 1 else ""


class Delivery:
    """Claims the events of messages. Thread-safe: each thread of the pool calls `deliver` with one batch."""

    def __init__(
        self,
        store: Store,
        capacity: Capacity,
        leases: Leases,
        handover: Handover,
        *,
        horizon_seconds: float,
        now: Callable[[], datetime],
        worker: str,
        queues: Collection[str] = (CALLBACKS,),
    ) -> None:
        """`queues` are those that this worker serves: it claims no events of others."""
        self._store = store
        self._capacity = capacity
        self._leases = leases
        self._handover = handover
        self._horizon = timedelta(seconds=horizon_seconds)
        self._now = now
        self._worker = worker
        self._queues = tuple(queues)
        self._turns = ClaimTurns(CLAIMS_AT_ONCE)
        self._turns_of_small = ClaimTurns(SMALL_CLAIMS_AT_ONCE)

    def deliver(self, ids: Sequence[str]) -> int:
        """Claims those of the events that no other worker has, hands them over, and returns how many.

        It waits for room in this worker, and never for a receiver: a claimed event is protected by its lease
        in MongoDB, and needs neither the message nor a thread of the pool any more. Raises a STORE_FAULT if
        the claim failed, and Stopping if the worker is ending.
        """
        self._capacity.reserve(len(ids))
        won = 0
        try:
            turns = self._turns_of_small if len(ids) < SMALL else self._turns
            with turns.taken(lambda: self._handover.origins.of(ids)):
                now, asked_at = self._now(), monotonic()
                token, events = self._store.claims.claim(
                    ids,
                    until=now + self._horizon,
                    now=now,
                    lease_seconds=Lease.length(FIRST_TIMEOUT_SECONDS),
                    worker=self._worker,
                    queues=self._queues,
                )
            won = len(events)
        finally:
            self._capacity.release(len(ids) - won)
        metrics.claims.labels("won").inc(won)
        metrics.claims.labels("lost").inc(len(ids) - won)
        if events:
            lease = Lease(
                token,
                (event.id for event in events),
                asked_at=asked_at,
                timeout_seconds=FIRST_TIMEOUT_SECONDS,
            )
            self._leases.add(lease)
            self._handover.put(ClaimedBatch(events, lease))
        return won
