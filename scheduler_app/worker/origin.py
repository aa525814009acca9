"""One origin: its jobs that wait and fly, how often its attempts end, and the line of those that come again
later.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler_app.worker.attempt import Job

WINDOW_SECONDS = 10


class Rate:
    """Counts by the second, over a window. Not thread-safe."""

    __slots__ = ("_counts", "_first", "_second", "_total")

    def __init__(self) -> None:
        self._counts = [0] * WINDOW_SECONDS
        self._second = 0
        self._first: float | None = None
        self._total = 0

    def count(self, now: float) -> None:
        """Counts one more at the monotonic time `now`."""
        if now >= self._second + 1:  # mostly it is the second of the last one
            self._advance(now)
        if self._first is None:
            self._first = now
        self._counts[self._second % WINDOW_SECONDS] += 1
        self._total += 1

    def per_second(self, now: float) -> float:
        """The mean over the window, or over the time since the first one when that is less."""
        self._advance(now)
        if not self._total or self._first is None:
            return 0.0
        return self._total / min(WINDOW_SECONDS, max(1.0, now - self._first))

    def _advance(self, now: float) -> None:
        second = int(now)
        if second <= self._second:
            return
        for each in range(max(self._second + 1, second - WINDOW_SECONDS + 1), second + 1):
            self._total -= self._counts[each % WINDOW_SECONDS]
            self._counts[each % WINDOW_SECONDS] = 0
        self._second = second
        if not self._total:
            self._first = None


#: How soon a postponed event comes again at the earliest, and at the latest.
MIN_POSTPONED_SECONDS = 2
MAX_POSTPONED_SECONDS = 3_600


class Postponed(NamedTuple):
    """A job that has to come again, in `seconds` from now, and how its origin is."""

    job: Job
    seconds: float
    in_flight: int
    waiting: int


class Load(NamedTuple):
    """An origin at a moment, for metrics and for people."""

    origin: str
    in_flight: int
    limit: int
    waiting: int
    postponed: int
    full_seconds: float
    """How long events have been waiting because it is at its limit; 0 when none does."""


class ReturnLine:
    """The seconds in which an origin's postponed events come again, with how many in each."""

    __slots__ = ("_by_minute", "_slot", "_taken")

    def __init__(self) -> None:
        #: The second that is being filled, and how many come in it.
        self._slot = 0
        self._taken = 0
        self._by_minute: dict[int, int] = {}

    def place(self, now: float, each_second: int) -> float:
        """Takes the next place in the line; returns the seconds from now until then."""
        earliest = int(now) + MIN_POSTPONED_SECONDS
        if self._slot < earliest:
            self._slot, self._taken = earliest, 0
        elif self._taken >= each_second:
            self._slot, self._taken = self._slot + 1, 0
        if self._slot > now + MAX_POSTPONED_SECONDS:
            self._slot, self._taken = int(now) + MAX_POSTPONED_SECONDS // 2, 0
        self._taken += 1
        minute = self._slot // 60
        self._by_minute[minute] = self._by_minute.get(minute, 0) + 1
        return self._slot - now

    def coming(self, now: float) -> int:
        """How many are still to come, by whole minutes; those whose minute is over are forgotten."""
        for minute in [minute for minute in self._by_minute if (minute + 1) * 60 <= now]:
            del self._by_minute[minute]
        return sum(self._by_minute.values())


@dataclass(slots=True)
class Origin:
    """What `OriginQueues` knows of one; its thread alone changes it."""

    name: str
    concurrency: int
    """Attempts in flight that its kind of action allows a worker."""
    waiting: int = 0
    in_flight: int = 0
    jobs: OrderedDict[str, deque[Job]] = field(default_factory=OrderedDict)
    """The jobs that may start, by schedule; the schedules take turns in this order. (Taking the first key of
    a plain dict becomes slower with each key that was removed before it.)"""
    flying: dict[str, int] = field(default_factory=dict)
    """Requests in flight by schedule."""
    young: OrderedDict[str, float] = field(default_factory=OrderedDict)
    """Requests that were just started, by event, and when."""
    ended: Rate = field(default_factory=Rate)
    full_since: float | None = None
    """Since when jobs wait because the origin is at its limit."""
    blocked: bool = False
    """Not in turn: it is at its limit, or was when it was last looked at."""
    returns: ReturnLine = field(default_factory=ReturnLine)
    """When those that were postponed come again."""
