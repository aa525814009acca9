"""What an attempt has to know, whether a schedule or a message asks for it; among it the secrets that sign
callbacks, and their rotation.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from scheduler_app.domain.action import Action
from scheduler_app.domain.errors import Conflict
from scheduler_app.domain.lateness import Lateness
from scheduler_app.domain.retry import Codes, RetryPolicy

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


class Deliverable(Protocol):
    """A schedule or a message: what is done, and what its outcome means."""

    @property
    def action(self) -> Action: ...

    @property
    def retry(self) -> RetryPolicy:
        """When a failed attempt is tried again."""
        ...

    @property
    def lateness(self) -> Lateness:
        """When it is too late for it."""
        ...

    @property
    def timeout_seconds(self) -> float: ...

    @property
    def success(self) -> Codes:
        """The statuses that complete the event."""
        ...

    @property
    def signing(self) -> Signing | None: ...

    @property
    def on_success(self) -> str | None:
        """The name of the destination that is told when an event was completed."""
        ...

    @property
    def on_failure(self) -> str | None:
        """The name of the destination that is told when an event ended in error."""
        ...

    @property
    def hops(self) -> int:
        """Callbacks of ours, one after another, that led to the request that made it."""
        ...
