"""After an outage: what is owed, how long it takes, and giving up what is not worth it any more."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.lateness import CatchUp
from scheduler_app.domain.states import Kind
from scheduler_app.store import Store
from scheduler_app.store.backlogs import BacklogFilter, LateEventCount, LatenessPolicies
from scheduler_app.telemetry import get_logger, metrics

log = get_logger(__name__)

OwnerKey = TypeVar("OwnerKey")

#: Of more late events than this, owners are counted among the oldest alone.
MAX_LOOKED_AT = 50_000
MAX_COUNTED = 1_000_000
#: The time over which the speed of ending events is measured.
MEASURED = timedelta(seconds=60)
MAX_FINISHED = 100_000


@dataclass(frozen=True, slots=True)
class BacklogReport:
    """The events that were due before `at` and wait."""

    at: datetime
    count: int
    count_is_limited: bool
    oldest: datetime | None
    by_schedule: list[tuple[str, int, datetime]]
    """The schedules with the most events first; the id is empty for messages."""
    by_receiver: list[tuple[str, int, datetime]]
    by_policy: list[tuple[LatenessPolicies, int, datetime]]
    sampled: bool
    """The owners are those of the first `MAX_LOOKED_AT` events."""
    finished_per_second: float

    @property
    def seconds_to_drain(self) -> float | None:
        """How long it takes at the speed of the last minute; None if nothing ended in it."""
        if not self.count:
            return 0.0
        return self.count / self.finished_per_second if self.finished_per_second else None


@dataclass(frozen=True)
class BacklogService:
    store: Store
    max_looked_at: int = MAX_LOOKED_AT

    def backlog(self, tenant: str, now: datetime) -> BacklogReport:
        """Raises a STORE_FAULT."""
        backlogs = self.store.backlogs
        owed = backlogs.owed(tenant, now, limit=self.max_looked_at)
        looked_at = sum(each.number for each in owed)
        count, sampled = looked_at, looked_at >= self.max_looked_at
        if sampled:
            count = backlogs.count(tenant, BacklogFilter(now), most=MAX_COUNTED)
        policies = backlogs.policies(sorted({each.schedule_id for each in owed} - {""}))
        finished = backlogs.finished_since(tenant, now - MEASURED, most=MAX_FINISHED)
        return BacklogReport(
            at=now,
            count=count,
            count_is_limited=count >= MAX_COUNTED,
            oldest=min((each.oldest for each in owed), default=None),
            by_schedule=_sums_by(owed, lambda each: each.schedule_id),
            by_receiver=_sums_by(owed, lambda each: each.receiver),
            by_policy=_sums_by(
                owed, lambda each: _policies(each, policies.get(each.schedule_id, LatenessPolicies()))
            ),
            sampled=sampled,
            finished_per_second=finished / MEASURED.total_seconds(),
        )

    def count(self, tenant: str, which: BacklogFilter) -> int:
        """How many late events an `expire` would give up, page by page; counted up to `MAX_COUNTED`."""
        return self.store.backlogs.count(tenant, which, most=MAX_COUNTED)

    def expire(self, tenant: str, which: BacklogFilter, now: datetime, *, limit: int) -> tuple[int, bool]:
        """Gives up late events, `limit` at most. Returns how many, and whether there may be more. Events that
        a worker takes meanwhile are sent."""
        ids = self.store.backlogs.page(tenant, which, limit=limit)
        message = f"Expired: a person gave up what was due before {shown_instant(which.due_before)}"
        count = self.store.backlogs.expire(ids, which, now, message)
        metrics.backlog_expired.inc(count)
        if count:
            log.info("backlog.expired", message="A person gave up late events", count=count)
        return count, len(ids) == limit


def _policies(owed: LateEventCount, of_schedule: LatenessPolicies) -> LatenessPolicies:
    """By what late events are judged: `catch_up` speaks of occurrences of a rule alone, and nothing of a
    backfill."""
    if owed.kind == Kind.MESSAGE:
        return LatenessPolicies(expires=owed.expires)
    if owed.kind == Kind.BACKFILL:
        return LatenessPolicies()
    return of_schedule if owed.kind == Kind.SCHEDULED else of_schedule._replace(catch_up=CatchUp.ALL)


def _sums_by(
    owed: Sequence[LateEventCount], key: Callable[[LateEventCount], OwnerKey]
) -> list[tuple[OwnerKey, int, datetime]]:
    """Their sums by `key`, the largest first, and the oldest of each."""
    counts, oldest = Counter[OwnerKey](), dict[OwnerKey, datetime]()
    for each in owed:
        counts[key(each)] += each.number
        oldest[key(each)] = min(each.oldest, oldest.get(key(each), each.oldest))
    return [(name, count, oldest[name]) for name, count in counts.most_common()]
