"""The first step of a message in a worker: reserve room, and claim its events."""

import threading
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta

from scheduler_app.clock import monotonic
from scheduler_app.domain.queues import CALLBACKS
from scheduler_app.store import Store
from scheduler_app.telemetry import metrics
from scheduler_app.usecases.dispatch.batches import EVENTS_OF_A_BUSY_ORIGIN
from scheduler_app.worker.capacity import Capacity
from scheduler_app.worker.handover import ClaimedBatch, Handover
from scheduler_app.worker.lease import FIRST_TIMEOUT_SECONDS, Lease, Leases

#: Claims that a worker sends to MongoDB at the same time. Dozens of batches may be due at one instant, and
#: in parallel they slow each other down.
CLAIMS_AT_ONCE = 3
#: Claims of fewer events have turns of their own: those of a bulk take several times as long, and a small one
#: behind a row of them would be late.
SMALL = EVENTS_OF_A_BUSY_ORIGIN
SMALL_CLAIMS_AT_ONCE = 2


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
        self._turns = threading.BoundedSemaphore(CLAIMS_AT_ONCE)
        self._turns_of_small = threading.BoundedSemaphore(SMALL_CLAIMS_AT_ONCE)

    def deliver(self, ids: Sequence[str]) -> int:
        """Claims those of the events that no other worker has, hands them over, and returns how many.

        It waits for room in this worker, and never for a receiver: a claimed event is protected by its lease
        in MongoDB, and needs neither the message nor a thread of the pool any more. Raises a STORE_FAULT if
        the claim failed, and Stopping if the worker is ending.
        """
        self._capacity.reserve(len(ids))
        won = 0
        try:
            with self._turns_of_small if len(ids) < SMALL else self._turns:
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
