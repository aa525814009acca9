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


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """How much of a limit a tenant has used after an act, or before one that was refused."""

    quota: Quota
    tenant: str
    limit: int
    used: int
    ends_at: datetime | None = None
    """When counting begins anew; None for what exists."""

    @property
    def left(self) -> int:
        """More may exist than is allowed now: a limit can be lowered."""
        return max(0, self.limit - self.used)

    def seconds_left(self, now: datetime) -> int | None:
        """Until counting begins anew."""
        return None if self.ends_at is None else max(1, -((now - self.ends_at) // timedelta(seconds=1)))

    def refusal(self, now: datetime) -> QuotaExceeded:
        """Says what the limit is, how much of it is used, and what to do."""
        whole = (
            f"the tenant {self.tenant} may {self.quota.may.format(self.limit)}, and {self.used} of them are"
            f" used: {self.quota.remedy}, or ask an operator for a larger limits.{self.quota.name}"
        )
        seconds = self.seconds_left(now)
        return LimitReached(whole) if seconds is None else QuotaExceeded(whole, retry_after=seconds)


def day_of(now: datetime) -> datetime:
    """The beginning of its day in UTC."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
