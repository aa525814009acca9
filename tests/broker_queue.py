"""The queue as it lies in Redis: a list for each lane, under whatever prefix."""

from typing import Any

from scheduler_app.broker.task import QUEUE


def lists(client: Any) -> list[Any]:
    """The keys of the lanes in which a message waits, the first to be taken first."""
    return sorted(client.keys(f"*{QUEUE}*"))


def waiting(client: Any) -> int:
    """Messages that no worker has fetched."""
    return sum(int(client.llen(key)) for key in lists(client))
