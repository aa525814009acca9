"""Attempts by origin, for Prometheus."""

import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily

from scheduler_app.domain.event import State
from scheduler_app.store.events.outcomes import Record

#: Origins that a worker counts by their names: the first ones that it calls. The rest is `other`.
MAX_ORIGINS = 100
OTHER = "other"


class OriginCounts:
    """Counts a worker's attempts by outcome, and how long they took. Threads share it."""

    def __init__(self) -> None:
        self._attempts: dict[str, dict[str, int]] = {}
        self._seconds: dict[str, float] = {}
        self._lock = threading.Lock()

    def note(self, records: Iterable[Record]) -> None:
        """Takes attempts that were recorded."""
        ended: defaultdict[tuple[str, State], int] = defaultdict(int)
        took_ms: defaultdict[str, float] = defaultdict(float)
        for record in records:
            ended[record.origin, record.state] += 1
            took_ms[record.origin] += record.attempt.get("duration_ms", 0.0)
        with self._lock:
            for (name, state), count in ended.items():
                counts = self._attempts.setdefault(self._shown(name), {})
                counts[state.value] = counts.get(state.value, 0) + count
            for name, milliseconds in took_ms.items():
                origin = self._shown(name)
                self._seconds[origin] = self._seconds.get(origin, 0.0) + milliseconds / 1000

    def _shown(self, origin: str) -> str:
        known = origin in self._attempts or len(self._attempts) < MAX_ORIGINS
        return origin if known else OTHER

    def collect(self) -> Iterator[CounterMetricFamily]:
        attempts = CounterMetricFamily(
            "scheduler_origin_attempts",
            "Attempts by origin and by how they ended; `other` is what is beyond the first origins",
            labels=["origin", "outcome"],
        )
        seconds = CounterMetricFamily(
            "scheduler_origin_attempt_seconds", "How long they took together", labels=["origin"]
        )
        with self._lock:
            counted = [(origin, dict(counts)) for origin, counts in self._attempts.items()]
            took = dict(self._seconds)
        for origin, counts in counted:
            for outcome, count in counts.items():
                attempts.add_metric([origin, outcome], count)
            seconds.add_metric([origin], took[origin])
        yield attempts
        yield seconds
