"""One thread that starts all commands of a worker, reads what they print, and ends them at their limits.

It is the parent of the guardians: they end when it does. It waits for all of them at once, by their pidfds
and pipes.
"""

import os
import queue
import selectors
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from scheduler_app.actions.command.limits import Limits
from scheduler_app.actions.command.orphans import Orphans
from scheduler_app.actions.command.running import Running
from scheduler_app.actions.command.validation import check_command
from scheduler_app.actions.command.verdict import broken, not_started, unusable, verdict_of
from scheduler_app.actions.executor import Verdict
from scheduler_app.clock import monotonic
from scheduler_app.domain.command_action import CommandAction
from scheduler_app.domain.command_patterns import AllowedCommands
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.event import Event
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

#: Limits are looked at so often at least.
LOOK_SECONDS = 0.5
#: Between two looks for processes that a killed guardian has left.
ORPHANS_SECONDS = 0.02


class Asked(NamedTuple):
    """An attempt that was asked for at the monotonic time `at`; a verdict is told under its round."""

    event: Event
    action: CommandAction
    timeout_seconds: float
    round: int
    at: float


class CommandLoop(threading.Thread):
    """Any thread may call `put`, `interrupt` and `stop`: they do not wait."""

    def __init__(
        self,
        allowed: AllowedCommands,
        limits: Limits,
        tell: Callable[[int, Verdict], None],
        secrets: Sequence[str] = (),
    ) -> None:
        """`secrets` are the worker's own, which no output may show."""
        super().__init__(name="commands", daemon=True)
        self._allowed = allowed
        self._limits = limits
        self._tell = tell
        self._secrets = secrets
        self._orphans = Orphans()
        self._held: list[tuple[int, Verdict]] = []
        """Of commands whose guardian was killed: told when nothing of them is left, because another attempt
        may follow."""
        self._asked: queue.SimpleQueue[Asked | None] = queue.SimpleQueue()
        self._stopping = False
        self._running: dict[Running, int] = {}
        self._selector = selectors.DefaultSelector()
        self._wakeup = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._selector.register(self._wakeup, selectors.EVENT_READ, self._take_up)

    def put(self, asked: Asked) -> None:
        self._asked.put(asked)
        os.eventfd_write(self._wakeup, 1)

    def interrupt(self) -> None:
        """Ends all that was put before."""
        self._asked.put(None)
        os.eventfd_write(self._wakeup, 1)

    def stop(self) -> None:
        """Interrupts, and ends the thread when nothing is left."""
        self._stopping = True
        self.interrupt()

    def run(self) -> None:
        try:
            while not self._stopping or self._running or self._held or not self._asked.empty():
                for key, _ in self._selector.select(self._pause()):
                    key.data()
                at = monotonic()
                for running in [each for each in self._running if each.limit_at <= at]:
                    running.enforce(at)
                if self._held and self._orphans.killed({each.guardian.pid for each in self._running}):
                    for number, verdict in self._held:
                        self._tell(number, verdict)
                    self._held.clear()
        finally:
            self._orphans.close()
            self._selector.close()
            os.close(self._wakeup)

    def _pause(self) -> float | None:
        if self._held:
            return ORPHANS_SECONDS
        if not self._running:
            return None
        first = min(running.limit_at for running in self._running)
        return min(LOOK_SECONDS, max(0.0, first - monotonic()))

    def _take_up(self) -> None:
        os.eventfd_read(self._wakeup)
        while not self._asked.empty():
            asked = self._asked.get()
            if asked is None:
                at = monotonic()
                for running in self._running:
                    running.terminate(at)
            else:
                self._start(asked)

    def _start(self, asked: Asked) -> None:
        """Starts an attempt, or says why not: whatever is wrong with one harms no other."""
        try:
            check_command(asked.action)
            if refusal := self._allowed.refusal(asked.action):
                self._tell(asked.round, unusable(asked, f"this worker refuses it: {refusal}"))
                return
            running = Running.start(
                asked.event, asked.action, asked.timeout_seconds, self._limits, at=asked.at
            )
        except InvalidField as error:
            self._tell(asked.round, unusable(asked, error.message))
        except OSError as error:  # no process, descriptor or memory is left for it now
            self._tell(asked.round, not_started(asked, error))
        except Exception as error:
            log.exception("command.broken", message="A command breaks our code", event_id=asked.event.id)
            self._tell(asked.round, broken(asked.event.id, error))
        else:
            self._running[running] = asked.round
            self._selector.register(running.pidfd, selectors.EVENT_READ, lambda: self._end(running))
            self._selector.register(running.printed, selectors.EVENT_READ, lambda: self._read(running))

    def _read(self, running: Running) -> None:
        if running in self._running and not running.read():
            self._selector.unregister(running.printed)

    def _end(self, running: Running) -> None:
        number = self._running.pop(running)
        self._selector.unregister(running.pidfd)
        if running.printed in self._selector.get_map():
            self._selector.unregister(running.printed)
        told: Mapping[str, Any] = {}
        try:
            told = running.finish()
            verdict = verdict_of(running, told, monotonic(), self._secrets)
        except Exception as error:
            log.exception("command.broken", message="A command breaks our code", event_id=running.event.id)
            verdict = broken(running.event.id, error)
        finally:
            running.close()
        if told:
            self._tell(number, verdict)
        else:
            self._orphans.begin()
            self._held.append((number, verdict))
