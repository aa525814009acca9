"""Tenants: the owners of resources, events and keys. `default` always exists."""

import re
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Final

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.request_rate import RequestRate

MAX_TENANTS: Final = 1_000
MAX_TENANT_NOTE: Final = 500
MAX_DELIVERY_SLOTS: Final = 10_000
#: As RETENTION_DAYS.
MAX_RETENTION_DAYS: Final = 3_650
MAX_SCHEDULES: Final = 1_000_000
MAX_MESSAGES_PER_DAY: Final = 100_000_000
MAX_EVENTS_PER_HOUR: Final = 100_000_000
TENANT_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class TenantState(StrEnum):
    ACTIVE = "active"
    SUSPENDED = "suspended"
    """Its keys open nothing, nothing of it is sent, and its events wait."""
    DELETING = "deleting"
    """As suspended, and everything of it is being deleted; it cannot be set again until that is done."""


@dataclass(frozen=True, slots=True)
class TenantLimits:
    """How much a tenant may take of what all share; None: as much as it likes."""

    requests_per_second: float | None = None
    schedules: int | None = None
    messages_per_day: int | None = None
    delivery_slots: int | None = None
    events_per_hour: int | None = None

    @property
    def given(self) -> dict[str, float]:
        """Those that there are, by their names."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def request_rate(self, name: str) -> RequestRate | None:
        """The limit of the requests of the tenant of that name."""
        rate = self.requests_per_second
        return None if rate is None else RequestRate("tenant", name, rate)


NO_LIMITS: Final = TenantLimits()


@dataclass(frozen=True, slots=True)
class DeliverySlots:
    """How many attempts of a tenant may be in flight, in all workers together: a limit that flow control
    counts as it counts that of a destination."""

    tenant: str
    concurrency: int

    rate_per_second: ClassVar[None] = None
    burst: ClassVar[int] = 1
    breaker: ClassVar[None] = None
    timeout_seconds: ClassVar[None] = None
    paused: ClassVar[bool] = False
    version: ClassVar[int] = 0

    @property
    def id(self) -> str:
        """No destination's name has a slash."""
        return f"slots/{self.tenant}"

    @property
    def whose(self) -> str:
        return f"the tenant {self.tenant}"


@dataclass(frozen=True, slots=True)
class Tenant:
    """One tenant; its name is its id."""

    name: str
    created_at: datetime | None
    """None for `default` until somebody has set it."""
    state: TenantState = TenantState.ACTIVE
    note: str | None = None
    limits: TenantLimits = NO_LIMITS
    retention_days: int | None = None
    """For how long what has ended is kept; None: as long as the installation keeps it."""

    def check(self) -> None:
        """Raises InvalidField."""
        if not TENANT_NAME.fullmatch(self.name):
            raise InvalidField(
                "name", "the path's must be 1 to 63 lower-case letters, digits and hyphens, none at an end"
            )
        if self.state is TenantState.DELETING:
            raise InvalidField("state", f"is not set: DELETE /api/v1/tenants/{self.name} deletes it")
        if self.name == TENANT and self.state is not TenantState.ACTIVE:
            raise InvalidField("state", f"{TENANT} cannot be suspended: a kill switch stops what it sends")
