"""The executors of one worker, one for each kind of action that it serves."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scheduler_app.actions.executor import Executor, Verdict
from scheduler_app.actions.kind import ActionKind
from scheduler_app.config import Settings


class Executors:
    """Waits for all of them at once: in the `wait` of the first one, which the others wake."""

    def __init__(self, executors: Mapping[str, Executor]) -> None:
        """`executors` by the name of the kind; at least one. All but the first call the `wake` of this object
        when they have a verdict."""
        self._executors = dict(executors)
        self._first, *self._others = self._executors.values()

    @property
    def concurrency(self) -> Mapping[str, int]:
        """How many attempts with one isolation key may be in flight, by kind."""
        return {name: executor.concurrency for name, executor in self._executors.items()}

    def of(self, kind: str) -> Executor:
        """Raises KeyError for a kind that this worker does not serve."""
        return self._executors[kind]

    def serves(self, kind: str) -> bool:
        return kind in self._executors

    def wait(self, timeout: float) -> Sequence[Verdict]:
        """The verdicts of all; see `Executor.wait`."""
        verdicts = self._first.wait(timeout)
        if not self._others:  # mostly: the worker serves one kind
            return verdicts
        gathered = list(verdicts)
        for executor in self._others:
            gathered += executor.wait(0.0)
        return gathered

    def wake(self) -> None:
        self._first.wake()

    def interrupt(self) -> None:
        for executor in self._executors.values():
            executor.interrupt()

    def close(self) -> None:
        for executor in self._executors.values():
            executor.close()


def make_executors(settings: Settings, kinds: Iterable[ActionKind[Any]]) -> Executors:
    """Makes the executors of these kinds, in their order. Raises InvalidSetting."""
    made: list[Executors] = []

    def ready() -> None:
        if made:  # an executor may report before the others are made; the first `wait` finds its verdict
            made[0].wake()

    made.append(Executors({kind.name: kind.executor(settings, ready) for kind in kinds}))
    return made[0]
