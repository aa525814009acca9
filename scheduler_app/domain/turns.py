"""Sharing: what several owners want is served in turn, and not first come, first served."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

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
