"""Between claim and request: when a batch is due, its schedules are read and its requests handed over."""

import heapq
import itertools
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from scheduler_app.delivery.attempt import Attempt, set_aside
from scheduler_app.delivery.courier import Courier
from scheduler_app.delivery.essential import EssentialThread
from scheduler_app.delivery.job import Job
from scheduler_app.delivery.lease import Lease, Leases, timeout_class
from scheduler_app.delivery.recorder import GivenBack, Outcome, Recorder, Voided
from scheduler_app.domain.event import SUSPECT_AFTER, Event, Kind
from scheduler_app.domain.origin import origin_of
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.unreadable import Unreadable
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

#: Batches whose schedules are read together: dozens are due at one instant.
BATCHES_AT_ONCE = 4
#: The clock may be corrected while a batch waits for its time.
LOOK_SECONDS = 1.0
BACKOFF_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


class ClaimedBatch(NamedTuple):
    """The events that one claim won, soonest first, and its lease."""

    events: Sequence[Event]
    lease: Lease


class Handover(EssentialThread):
    """One thread a process. Batches wait here for their time, and hold no slot of the pool meanwhile.

    Schedules are read after the claim, never before: an edit that came in between is seen here, and one that
    comes later sees the claim. And not before their time: an edit that was answered by then is obeyed.
    """

    def __init__(
        self,
        store: Store,
        courier: Courier,
        recorder: Recorder,
        leases: Leases,
        *,
        now: Callable[[], datetime],
        worker: str,
    ) -> None:
        super().__init__("handover")
        self._store = store
        self._courier = courier
        self._recorder = recorder
        self._leases = leases
        self._now = now
        self._worker = worker
        self._waiting: list[tuple[datetime, int, ClaimedBatch]] = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._giving_back = False
        self._ended = False

    def put(self, batch: ClaimedBatch) -> None:
        """Takes over a batch; its events reach the courier at their time, or the recorder."""
        with self._changed:
            heapq.heappush(self._waiting, (batch.events[0].due_at, next(self._order), batch))
            self._changed.notify()

    def give_back(self) -> None:
        """From now on every batch is given back: the worker ends."""
        with self._changed:
            self._giving_back = True
            self._changed.notify()

    def stop(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify()

    def work(self) -> None:
        while (batches := self._due()) is not None:
            if self._giving_back:
                self._recorder.put(
                    [GivenBack(event.id, batch.lease) for batch in batches for event in batch.events]
                )
            else:
                self._hand_over(batches)

    def _due(self) -> list[ClaimedBatch] | None:
        """Waits for batches whose time has come; None when the thread is to end."""
        with self._changed:
            while not self._ended:
                due: list[ClaimedBatch] = []
                while self._waiting and len(due) < BATCHES_AT_ONCE and self._is_due():
                    due.append(heapq.heappop(self._waiting)[2])
                if due:
                    return due
                self._changed.wait(self._seconds_to_next())
        return None

    def _is_due(self) -> bool:
        return self._giving_back or self._waiting[0][0] <= self._now()

    def _seconds_to_next(self) -> float | None:
        if not self._waiting:
            return None
        return min(LOOK_SECONDS, max(0.0, (self._waiting[0][0] - self._now()).total_seconds()))

    def _hand_over(self, batches: Sequence[ClaimedBatch]) -> None:
        wanted = list({event.schedule_id for batch in batches for event in batch.events})
        schedules = self._read(wanted)
        if schedules is None:
            self._recorder.put(
                [GivenBack(event.id, batch.lease) for batch in batches for event in batch.events]
            )
            return
        for batch in batches:
            jobs = self._jobs(batch, schedules)
            if jobs:
                self._courier.send(jobs)

    def _read(self, ids: Sequence[str]) -> dict[str, Schedule | Unreadable] | None:
        """The schedules; None when the worker ends before MongoDB gave them."""
        for pause in itertools.chain(BACKOFF_SECONDS, itertools.repeat(BACKOFF_SECONDS[-1])):
            try:
                return self._store.schedules.for_delivery(ids)
            except STORE_FAULTS as error:
                log.warning(
                    "deliver.delayed",
                    message="The schedules of claimed events cannot be read; they are asked for again",
                    retry_in_seconds=pause,
                    error=str(error)[:300],
                )
            with self._changed:
                self._changed.wait_for(lambda: self._giving_back or self._ended, pause)
                if self._giving_back or self._ended:
                    return None
        raise AssertionError("unreachable")

    def _jobs(self, batch: ClaimedBatch, schedules: dict[str, Schedule | Unreadable]) -> list[Job]:
        """What is to be sent of a batch; what was withdrawn and what cannot be read goes to the recorder."""
        by_class: dict[float, list[Attempt]] = {}
        for event in batch.events:
            schedule = schedules.get(event.schedule_id)
            if isinstance(schedule, Unreadable):
                reason = f"its schedule cannot be read: {schedule.reason}"
                record = set_aside(event, batch.lease.token, self._worker, reason, self._now())
                self._recorder.put([Outcome(record, batch.lease)])
            elif schedule is None or _withdrawn(event, schedule):
                self._recorder.put([Voided(event.id, batch.lease)])
            else:
                attempt = Attempt(event, schedule, batch.lease.token, self._worker)
                by_class.setdefault(timeout_class(schedule.timeout_seconds), []).append(attempt)
        return [
            Job(attempt, lease, origin_of(attempt.schedule.action.url), isolated)
            for seconds, attempts in by_class.items()
            for lease in [self._lease(batch.lease, seconds, attempts)]
            for attempt, isolated in self._isolated(attempts, lease)
        ]

    def _lease(self, lease: Lease, seconds: float, attempts: Iterable[Attempt]) -> Lease:
        """The lease of events of one timeout class: the claim knew no timeouts."""
        if seconds <= lease.timeout_seconds:
            return lease
        longer = lease.split((attempt.event.id for attempt in attempts), seconds)
        self._leases.add(longer)
        try:
            self._leases.renew(longer)
        except STORE_FAULTS as error:
            # Nothing starts under it until it has been renewed, which the leases' thread tries again.
            log.warning(
                "lease.not_renewed", message="A longer lease was not granted yet", error=str(error)[:300]
            )
        return longer

    def _isolated(self, attempts: Sequence[Attempt], lease: Lease) -> list[tuple[Attempt, bool]]:
        """Marks those whose workers were lost before, so that the next loss tells whether it was their own.

        The mark is written before the request: a worker that dies of the event leaves it.
        """
        marked: list[tuple[Attempt, bool]] = []
        for attempt in attempts:
            if attempt.event.lost_leases < SUSPECT_AFTER:
                marked.append((attempt, False))
                continue
            try:
                held = self._store.claims.isolate(attempt.event.id, lease.token)
            except STORE_FAULTS as error:
                log.warning(
                    "deliver.not_isolated",
                    message="An event that lost several workers could not be marked; it is given back",
                    event_id=attempt.event.id,
                    error=str(error)[:300],
                )
                held = False
            if held:
                marked.append((attempt, True))
            else:
                self._recorder.put([GivenBack(attempt.event.id, lease)])
        return marked


def _withdrawn(event: Event, schedule: Schedule) -> bool:
    if event.kind is Kind.MANUAL:
        return schedule.state is ScheduleState.DELETED
    if event.lost_leases and schedule.state is not ScheduleState.DELETED:
        # It may have been sent, and the revision that followed an edit leaves this instant to it.
        return schedule.state is ScheduleState.PAUSED and event.run_time > schedule.revised_at
    return schedule.voids(event.revision, event.run_time)
