"""What the domain knows of an action: its kind, which actions share a receiver, and which workers take it.

Where no destination is named, the origin is the unit of isolation: scheme, host and port of a receiver. A
worker serves the queues that it was started with (`-Q`). Lanes say which messages of a queue are taken first,
and `in_turn` serves several owners in turn.
"""

import re
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from datetime import timedelta
from enum import StrEnum
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address
from typing import Final, NamedTuple, Protocol, Self, TypeVar

from scheduler_app.domain.errors import InvalidField


class Action(Protocol):
    """What an occurrence does. Each kind has a frozen value of its own, whose repr shows no secret."""

    @property
    def kind(self) -> str:
        """The kind's name: `action.type` of a stored schedule, and a key of `actions.registry.KINDS`."""
        ...

    @property
    def isolation_key(self) -> str:
        """What an attempt may have to wait for, at most 300 characters: the origin of an HTTP receiver.

        Attempts with the same key share limits and take turns. Attempts with different keys never wait for
        each other. It is shown in metrics and logs, so it must not contain a secret.
        """
        ...

    @property
    def destination(self) -> str | None:
        """The id of the destination that it names, with its tenant; None if it names none."""
        ...

    def unmasked(self, old: "Action | None") -> Self:
        """Returns the action with the values of `old`, the schedule's, where this one has masks for them.
        Raises InvalidField where a mask stands for nothing."""
        ...

    @property
    def completion_problem(self) -> str | None:
        """Why a schedule with this action cannot have `completion` `callback`; None if it can."""
        ...


#: The origin of what has no usable URL. All such share it, and what an origin is entitled to.
UNKNOWN_ORIGIN = "unknown"
MAX_ORIGIN = 300
"""Characters; a host name has at most 253."""

_DEFAULT_PORTS = {"http": 80, "https": 443}
# The longest authority that is an origin of MAX_ORIGIN characters: `https://` before it, `:65535` behind it.
_BEGINNING = re.compile(r"(https?://[^/?#]{1,286})(?:[/?#]|\Z)", re.IGNORECASE)
_PARTS = re.compile(
    r"(?P<scheme>https?)://(?:\[(?P<ipv6>[0-9a-f:.]+)\]|(?P<host>[a-z0-9._-]+))(?::(?P<port>[0-9]{0,5}))?"
)


def origin_of(url: str) -> str:
    """`https://example.com:443` of `HTTPS://Example.com/hook?a=1`: lower case, with the port, at most
    MAX_ORIGIN characters.

    It never raises: anything but an http or https URL with a host has UNKNOWN_ORIGIN, even what is not text
    (a damaged document).
    """
    beginning = _BEGINNING.match(url) if isinstance(url, str) else None
    return _origin_of_beginning(beginning[1]) if beginning else UNKNOWN_ORIGIN


# By scheme and authority alone: queries that differ by the event would fill the cache.
@lru_cache(maxsize=4096)
def _origin_of_beginning(beginning: str) -> str:
    parts = _PARTS.fullmatch(beginning.lower())
    if parts is None:
        return UNKNOWN_ORIGIN
    scheme, port = parts["scheme"], int(parts["port"] or _DEFAULT_PORTS[parts["scheme"]])
    if not 1 <= port <= 65535:
        return UNKNOWN_ORIGIN
    if parts["ipv6"] is None:
        # The dot at the end is DNS's root: the same host with and without it.
        host = parts["host"].rstrip(".")
        return f"{scheme}://{host}:{port}" if host else UNKNOWN_ORIGIN
    try:
        return f"{scheme}://[{IPv6Address(parts['ipv6']).compressed}]:{port}"
    except AddressValueError:
        return UNKNOWN_ORIGIN


#: The queue of whatever names none.
CALLBACKS: Final = "callbacks"
#: The queue of commands, and of nothing else: its workers alone may run them.
COMMANDS: Final = "commands"
MAX_QUEUE = 64
NAME = re.compile(rf"[a-zA-Z0-9-]{{1,{MAX_QUEUE}}}\Z")
#: Names that have a meaning in the broker already: tasks of a user's own, Celery's default, and what kombu
#: keeps in Redis of messages that are held.
TAKEN = frozenset({"tasks", "celery", "unacked"})


def is_queue(name: object) -> bool:
    """Whether events may be in a queue of that name."""
    return isinstance(name, str) and NAME.match(name) is not None and name not in TAKEN


def check_queue(name: str) -> None:
    """Raises InvalidField("queue") for a name that no queue may have."""
    if not NAME.match(name):
        raise InvalidField("queue", f"must be 1 to {MAX_QUEUE} letters, digits and hyphens")
    if name in TAKEN:
        raise InvalidField("queue", f"{name} is a name that the broker uses already; take another")


class Lane(StrEnum):
    """No message is taken while one waits in a lane before its own, in the order of these lines. That starves
    nobody for long, because each lane is kept short: a backlog waits in MongoDB, where it is shared out and
    can still be cancelled."""

    URGENT = "urgent"
    """What a person has just asked for."""
    FRESH = "fresh"
    """What falls due now."""
    LATE = "late"
    """What was due before, and what may be what its workers died of."""


#: What is overdue for longer is late.
FRESH_FOR = timedelta(seconds=10)


class QueueLengths(NamedTuple):
    """Messages in the broker that no worker has fetched, by lane."""

    urgent: int = 0
    fresh: int = 0
    late: int = 0

    @property
    def total(self) -> int:
        return sum(self)


Item = TypeVar("Item")


def in_turn(items: Iterable[Item], *owners: Callable[[Item], Hashable]) -> Iterator[Item]:
    """One item of each owner, then the next one of each, for as long as any has some.

    The first of `owners` says whose an item is; within one owner's, the others share in the same way. What
    is left to no further owner keeps its order, and the owner of the first item begins.
    """
    if not owners:
        yield from items
        return
    queues: dict[Hashable, list[Item]] = {}
    for item in items:
        queues.setdefault(owners[0](item), []).append(item)
    turns = deque(in_turn(queue, *owners[1:]) for queue in queues.values())
    while turns:
        turn = turns.popleft()
        for item in turn:
            yield item
            turns.append(turn)
            break
