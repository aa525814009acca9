"""Queues: which workers an event is for, which messages of a queue are taken first (lanes), and how several
owners are served in turn.

A worker serves the queues that it was started with (`-Q`).
"""

import re
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from datetime import timedelta
from enum import StrEnum
from typing import Final, NamedTuple, TypeVar

from scheduler_app.domain.errors import InvalidField

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
