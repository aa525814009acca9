"""How many events schedules owe in their busiest hour, estimated as a forecast does."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from scheduler_app.clock import monotonic
from scheduler_app.domain.backfill import Backfill
from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.forecast import Buckets, ForecastSource, occurrences_by_bucket
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store import Store
from scheduler_app.usecases.forecast import ForecastService

HOUR: Final = timedelta(hours=1)
#: The hours that are looked at: a day, whenever within an hour it begins.
HOURS: Final = 25
#: What the rules of many schedules may take; the others of them stand for those that are not looked at.
MOST_SECONDS: Final = 2.0


def busiest_hour(store: Store, tenant: str, now: datetime) -> int:
    """What the tenant owes in the busiest hour of the next day: by rules, and as events that wait. Messages
    are none of it. Raises a STORE_FAULT."""
    first = now.replace(minute=0, second=0, microsecond=0)
    buckets = Buckets(now, first + HOURS * HOUR, HOUR, first)
    service = ForecastService(store, max_seconds=MOST_SECONDS)
    hours: Counter[int] = Counter()
    for cell, count in service.forecast(tenant, buckets, now).cells.items():
        if cell.source != ForecastSource.MESSAGES:
            hours[cell.bucket] += count
    return max(hours.values(), default=0)


def hourly_peaks(schedules: Sequence[Schedule]) -> list[int]:
    """For each schedule how much it owes in the busiest hour of the day that begins with its next run."""
    until = monotonic() + MOST_SECONDS
    peaks: list[int] = []
    for each in schedules:
        peaks.append(max(peaks) if peaks and monotonic() > until else hourly_peak(each))
    return peaks


def hourly_peak(schedule: Schedule) -> int:
    """0 for one that owes nothing now."""
    start = schedule.next_run_at
    if start is None or schedule.state is not ScheduleState.ACTIVE:
        return 0
    try:
        counts = occurrences_by_bucket(schedule, Buckets(start, start + HOURS * HOUR, HOUR))
    except InvalidRecurrence:  # expansion sets it aside
        return 0
    return max(counts.sent.values(), default=0)


def backfill_peak(backfill: Backfill) -> int:
    """What a backfill makes in an hour at most."""
    return min(backfill.occurrences, int(backfill.rate_per_second * HOUR.total_seconds()) + 1)
