"""The only place that reads the time.

Whether an event is due is decided by `now`: a monotonic clock, set by mongod's. All processes agree on it,
and neither a jump of this host's clock nor one of mongod's moves it. Whether a lease is over is decided by
mongod itself (`$$NOW`); this module only knows by how much its clock has jumped since the lease was written.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

RESYNC_SECONDS = 10.0
WARN_OFFSET_SECONDS = 1.0
#: A quick answer is more precise than a slow one: this many are made, and the best one counts.
KEPT_SAMPLES = 8
#: A larger difference is not drift: a clock was set.
JUMP_SECONDS = 1.0
#: How far clocks drift apart in a second while mongod cannot be asked, and in all.
DRIFT_A_SECOND = 0.000_2
MOST_DRIFT_SECONDS = 5.0
#: Longer than any lease lasts (300 s of timeout and 15 s of margin).
LEASES_LAST_SECONDS = 330.0

#: In microseconds, in which bases are whole numbers.
SECOND = 1_000_000
MILLISECOND = 1_000
EPOCH = datetime.fromtimestamp(0, UTC)


def _suspends() -> int | None:
    """Returns the clock that includes the time a machine sleeps, if there is one (Linux). When a laptop
    wakes, its leases have ended and its events are due."""
    number: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    try:
        if number is not None:
            time.clock_gettime(number)
    except OSError:  # a sandbox without it
        return None
    return number


_BOOTTIME = _suspends()


#: Seconds, for durations; it never jumps. (No Python function: each callback calls it several times.)
monotonic: Callable[[], float] = (
    time.monotonic if _BOOTTIME is None else partial(time.clock_gettime, _BOOTTIME)
)
#: The CPU time of the thread that asks, in seconds: what others do meanwhile does not count.
thread_seconds: Callable[[], float] = time.thread_time


def _wall() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class ClockSample:
    """The bounds between which mongod's clock minus the monotonic one must lie, in microseconds."""

    low: int
    high: int

    @property
    def width(self) -> int:
        return self.high - self.low

    def disagrees_with(self, other: "ClockSample") -> bool:
        """Whether nothing fits both: one of the clocks was set meanwhile."""
        return self.low > other.high or other.low > self.high

    def distance(self, base: int) -> int:
        """By how much mongod's clock is at least ahead of one with this `base`; less than 0: behind it."""
        return max(self.low - base, 0) + min(self.high - base, 0)


class Clock:
    """Monotonic time set by mongod's clock. Thread-safe: what `now` reads is one reference.

    A base is what has to be added to the monotonic clock, in microseconds since 1970.
    """

    def __init__(
        self, wall: Callable[[], datetime] = _wall, elapsed: Callable[[], float] = monotonic
    ) -> None:
        """`wall` is this host's own clock; `elapsed` never jumps, in seconds."""
        self._wall = wall
        self._elapsed = elapsed
        self._lock = threading.Lock()
        self._base = self._own_base()
        self._offset = 0
        self._jump = 0
        self._adopted = 0
        self._samples: deque[ClockSample] = deque(maxlen=KEPT_SAMPLES)
        self._measured_at: float | None = None
        self._agreed_at = elapsed()
        # A process that ran before this one may have written leases by the base that this host's clock shows.
        self._bases: deque[tuple[float, int]] = deque([(self._agreed_at, self._base)])

    def now(self) -> datetime:
        """The time in UTC by mongod's clock, in whole milliseconds (BSON keeps no more)."""
        milliseconds = (self._base + int(self._elapsed() * SECOND)) // MILLISECOND
        return datetime.fromtimestamp(milliseconds / 1000, UTC)

    @property
    def offset_seconds(self) -> float:
        """`now` minus this host's own clock when both were last measured."""
        return self._offset / SECOND

    @property
    def jump_seconds(self) -> float:
        """By how much mongod's clock is ahead of `now` since it jumped; 0 while they agree."""
        return self._jump / SECOND

    @property
    def adopted_seconds(self) -> float:
        """By how much the last measurement moved `now`, because mongod's clock was corrected; mostly 0."""
        return self._adopted / SECOND

    def synchronize(self, read_server_time: Callable[[], datetime]) -> float:
        """Measures mongod's clock by `read_server_time` (aware, in whole milliseconds); returns
        `offset_seconds`.

        The true base lies between the answer minus the end, and the answer plus its resolution minus the
        start. This host's own clock is kept while it is possible: two processes on one machine then agree
        exactly. Otherwise the lower bound of the narrowest measurement counts: a guess in the middle could be
        ahead of mongod's clock, and a callback early.

        A jump of mongod's clock is followed only if this host's clock says the same and contradicts what was
        held so far: then it was corrected. Otherwise `now` goes on as it was, until mongod's clock is back.
        """
        sample = self._measure(read_server_time)
        own, at = self._own_base(), self._elapsed()
        with self._lock:
            jump = sample.distance(self._base)
            drift = JUMP_SECONDS + DRIFT_A_SECOND * (at - self._agreed_at)
            is_jump = self._measured_at is not None and abs(jump) > SECOND * min(drift, MOST_DRIFT_SECONDS)
            corrected = (
                is_jump
                and abs(sample.distance(own)) <= SECOND * JUMP_SECONDS
                and abs(own - self._base) > SECOND * JUMP_SECONDS
            )
            self._jump = jump if is_jump and not corrected else 0
            self._adopted = jump if corrected else 0
            if not self._jump:
                self._adopt(sample, own)
                self._agreed_at = at
            self._offset = self._base - own
            self._measured_at = at
        return self.offset_seconds

    def jumped_ahead_seconds(self, read_server_time: Callable[[], datetime]) -> float:
        """By how much mongod's clock has jumped ahead within the time that leases last; mostly 0.

        A lease written before the jump appears to end that much too early.
        """
        sample = self._measure(read_server_time)
        with self._lock:
            ahead = (sample.high - min(base for _, base in self._bases)) / SECOND
        return ahead if ahead > JUMP_SECONDS else 0.0

    def stale(self) -> bool:
        """Whether it is time to measure again."""
        measured = self._measured_at
        return measured is None or self._elapsed() - measured > RESYNC_SECONDS

    def _measure(self, read_server_time: Callable[[], datetime]) -> ClockSample:
        started = int(self._elapsed() * SECOND)
        server = _microseconds(read_server_time())
        ended = self._elapsed()
        sample = ClockSample(server - int(ended * SECOND), server + MILLISECOND - started)
        with self._lock:
            self._remember(ended, sample.low)
        return sample

    def _remember(self, at: float, base: int) -> None:
        """Keeps the bases that may become the least of LEASES_LAST_SECONDS, one per second at most."""
        bases = self._bases
        while bases and bases[-1][1] >= base:
            bases.pop()
        if not bases or at - bases[-1][0] >= 1.0:
            bases.append((at, base))
        while bases[0][0] < at - LEASES_LAST_SECONDS and len(bases) > 1:
            bases.popleft()

    def _adopt(self, sample: ClockSample, own: int) -> None:
        if any(sample.disagrees_with(other) for other in self._samples):
            self._samples.clear()
        self._samples.append(sample)
        best = min(self._samples, key=lambda each: each.width)
        self._base = own if best.low <= own <= best.high else best.low

    def _own_base(self) -> int:
        # The wall clock is read first: a pause between the two readings makes the base late, and never early.
        return max(_microseconds(self._wall()) - int(self._elapsed() * SECOND) for _ in range(3))


def _microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


clock = Clock()
