"""What forecasts return, typed."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from scheduler_app.client.record import Record, renamed


class ForecastBucket(Record):
    """One part of a forecast's time; in JSON `start` is `from`."""

    count: int
    start: datetime = renamed("from")


class ForecastReceiver(Record):
    """What falls due for one destination, or for one origin where none is named."""

    count: int
    counts: tuple[int, ...] = ()
    destination: str | None = None
    origin: str | None = None


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
    blackouts: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()
    busiest: ForecastBucket | None = None


class Backfill(Record):
    """A backfill and how far it has come; `state` is `running`, `made`, `done`, `cancelled` or `error`. In
    JSON `since` and `until` are `from` and `to`."""

    schedule_id: str
    state: str
    occurrences: int
    made: int
    left_out: int
    waiting: int
    completed: int
    failed: int
    rate_per_second: float
    overlap: str
    only_missing: bool
    since: datetime = renamed("from")
    until: datetime = renamed("to")
    seconds_left: int | None = None
    reason: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    #: Whether it only says what it would do.
    dry_run: bool = False


class OwedOfSchedule(Record):
    """What one schedule owes; `schedule_id` is None for messages."""

    count: int
    oldest: datetime
    schedule_id: str | None = None


class OwedToReceiver(Record):
    """What one destination is owed, or one origin where none is named."""

    count: int
    oldest: datetime
    destination: str | None = None
    origin: str | None = None


class OwedByPolicy(Record):
    """What is late under the same policies; `expires` says whether `expire_after_seconds` is among them."""

    catch_up: str
    expires: bool
    run_overlap: str
    count: int
    oldest: datetime


class Backlog(Record):
    """What was due before now and waits."""

    count: int
    sampled: bool
    finished_per_second: float
    at: datetime
    oldest: datetime | None = None
    seconds_to_drain: float | None = None
    schedules: tuple[OwedOfSchedule, ...] = ()
    schedules_omitted: int = 0
    receivers: tuple[OwedToReceiver, ...] = ()
    receivers_omitted: int = 0
    policies: tuple[OwedByPolicy, ...] = ()


class BacklogExpired(Record):
    """How many late events were given up, and whether there are more."""

    expired: int
    more: bool
