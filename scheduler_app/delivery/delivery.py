"""The path of a batch through a worker: claim, read, void, send, record."""

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from scheduler_app.clock import monotonic
from scheduler_app.delivery.attempt import Attempt, set_aside
from scheduler_app.delivery.batch import ClaimedBatch
from scheduler_app.delivery.courier import Courier, Job
from scheduler_app.delivery.recorder import Outcome, Recorder
from scheduler_app.domain.event import Event, Kind
from scheduler_app.domain.schedule import DEFAULT_TIMEOUT_SECONDS, Schedule, ScheduleState
from scheduler_app.store import Store
from scheduler_app.store.unreadable import Unreadable
from scheduler_app.telemetry import get_logger, metrics

log = get_logger(__name__)

#: What a lease holds beyond the longest timeout of its batch.
LEASE_MARGIN_SECONDS = 15.0
BASE_LEASE_SECONDS = DEFAULT_TIMEOUT_SECONDS + LEASE_MARGIN_SECONDS
#: Batches whose claims, or schedules, a worker asks MongoDB for at the same time. Dozens are due at one
#: instant: all at once they take longer, for each of them gets in the others' way.
AT_ONCE = 4
WITHDRAWN = "Withdrawn: the schedule was changed or deleted"


class Delivery:
    """Delivers the events of a message. Threads share it: each calls `deliver` with a batch of its own."""

    def __init__(
        self,
        store: Store,
        courier: Courier,
        recorder: Recorder,
        *,
        horizon_seconds: float,
        now: Callable[[], datetime],
        worker: str,
    ) -> None:
        self._store = store
        self._courier = courier
        self._recorder = recorder
        self._horizon = timedelta(seconds=horizon_seconds)
        self._now = now
        self._worker = worker
        self._turn = threading.BoundedSemaphore(AT_ONCE)

    def deliver(self, ids: Sequence[str]) -> int:
        """Delivers those of the events that are ours to deliver, and returns how many were claimed.

        Raises a STORE_FAULT only before the first request has started. After that it returns when every
        outcome is written, or refused because the claim was lost.
        """
        with self._turn:
            now, claimed_at = self._now(), monotonic()
            token, events = self._store.claims.claim(
                ids,
                until=now + self._horizon,
                now=now,
                lease_seconds=BASE_LEASE_SECONDS,
                worker=self._worker,
            )
        metrics.claims.labels("won").inc(len(events))
        metrics.claims.labels("lost").inc(len(ids) - len(events))
        if not events:
            return 0
        batch = ClaimedBatch(token, len(events), claimed_at=claimed_at, lease_seconds=BASE_LEASE_SECONDS)
        # Read after the claim, never before: an edit that came in between is seen here, and one that
        # comes later sees the claim. And not before its time: an edit that was answered by then is obeyed.
        self._courier.hold(until=events[0].due_at)
        with self._turn:
            self._send(events, token, batch)
        unstarted = batch.wait()
        if unstarted:
            log.info("deliver.given_back", message="Not finished here; given back", event_ids=list(unstarted))
            self._store.claims.give_back(unstarted, token, self._now(), f"Given back by {self._worker}")
        return len(events)

    def _send(self, events: Sequence[Event], token: str, batch: ClaimedBatch) -> None:
        """Hands over what is still to be sent."""
        schedules = self._store.schedules.for_delivery(list({event.schedule_id for event in events}))
        attempts, void = self._sort_out(events, schedules, token, batch)
        if void:
            self._store.claims.void(void, token, self._now(), WITHDRAWN)
            batch.settle(len(void))
        self._extend(attempts, batch)
        self._courier.send([Job(attempt, batch) for attempt in attempts])

    def _sort_out(
        self,
        events: Sequence[Event],
        schedules: dict[str, Schedule | Unreadable],
        token: str,
        batch: ClaimedBatch,
    ) -> tuple[list[Attempt], list[str]]:
        """What is to be sent, and what was withdrawn; an event of a bent schedule is set aside."""
        attempts: list[Attempt] = []
        void: list[str] = []
        for event in events:
            schedule = schedules.get(event.schedule_id)
            if isinstance(schedule, Unreadable):
                reason = f"its schedule cannot be read: {schedule.reason}"
                record = set_aside(event, token, self._worker, reason, self._now())
                self._recorder.put([Outcome(record, batch)])
            elif schedule is None or _withdrawn(event, schedule):
                void.append(event.id)
            else:
                attempts.append(Attempt(event, schedule, token, self._worker))
        return attempts, void

    def _extend(self, attempts: Sequence[Attempt], batch: ClaimedBatch) -> None:
        """The claim knew no timeouts; a longer one than the default needs a longer lease."""
        longest = max((attempt.schedule.timeout_seconds for attempt in attempts), default=0.0)
        if longest > DEFAULT_TIMEOUT_SECONDS:
            asked_at, lease = monotonic(), longest + LEASE_MARGIN_SECONDS
            self._store.claims.extend([attempt.event.id for attempt in attempts], batch.token, lease)
            batch.extended(asked_at=asked_at, lease_seconds=lease)


def _withdrawn(event: Event, schedule: Schedule) -> bool:
    if event.kind is Kind.MANUAL:
        return schedule.state is ScheduleState.DELETED
    if event.lost_leases and schedule.state is not ScheduleState.DELETED:
        # It may have been sent, and the revision that followed an edit leaves this instant to it.
        return schedule.state is ScheduleState.PAUSED and event.run_time > schedule.revised_at
    return schedule.voids(event.revision, event.run_time)
