"""Attempts by origin, for Prometheus."""

import threading
from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily

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
        with self._lock:
            for record in records:
                origin = record.origin
                counts = self._attempts.get(origin)
                if counts is None:
                    if len(self._attempts) >= MAX_ORIGINS:
                        origin = OTHER
                    counts = self._attempts.setdefault(origin, {})
                outcome = record.state.value
                counts[outcome] = counts.get(outcome, 0) + 1
                took = record.attempt.get("duration_ms", 0.0) / 1000
                self._seconds[origin] = self._seconds.get(origin, 0.0) + took

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
