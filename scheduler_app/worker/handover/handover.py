"""Takes claimed batches from the claim to the courier when they are due."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from scheduler_app.domain.event import Event
from scheduler_app.store import Store
from scheduler_app.worker.capacity import Stopping
from scheduler_app.worker.courier import Courier
from scheduler_app.worker.fatal_thread import EssentialThread
from scheduler_app.worker.flow_control import FlowControl
from scheduler_app.worker.followers import Followers
from scheduler_app.worker.handover.attempts import AttemptMaker
from scheduler_app.worker.handover.batch import ClaimedBatch
from scheduler_app.worker.handover.completion_tokens import CompletionTokens
from scheduler_app.worker.handover.expiry import ExpiryStep
from scheduler_app.worker.handover.isolation import Isolation
from scheduler_app.worker.handover.overlap_check import OverlapCheck
from scheduler_app.worker.handover.reading import Reading
from scheduler_app.worker.handover.retrying import Retrying
from scheduler_app.worker.handover.routing import Routing
from scheduler_app.worker.handover.timeout_leases import TimeoutLeases
from scheduler_app.worker.handover.waiting import WaitingBatches
from scheduler_app.worker.job import Job
from scheduler_app.worker.late_events import LateEvents
from scheduler_app.worker.lease import Lease, Leases
from scheduler_app.worker.overlap import Overlap
from scheduler_app.worker.recorder import GivenBack, Recorder

#: How many batches are read at the same time. Dozens are due at one instant; all at once they would slow each
#: other down.
READS_AT_ONCE = 4


class Handover:
    """Batches wait here for their time, and hold no slot of the pool meanwhile. A few threads take them on.

    Schedules are read after the claim, never before: an edit that came in between is seen here, and one that
    comes later sees the claim. And not before their time: an edit that was answered by then is obeyed.
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
        self._recorder = recorder
        self._now = now
        self._waiting = WaitingBatches(now=now)
        self._retrying = retrying = Retrying()
        self._reading = Reading(store, retrying)
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
            self.put(ClaimedBatch(events, lease))

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
        """Waits for a batch whose time has come, and hands it over; False when the worker ends."""
        batch = self._waiting.next()
        if batch is None:
            return False
        if self._waiting.giving_back:
            self._give_back(batch)
        else:
            self._hand_over(batch)
        return True

    def _hand_over(self, batch: ClaimedBatch) -> None:
        judged_at = self._now()
        try:
            schedules = self._reading.schedules(batch.events)
            # First, because a late event is not sent: it waits for no other, and holds no place in a line.
            batch = self._expiry.without_late(batch, schedules, judged_at)
            destinations = self._reading.destinations(batch.events, schedules)
            held = self._overlap.held_back(batch, schedules)
        except Stopping:
            self._give_back(batch)
            return
        attempts = self._attempts.attempts(batch, schedules, destinations, held, judged_at)
        jobs = [
            job
            for lease, of_class in self._timeout_leases.by_class(attempts, batch.lease)
            for job in self._isolation.jobs(self._completion_tokens.added_to(of_class, lease), lease)
        ]
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
