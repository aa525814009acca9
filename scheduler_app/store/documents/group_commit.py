"""Group commit: items that arrive while one write is under way are written together by the next one."""

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class GroupCommit(Generic[Item, Result]):
    """Combines calls of many threads, each with one item, into calls of `work` with all items that wait.
    `work` returns a result for each item, in their order.

    A write to MongoDB costs about the same for one document and for ten: most of it is the journal and the
    majority. A call never waits for a batch to fill: where no write is under way, it begins one at once.
    """

    def __init__(self, work: Callable[[Sequence[Item]], Sequence[Result]]) -> None:
        self._work = work
        self._waiting: list[_Call[Item, Result]] = []
        self._led = False
        self._lock = threading.Lock()

    def do(self, item: Item) -> Result:
        """The result for `item`; raises what the `work` raised that it was part of."""
        mine: _Call[Item, Result] = _Call(item)
        with self._lock:
            self._waiting.append(mine)
            waits, self._led = self._led, True
        if waits:
            mine.woken.wait()
        if not mine.ended:
            self._lead()
        if mine.error is not None:
            raise mine.error
        return mine.results[0]

    def _lead(self) -> None:
        """Does all that waits, the leader's own call included, and makes the next one in the queue lead."""
        with self._lock:
            calls, self._waiting = self._waiting, []
        try:
            for call, result in zip(calls, self._work([call.item for call in calls]), strict=True):
                call.results = (result,)
        except BaseException as error:  # whatever it is, the others must not wait for ever
            for call in calls:
                call.error = error
        with self._lock:
            following = self._waiting[0] if self._waiting else None
            self._led = following is not None
        for call in calls:
            call.ended = True
            call.woken.set()
        if following:
            following.woken.set()


class _Call(Generic[Item, Result]):
    __slots__ = ("ended", "error", "item", "results", "woken")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.results: tuple[Result, ...] = ()
        self.error: BaseException | None = None
        self.ended = False
        self.woken = threading.Event()
