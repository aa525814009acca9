"""Deletions of everything that belongs to a tenant, or of the schedules with a tag and what hangs on
them. Beats carry them out; their counts are kept as their last line, and no content is."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from scheduler_app.domain.ids import WholeId

#: Nothing is removed sooner: processes of the API may still believe for some seconds that the tenant is
#: active, and requests that have begun write their last.
GRACE_SECONDS: Final = 10
#: A deletion ends no sooner after its beginning. What a request, a beat or a worker began before writes until
#: then: their leases are shorter.
LEAST_DURATION: Final = timedelta(seconds=60)
#: It ends when nothing was found for so long.
QUIET: Final = timedelta(seconds=15)
#: What runs is looked for so often: it is removed when its attempt has ended.
LOOK_AGAIN: Final = timedelta(seconds=2)


def deletion_key(subject: str, tag: str | None) -> str:
    return f"tenant/{subject}" if tag is None else f"tag/{subject}/{tag}"


@dataclass(frozen=True, slots=True)
class Deletion:
    """One that is at work, or was."""

    id: WholeId
    """The installation's, which is an id of `default`; of a tag, the tenant's."""
    subject: str
    """The tenant of which something is deleted."""
    started_at: datetime
    by: str = ""
    """The name of the key that asked for it."""
    next_due_at: datetime | None = None
    found_at: datetime | None = None
    """When something was found last."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """How many documents of each collection were removed."""
    ended_at: datetime | None = None
    tag: str | None = None
    """The tag of the schedules that are deleted; None: everything of the tenant is."""

    @property
    def key(self) -> str:
        """One of a key is at work at a time."""
        return deletion_key(self.subject, self.tag)

    @property
    def begins_at(self) -> datetime:
        """Of a tag at once: no process believes in what MongoDB does not say."""
        return self.started_at + timedelta(seconds=0 if self.tag is not None else GRACE_SECONDS)

    def may_end(self, now: datetime) -> bool:
        """Whether it is over if nothing is found now."""
        quiet_since = self.found_at or self.started_at
        return now >= self.started_at + LEAST_DURATION and now >= quiet_since + QUIET

    def looked(self, now: datetime, *, found: bool, at_once: bool = False) -> "Deletion":
        """After a look; `at_once` where there is more to remove."""
        return replace(
            self, found_at=now if found else self.found_at, next_due_at=now if at_once else now + LOOK_AGAIN
        )
