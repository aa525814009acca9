"""What the sink saw, and what it says about lag and doubles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tests.bench.report import Row, percentiles


@dataclass(frozen=True)
class Arrival:
    """A request at the sink; Unix seconds."""

    at: float
    key: str
    run_time: float

    @classmethod
    def of(cls, at: float, key: str, run_time: str) -> "Arrival":
        return cls(at, key, datetime.fromisoformat(run_time).timestamp())

    @property
    def lag_ms(self) -> float:
        return (self.at - self.run_time) * 1000


def judged(arrivals: Sequence[Arrival], count: int) -> Row:
    """How fast and how late so many events arrived, counted from the instant at which the first was due."""
    first_due = min(arrival.run_time for arrival in arrivals)
    last = max(arrival.at for arrival in arrivals) - first_due
    keys = {arrival.key for arrival in arrivals}
    lags = [arrival.lag_ms for arrival in arrivals]
    return {
        "events": count,
        "arrived": len(keys),
        "twice": len(arrivals) - len(keys),
        "throughput_per_s": round(count / last),
        "last_ms": round(last * 1000),
        "lag_ms": percentiles(lags),
        "early": sum(lag < 0 for lag in lags),
    }


def watched(due: Mapping[str, float], arrivals: Sequence[Arrival], until: float) -> Row:
    """How late the events of `due` (by key, Unix seconds) are; one that had not come by `until` counts as if
    it had come then, which is too good."""
    came: dict[str, float] = {}
    requests = 0
    for arrival in arrivals:
        if arrival.key in due:
            requests += 1
            came[arrival.key] = min(arrival.at, came.get(arrival.key, arrival.at))
    lags = [(came.get(key, until) - at) * 1000 for key, at in due.items()]
    return {
        "events": len(due),
        "arrived": len(came),
        "missing": len(due) - len(came),
        "twice": requests - len(came),
        "lag_ms": percentiles(lags) if lags else None,
        "early": sum(lag < 0 for lag in lags),
    }


def complete(row: Row) -> bool:
    """Whether every event arrived, once, not early, and is `completed` in MongoDB."""
    return row["arrived"] == row["completed"] == row["events"] and not row["twice"] and not row["early"]
