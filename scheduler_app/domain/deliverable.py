"""What schedules and messages share of how they are delivered: how long an attempt may take, and the secrets
that sign callbacks, with their rotation.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from scheduler_app.domain.errors import Conflict

DEFAULT_TIMEOUT_SECONDS = 10.0
DEFAULT_OVERLAP_SECONDS = 86_400
MAX_OVERLAP_SECONDS = 30 * 86_400
#: Each one still valid makes its own signature on every callback.
MAX_RETIRING = 4


@dataclass(frozen=True, slots=True)
class RetiringSecret:
    """A secret that was replaced and signs beside its successor until then."""

    secret: str = field(repr=False)
    until: datetime


@dataclass(frozen=True, slots=True)
class Signing:
    """The secret in force `since` then, and those it has replaced, newest first."""

    secret: str = field(repr=False)
    since: datetime
    retiring: tuple[RetiringSecret, ...] = ()

    def secrets(self, now: datetime) -> tuple[str, ...]:
        """What a callback that starts at `now` is signed with, the one in force first."""
        return (self.secret, *(old.secret for old in self.retiring if now < old.until))

    def rotated(self, secret: str, now: datetime, overlap: timedelta) -> "Signing":
        """With a new secret in force; the present one signs beside it for `overlap`. Raises Conflict where
        that is one more than there may be: none is dropped before its time."""
        replaced = (RetiringSecret(self.secret, now + overlap), *self.retiring)
        valid = tuple(old for old in replaced if now < old.until)
        if len(valid) > MAX_RETIRING:
            until = min(old.until for old in valid[1:])
            raise Conflict(
                f"{MAX_RETIRING} older secrets still sign beside the present one: wait for the first of them"
                f" to end, {until.isoformat(timespec='seconds')}, or end the present one at once with"
                " overlap_seconds: 0"
            )
        return Signing(secret, now, valid)

    def overlap_until(self, now: datetime) -> datetime | None:
        """Until when an older secret signs too; None when none does."""
        return max((old.until for old in self.retiring if now < old.until), default=None)
