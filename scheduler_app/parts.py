"""A page worked on in parts at once: mongod writes one while the next is prepared."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

Done = TypeVar("Done")


class Parts:
    """Threads for the parts of pages, `at_once` of them; they start when a page is worth it. Thread-safe."""

    def __init__(self, at_once: int, *, worth: int, name: str) -> None:
        """`worth`: pages of fewer items are one part, done in the caller's thread."""
        self._at_once = at_once
        self._worth = worth
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix=name)

    def of(self, ids: Sequence[str]) -> list[Sequence[str]]:
        """The parts of a page, in its order; none of an empty one."""
        size = -(-len(ids) // self._at_once) if len(ids) >= self._worth else len(ids)
        return [ids[first : first + size] for first in range(0, len(ids), size or 1)]

    def each(self, work: Callable[[Sequence[str]], Done], parts: Sequence[Sequence[str]]) -> list[Done]:
        """What `work` made of each part, in their order.

        It returns when all are done, and raises what the first one of them raised.
        """
        if len(parts) <= 1:
            return [work(part) for part in parts]
        futures = [self._pool.submit(work, part) for part in parts]
        wait(futures)
        return [future.result() for future in futures]
