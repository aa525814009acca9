"""A page worked on in parts at once: mongod writes one while the next is prepared."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from threading import Thread
from typing import TypeVar

Item = TypeVar("Item")
Done = TypeVar("Done")


class Parallel:
    """Threads for the parts of pages, `at_once` of them for each page that is worth it. Thread-safe."""

    def __init__(self, at_once: int, *, worth: int, name: str) -> None:
        """`worth`: pages of fewer items are one part, done in the caller's thread."""
        self._at_once = at_once
        self._worth = worth
        self._name = name

    def of(self, items: Sequence[Item]) -> list[Sequence[Item]]:
        """The parts of a page, in its order; none of an empty one."""
        size = -(-len(items) // self._at_once) if len(items) >= self._worth else len(items)
        return [items[first : first + size] for first in range(0, len(items), size or 1)]

    def each(self, work: Callable[[Sequence[Item]], Done], parts: Sequence[Sequence[Item]]) -> list[Done]:
        """What `work` made of each part, in their order.

        It returns when all are done, and raises what the first one of them raised.
        """
        if len(parts) <= 1:
            return [work(part) for part in parts]
        futures = [self._begin(work, part) for part in parts]
        wait(futures)
        return [future.result() for future in futures]

    def _begin(self, work: Callable[[Sequence[Item]], Done], part: Sequence[Item]) -> "Future[Done]":
        future: Future[Done] = Future()

        def run() -> None:
            try:
                future.set_result(work(part))
            except BaseException as error:  # the caller's, whatever it is
                future.set_exception(error)

        # Not a pool's: those are waited for when the process ends, and would hold up a beat that was told to
        # for as long as MongoDB keeps it waiting.
        Thread(target=run, name=self._name, daemon=True).start()
        return future
