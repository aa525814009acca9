"""A silence: until when the causes that it is about are not told, and why."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from scheduler_app.domain.cause import Cause
from scheduler_app.domain.cause_match import CauseMatch
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.ids import WholeId, name_of, tenant_of

MAX_SILENCES: Final = 100
MAX_REASON: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """What begins to fail meanwhile is told after it, if it still fails then."""

    id: WholeId
    match: CauseMatch
    until: datetime
    reason: str
    created_at: datetime
    by: str = ""
    """The name of the key that set it."""

    @property
    def name(self) -> str:
        return name_of(self.id)

    @property
    def tenant(self) -> str:
        return tenant_of(self.id)

    def check(self, now: datetime) -> None:
        """Raises InvalidField where it is over."""
        if self.until <= now:
            raise InvalidField("until", "must be to come")

    def covers(self, cause: Cause, now: datetime) -> bool:
        return now < self.until and self.tenant == cause.tenant and self.match.covers(cause)
