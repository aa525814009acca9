"""A calendar feed: whoever has its token may read the calendar of a tenant's schedules, and nothing else."""

from dataclasses import dataclass, field
from datetime import datetime

from scheduler_app.domain.ids import tenant_of
from scheduler_app.domain.url_token import is_token_of


@dataclass(frozen=True, slots=True)
class CalendarFeed:
    """One feed. Of its token's secret only the SHA-256 is kept."""

    id: str
    name: str
    secret_sha256: str = field(repr=False)
    created_at: datetime
    tag: str | None = None
    """Only schedules with this tag are shown; None: all of them."""

    @property
    def tenant(self) -> str:
        """Whose it is; its id says so."""
        return tenant_of(self.id)

    def opened_by(self, token: str) -> bool:
        """Whether that is its token."""
        return is_token_of(token, self.secret_sha256)
