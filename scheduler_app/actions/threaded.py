"""What executors share that have their work done elsewhere, by threads and processes of their own.

The courier's thread owns the attempts, and ends them at their time whatever their threads do.
"""

import heapq
import itertools
import queue
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from scheduler_app.actions.kind import Outcome, Verdict
from scheduler_app.clock import monotonic


class ToldOutcome(NamedTuple):
    """How an attempt ended."""

    serial: int
    event_id: str
    outcome: Outcome
    reason: str = ""
    snippet: str = ""
    status_code: int | None = None


class AskedAttempt(Protocol):
    """What a thread is asked to do; `until` is by the monotonic clock."""

    @property
    def serial(self) -> int: ...
    @property
    def until(self) -> float: ...


Asked = TypeVar("Asked", bound=AskedAttempt)


class ThreadedExecutor(ABC, Generic[Asked]):
    """The attempts in flight, and their verdicts."""

    def __init__(self, ready: Callable[[], None]) -> None:
        """`ready` is called when there is a verdict to collect."""
        self._ready = ready
        self._told: queue.SimpleQueue[ToldOutcome | None] = queue.SimpleQueue()
        self._serials = itertools.count()
        self._pending: dict[str, tuple[Asked, float]] = {}
        """By event, with the monotonic time at which the attempt began."""
        self._ends: list[tuple[float, int, str]] = []

    @abstractmethod
    def _why_overdue(self, asked: Asked, seconds: float) -> str:
        """The sentence for an attempt whose time is over."""

    def wait(self, timeout: float) -> Sequence[Verdict]:
        found = self._overdue()
        until = monotonic() + timeout
        while not found:
            ends = min(until, self._ends[0][0]) if self._ends else until
            left = ends - monotonic()
            try:
                told = self._told.get(timeout=left) if left > 0 else self._told.get_nowait()
            except queue.Empty:
                found = self._overdue()
                if found or monotonic() >= until:
                    return found
                continue
            if told is None:
                break
            found += self._verdict(told)
        while not self._told.empty():
            if (told := self._told.get()) is not None:
                found += self._verdict(told)
        return found

    def wake(self) -> None:
        self._told.put(None)

    def _begin(self, event_id: str, seconds: float, make: Callable[[int, float], Asked]) -> Asked:
        """Notes an attempt that may take so long; `make` gets its serial number and its end."""
        began = monotonic()
        asked = make(next(self._serials), began + seconds)
        self._pending[event_id] = asked, began
        heapq.heappush(self._ends, (asked.until, asked.serial, event_id))
        return asked

    def _forget(self) -> int:
        """Drops all attempts; returns a serial number that those to come are beyond."""
        self._pending.clear()
        self._ends.clear()
        return next(self._serials)

    def _tell(self, told: ToldOutcome) -> None:
        """Any thread may call it."""
        self._told.put(told)
        self._ready()

    def _verdict(self, told: ToldOutcome) -> list[Verdict]:
        """None for an attempt that was interrupted or has ended before."""
        pending = self._pending.get(told.event_id)
        if pending is None or pending[0].serial != told.serial:
            return []
        del self._pending[told.event_id]
        return [_verdict_of(told, pending[1])]

    def _overdue(self) -> list[Verdict]:
        """The attempts whose time is over."""
        now = monotonic()
        found: list[Verdict] = []
        while self._ends and self._ends[0][0] <= now:
            _, serial, event_id = heapq.heappop(self._ends)
            pending = self._pending.get(event_id)
            if pending is None or pending[0].serial != serial:
                continue
            asked, began = pending
            del self._pending[event_id]
            reason = self._why_overdue(asked, asked.until - began)
            found.append(_verdict_of(ToldOutcome(serial, event_id, Outcome.RETRY, reason), began))
        return found


def _verdict_of(told: ToldOutcome, began: float) -> Verdict:
    error = told.reason or None
    duration_ms = (monotonic() - began) * 1000
    return Verdict(
        told.event_id, told.outcome, told.status_code, error, told.snippet, duration_ms, told.reason
    )
