"""What forecasts return, typed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from scheduler_app.client.record import Record


@dataclass(frozen=True, eq=False, repr=False)
class ForecastBucket(Record):
    """One part of a forecast's time; in JSON `start` is `from`."""

    count: int
    start: datetime = field(metadata={"json": "from"})


@dataclass(frozen=True, eq=False, repr=False)
class ForecastReceiver(Record):
    """What falls due for one destination, or for one origin where none is named."""

    count: int
    counts: tuple[int, ...] = ()
    destination: str | None = None
    origin: str | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Forecast(Record):
    """How many callbacks fall due when; `notes` says why they are estimates where `sampled` is true."""

    bucket_seconds: int
    count: int
    overdue: int
    sampled: bool
    buckets: tuple[ForecastBucket, ...] = ()
    receivers: tuple[ForecastReceiver, ...] = ()
    receivers_omitted: int = 0
    sources: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()
    busiest: ForecastBucket | None = None
