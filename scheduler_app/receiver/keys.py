"""What remembers which keys were seen."""

from enum import Enum
from typing import Protocol

#: Longer than retries take, and than most outages: after that a key may come back as a new one.
DEFAULT_TTL_SECONDS = 3 * 86_400.0
#: Longer than any handler should take: after that, a handler that has not ended is taken for dead.
DEFAULT_CLAIM_SECONDS = 900.0


class Seen(Enum):
    """What is known about a key that is claimed."""

    #: It is claimed now, by the caller.
    NEW = "new"
    #: Another delivery has claimed it and is not finished.
    RUNNING = "running"
    #: Its work is done.
    DONE = "done"
    #: There is no room to remember it.
    NO_ROOM = "no room"


class Keys(Protocol):
    """Several threads call it at once. The receiver raises whatever a method raises."""

    def claim(self, key: str, token: str) -> Seen:
        """Claims `key` unless it is known, in one step. `token` is a new one for each call."""

    def finish(self, key: str, token: str) -> None:
        """The work of `key`, which was claimed with `token`, is done."""

    def forget(self, key: str, token: str) -> None:
        """The work of `key` has failed: the next delivery may claim it. Does nothing where it is no longer
        claimed with `token`."""
