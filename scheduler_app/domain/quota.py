"""What a tenant has used of a limit where something is made, and the refusal beyond it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from scheduler_app.domain.errors import LimitReached, QuotaExceeded

DAY: Final = timedelta(days=1)
DAY_SECONDS: Final = DAY // timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Quota:
    """A limit of what a tenant makes, as its refusal words it."""

    name: str
    """The field of the tenant's `limits`."""
    unit: str
    """What is counted, as the fields `RateLimit` name it."""
    may: str
    remedy: str


SCHEDULES: Final = Quota("schedules", "schedules", "have {} schedules", "delete some")
MESSAGES_PER_DAY: Final = Quota(
    "messages_per_day", "messages", "make {} messages and triggers a day", "go on after 00:00 UTC"
)
EVENTS_PER_HOUR: Final = Quota(
    "events_per_hour",
    "events",
    "owe {} events in an hour",
    "let some schedules run less often, pause or delete some",
)


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """How much of a limit a tenant has used after an act, or before one that was refused."""

    quota: Quota
    tenant: str
    limit: int
    used: int
    seconds_left: int | None = None
    """Until counting begins anew; None for what exists."""

    @property
    def left(self) -> int:
        """More may exist than is allowed now: a limit can be lowered."""
        return max(0, self.limit - self.used)

    def refusal(self, wanted: int) -> QuotaExceeded:
        """Says what the limit is, how much of it is used, and what to do."""
        whole = (
            f"the tenant {self.tenant} may {self.quota.may.format(self.limit)}: {self.used} of them are used,"
            f" and this request asks for {wanted}; {self.quota.remedy}, or ask an operator for a larger"
            f" limits.{self.quota.name}"
        )
        if self.seconds_left is None:
            return LimitReached(whole, limit=self.quota.name)
        return QuotaExceeded(whole, retry_after=self.seconds_left, limit=self.quota.name)


def day_of(now: datetime) -> datetime:
    """The beginning of its day in UTC."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def seconds_until(end: datetime, now: datetime) -> int:
    """The rest of a second counts as one."""
    return max(1, -((now - end) // timedelta(seconds=1)))
