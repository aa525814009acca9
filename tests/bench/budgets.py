"""What each figure has to come to, and what the Go original came to on such a machine."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from tests.bench.report import Row


@dataclass(frozen=True)
class Budget:
    """A figure of a benchmark's summary (`path`, with dots) and its bound."""

    what: str
    bench: str
    path: str
    limit: float
    unit: str = ""
    at_least: bool = False
    original: str = ""

    def value(self, summaries: Mapping[str, Row]) -> float | None:
        """None when the benchmark failed."""
        summary = summaries.get(self.bench)
        if summary is None:
            return None
        found: Any = reduce(lambda part, key: part[key], self.path.split("."), summary)
        return float(found)

    def met(self, value: float | None) -> bool:
        if value is None:
            return False
        return value >= self.limit if self.at_least else value <= self.limit

    def bound(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:,g} {self.unit}".rstrip()

    def row(self, summaries: Mapping[str, Row]) -> Row:
        value, summary = self.value(summaries), summaries.get(self.bench, {})
        return {
            "what": self.what,
            "measured": value,
            "budget": self.bound(),
            "met": self.met(value),
            "stolen_percent": summary.get("stolen_percent"),
            "loop_s": summary.get("loop_s"),
        }


BUDGETS = (
    Budget("burst of 10,000", "floor", "burst.throughput_per_s", 6_500, "/s", True, "1,307"),
    Budget("… its last arrival", "floor", "burst.last_ms", 1_600, "ms", original="7,650"),
    Budget("… its ratio to the floor", "floor", "ratio", 0.6, at_least=True),
    Budget("… round trips an event", "floor", "burst.round_trips_per_event.all", 0.3, original="about 10"),
    Budget("burst of 2,000, last arrival", "burst", "last_ms", 800, "ms", original="2,530"),
    Budget("singles", "singles", "throughput_per_s", 2_500, "/s", True),
    Budget("sustained", "sustained", "throughput_per_s", 2_500, "/s", True),
    Budget("… late by over 1 s in the last third", "sustained", "backlog.last", 0),
    Budget("spread at 100/s, lag p99", "spread", "lag_ms.p99", 20, "ms", original="seconds"),
    Budget("beside a bad neighbour, lag p99 of what is allowed", "neighbours", "of_allowed_max", 1),
    Budget("… callbacks not made after another minute", "neighbours", "missing", 0),
    Budget("… a process's growth in the last third", "neighbours", "growth_mib_max", 32, "MiB"),
    Budget(
        "… workers' CPU for each that hangs for 300 s",
        "neighbours",
        "cases.silent-600-300s-50.waiting.worker_us_per_s_each",
        100,
        "µs/s",
    ),
    Budget("trigger to receiver, p99", "trigger", "lag_ms.p99", 300, "ms"),
    Budget("tick, nothing due", "tick", "p50_ms", 10, "ms", original="8,700"),
    Budget("… ratio to 1,000 schedules", "tick", "ratio_to_1000", 1.25),
    Budget("… beat's memory", "tick", "memory_mib.beat1", 150, "MiB"),
    Budget("… a worker's memory", "tick", "memory_mib.worker1", 150, "MiB"),
    Budget("expanding 10,000 of one second", "expand", "seconds", 2, "s", original="49"),
    Budget("creates one by one", "create", "throughput_per_s", 500, "/s", True),
    Budget("creates in bulk", "create", "bulk_per_s", 4_000, "/s", True),
    Budget("messages: rate, ratio to occurrences", "messages", "throughput_ratio", 1.0, at_least=True),
    Budget("… mongod's CPU, ratio to occurrences", "messages", "mongod_ratio_to_occurrences", 0.8),
    Budget("… mongod's CPU, ratio to one-off schedules", "messages", "mongod_ratio_to_once", 0.8),
    Budget("… creation in bulk, ratio to schedules", "messages", "creation_ratio", 2.0, at_least=True),
    Budget("creates beside 200 slow clients, the worst ratio", "slow_clients", "ratio", 0.5, at_least=True),
    Budget("… the slowest /healthz", "slow_clients", "healthz_ms_max", 1_000, "ms"),
    Budget("lists, the worst p99", "history", "p99_ms_max", 30, "ms"),
    Budget(
        "next occurrence, the worst rule", "recurrence", "median_ms_max", 1, "ms", original="dateutil: 20 s"
    ),
)
