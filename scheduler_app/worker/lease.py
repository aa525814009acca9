"""A worker's leases on claimed events: until when it may start their attempts, and their renewal."""

import threading
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from scheduler_app.clock import monotonic
from scheduler_app.domain.deliverable import DEFAULT_TIMEOUT_SECONDS
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

#: How much longer a lease is than the timeout of its events.
MARGIN_SECONDS = 15.0
#: Timeouts share leases by these classes, so that a batch with a hundred different ones has five at most. An
#: event's lease is that of its own class: a neighbour's long timeout does not delay its recovery.
TIMEOUT_CLASSES = (DEFAULT_TIMEOUT_SECONDS, 30.0, 60.0, 120.0, 300.0)
#: The timeout that a claim assumes, before the schedules are read.
FIRST_TIMEOUT_SECONDS = DEFAULT_TIMEOUT_SECONDS
LOOK_SECONDS = 1.0


def timeout_class(timeout_seconds: float) -> float:
    """The class that a timeout belongs to, in seconds; a longer one than all of them is its own."""
    for each in TIMEOUT_CLASSES:
        if timeout_seconds <= each:
            return each
    return timeout_seconds


class Lease:
    """The hold of one claim on events of one timeout class. Threads share it.

    The lease ends, for this worker, no later than for mongod: it is counted from the instant before MongoDB
    was asked for it, by a clock that no adjustment moves.
    """

    def __init__(
        self, token: str, event_ids: Iterable[str], *, asked_at: float, timeout_seconds: float
    ) -> None:
        """`asked_at`: the monotonic time just before the claim was asked for."""
        self.token = token
        self.timeout_seconds = timeout_seconds
        self._open = set(event_ids)
        self._started: set[str] = set()
        self._ends_at = asked_at + self.seconds
        self._lock = threading.Lock()

    @staticmethod
    def length(timeout_seconds: float) -> float:
        """How many seconds a lease for requests of such a timeout is granted for."""
        return timeout_seconds + MARGIN_SECONDS

    @property
    def seconds(self) -> float:
        """How long the lease is when it is granted or renewed."""
        return self.length(self.timeout_seconds)

    def is_lost(self, event_id: str) -> bool:
        """Whether another worker has the event by now, or it was settled."""
        return event_id not in self._open

    def has_room_for(self, timeout_seconds: float, now: float) -> bool:
        """Whether a request that starts `now` (monotonic) ends within the lease, even if it takes its whole
        timeout."""
        return now + timeout_seconds < self._ends_at

    def start(self, event_id: str) -> None:
        """The event's request is made from now on."""
        self._started.add(event_id)

    def settle(self, event_ids: Collection[str]) -> None:
        """The events are written, or belong to other workers."""
        with self._lock:
            self._open.difference_update(event_ids)
            self._started.difference_update(event_ids)

    def split(self, event_ids: Iterable[str], timeout_seconds: float) -> "Lease":
        """Takes events out to a lease of their own, of another class. It ends when this one does until it is
        renewed."""
        ids = set(event_ids)
        lease = Lease(self.token, ids, asked_at=0.0, timeout_seconds=timeout_seconds)
        with self._lock:
            self._open -= ids
            lease._ends_at = self._ends_at
        return lease

    def open(self) -> Sequence[str]:
        """The events that are held and not settled."""
        with self._lock:
            return tuple(self._open)

    def wants_renewal(self, now: float) -> bool:
        """Whether there is less left than what its events may still need. `now` is monotonic."""
        waiting = len(self._open) > len(self._started)
        needed = MARGIN_SECONDS / 2 + (self.timeout_seconds if waiting else 0.0)
        return bool(self._open) and self._ends_at - now < needed

    def renewed(self, held: Iterable[str], asked_at: float) -> Sequence[str]:
        """Notes which events a renewal found held; returns those that were lost and had not started."""
        with self._lock:
            lost = self._open.difference(held)
            self._ends_at = asked_at + self.seconds
            # Requests in flight go on: MongoDB takes their outcomes while the token stands, or as late ones.
            unstarted = lost - self._started
            self._open -= unstarted
        return tuple(unstarted)


class Renewal(NamedTuple):
    """The result of one pass over the leases."""

    renewed: int
    lost: int


class Leases(threading.Thread):
    """Renews what this worker still holds, however long its outcomes take to be written.

    A worker that was stopped, or cut off, finds here that it has lost an event before it starts it: nothing
    starts under a lease that has no room, and only MongoDB's word makes room again.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(name="leases", daemon=True)
        self._claims = store.claims
        self._leases: list[Lease] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def add(self, lease: Lease) -> None:
        with self._lock:
            self._leases.append(lease)

    def renew(self, lease: Lease) -> Sequence[str]:
        """Asks MongoDB for the lease's whole length again; returns what was lost and not started. Raises a
        STORE_FAULT."""
        asked_at, ids = monotonic(), lease.open()
        if not ids:
            return ()
        held = self._claims.renew(ids, lease.token, lease.seconds)
        return lease.renewed(held, asked_at)

    def renew_due(self, now: float) -> Renewal:
        """Renews, in one pass, the leases that are about to run out. `now` is monotonic."""
        with self._lock:
            self._leases = [lease for lease in self._leases if lease.open()]
            due = [lease for lease in self._leases if lease.wants_renewal(now)]
        renewed = lost = 0
        for lease in due:
            try:
                gone = self.renew(lease)
            except STORE_FAULTS as error:
                log.warning(
                    "lease.not_renewed",
                    message="MongoDB does not answer; no request starts under a lease that is not renewed",
                    error=str(error)[:300],
                )
                break  # the others would wait as long; the next pass tries again
            renewed += 1
            lost += len(gone)
            if gone:
                log.warning(
                    "lease.lost",
                    message="Claims were lost before their requests started; another worker has the events",
                    count=len(gone),
                    event_ids=gone[:10],
                )
        return Renewal(renewed, lost)

    def run(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            try:
                self.renew_due(monotonic())
            except Exception:  # without renewals every callback that waits would stop
                log.exception("lease.failed", message="A pass over the leases failed; the next one follows")

    def stop(self) -> None:
        self._ended.set()
