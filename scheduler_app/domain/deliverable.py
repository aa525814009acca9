"""What an attempt has to know, whether a schedule or a message asks for it."""

from typing import Protocol

from scheduler_app.domain.action import Action
from scheduler_app.domain.lateness import Lateness
from scheduler_app.domain.retry import Codes, RetryPolicy
from scheduler_app.domain.signing import Signing


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
