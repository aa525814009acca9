"""A calendar feed: whoever has its token may read the calendar of a tenant's schedules, and nothing else."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from datetime import datetime

from scheduler_app.domain.ids import SEPARATOR, tenant_of

#: In an id no dot is allowed, so that a token is split at its only one.
_SEPARATOR = "."


@dataclass(frozen=True, slots=True)
class CalendarFeed:
    """One feed. Its token is `<id>.<secret>`; of the secret only the SHA-256 is kept."""

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
        secret = token.rpartition(_SEPARATOR)[2]
        return hmac.compare_digest(_digest(secret), self.secret_sha256)


def new_token(feed_id: str) -> tuple[str, str]:
    """A fresh token of 256 random bits for a feed, and the SHA-256 to keep of it."""
    secret = secrets.token_urlsafe(32)
    shown = feed_id.replace(SEPARATOR, _SEPARATOR)
    return f"{shown}{_SEPARATOR}{secret}", _digest(secret)


def feed_of(token: str) -> str:
    """The id of the feed that a token names."""
    return token.rpartition(_SEPARATOR)[0].replace(_SEPARATOR, SEPARATOR, 1)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
