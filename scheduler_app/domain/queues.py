"""Queues: which workers an event is for. A worker serves those that it was started with (`-Q`)."""

import re
from typing import Final

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
