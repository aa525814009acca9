"""Executes commands: the seam's side. A loop in a thread of its own runs them."""

import queue
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime

from scheduler_app.actions.command.limits import Limits
from scheduler_app.actions.command.loop import Asked, CommandLoop
from scheduler_app.actions.executor import Verdict
from scheduler_app.clock import monotonic
from scheduler_app.domain.command_action import CommandAction
from scheduler_app.domain.command_patterns import AllowedCommands
from scheduler_app.domain.deliverable import Deliverable
from scheduler_app.domain.event import Event


class CommandExecutor:
    """An `Executor` of programs."""

    def __init__(
        self,
        allowed: AllowedCommands,
        limits: Limits,
        *,
        concurrency: int,
        ready: Callable[[], None],
        secrets: Sequence[str] = (),
    ) -> None:
        """`concurrency`: processes of one program. `ready` is called when there is a verdict to collect.
        `secrets` are masked in outputs, as the values of a command's own variables are."""
        self.concurrency = concurrency
        self._ready = ready
        self._verdicts: queue.SimpleQueue[tuple[int, Verdict] | None] = queue.SimpleQueue()
        # Verdicts of attempts that were interrupted belong to an earlier round.
        self._round = 0
        self._loop = CommandLoop(allowed, limits, self._tell, secrets)
        self._loop.start()

    def start(self, event: Event, deliverable: Deliverable, now: datetime) -> None:
        action = deliverable.action
        if not isinstance(action, CommandAction):
            raise TypeError(f"an action of kind {action.kind} is no command")
        self._loop.put(Asked(event, action, deliverable.timeout_seconds, self._round, monotonic()))

    def wait(self, timeout: float) -> Sequence[Verdict]:
        found: list[Verdict] = []
        until = monotonic() + timeout
        while not found:
            left = until - monotonic()
            try:
                item = self._verdicts.get(timeout=left) if left > 0 else self._verdicts.get_nowait()
            except queue.Empty:
                return found
            if item is None:
                break
            self._take(item, found)
        with suppress(queue.Empty):
            while (item := self._verdicts.get_nowait()) is not None:
                self._take(item, found)
        return found

    def wake(self) -> None:
        self._verdicts.put(None)

    def interrupt(self) -> None:
        self._round += 1
        self._loop.interrupt()

    def close(self) -> None:
        self._round += 1
        self._loop.stop()

    def _take(self, item: tuple[int, Verdict], found: list[Verdict]) -> None:
        if item[0] == self._round:
            found.append(item[1])

    def _tell(self, number: int, verdict: Verdict) -> None:
        self._verdicts.put((number, verdict))
        self._ready()
