"""A claimed batch on its way: its lease, and how many of its events are still open."""

import threading
from collections.abc import Sequence

from scheduler_app.clock import monotonic


class ClaimedBatch:
    """Counts down as its events are recorded or given up. Threads share it."""

    def __init__(self, token: str, size: int, *, claimed_at: float, lease_seconds: float) -> None:
        """`claimed_at` is the monotonic time just before the claim was asked for: the lease as the worker
        sees it ends no later than the one mongod keeps."""
        self.token = token
        self._lease_ends = claimed_at + lease_seconds
        self._open = size
        self._left: list[str] = []
        self._lock = threading.Lock()
        self._settled = threading.Event()

    def extended(self, *, asked_at: float, lease_seconds: float) -> None:
        self._lease_ends = asked_at + lease_seconds

    def has_room_for(self, timeout_seconds: float) -> bool:
        """Whether a request that starts now ends within the lease, even if it takes its whole timeout."""
        return monotonic() + timeout_seconds < self._lease_ends

    def settle(self, count: int = 1) -> None:
        """So many events are written, refused, or no longer ours."""
        with self._lock:
            self._open -= count
            if self._open <= 0:
                self._settled.set()

    def leave(self, event_id: str) -> None:
        """An event whose request was not made, or not waited for: it is to be given back."""
        with self._lock:
            self._left.append(event_id)
        self.settle()

    def wait(self) -> Sequence[str]:
        """Waits until every event is settled; returns those to give back."""
        self._settled.wait()
        return tuple(self._left)
