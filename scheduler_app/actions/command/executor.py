"""Executes commands: one thread starts all commands of a worker, reads what they print, ends them at their
limits, and says what that means for their events.

It is the parent of the guardians: they end when it does. It waits for all of them at once, by their pidfds
and pipes. Processes of commands whose guardian was killed are given to the worker by the kernel, and it kills
them.
"""

import ctypes
import errno
import os
import queue
import selectors
import signal
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from scheduler_app.actions.command.running import Limits, Running
from scheduler_app.actions.command.validation import check_command
from scheduler_app.actions.kind import Outcome, Verdict
from scheduler_app.clock import monotonic
from scheduler_app.domain.command_action import AllowedCommands, CommandAction
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.event import Event
from scheduler_app.domain.masking import one_line
from scheduler_app.domain.schedule import Deliverable
from scheduler_app.telemetry import get_logger

PR_SET_CHILD_SUBREAPER = 36
#: After how long processes are left that cannot be killed (they hang in the kernel).
LAST_SECONDS = 5.0


class Orphans:
    """Ends what a killed guardian has left. A guardian has a session of its own, and what its command starts
    cannot join the worker's: a process that shares the worker's session, or was there before, is not from a
    command."""

    def __init__(self) -> None:
        """Makes this process the one that such processes are given to."""
        _adopt(1)
        self._own = frozenset(_children())
        self._until = 0.0

    def close(self) -> None:
        """Leaves later ones to the system."""
        _adopt(0)

    def begin(self) -> None:
        """A guardian has been killed."""
        self._until = monotonic() + LAST_SECONDS

    def killed(self, guardians: Collection[int]) -> bool:
        """Kills all that there are, but for these guardians; to be called until it returns True: what dies
        may leave others. It also does when its time is over."""
        session = os.getsid(0)
        left = False
        for pid, (its_session, state) in _children().items():
            if pid in self._own or pid in guardians or its_session == session:
                continue
            left = True
            if state != b"Z":
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        return not left or monotonic() >= self._until


def _adopt(value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def _children() -> dict[int, tuple[int, bytes]]:
    """The sessions and states of the children of this process, by /proc."""
    own = os.getpid()
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    stat = file.read()
            except OSError:
                continue
            state, parent, _, session = stat[stat.rindex(b")") + 2 :].split()[:4]
            if int(parent) == own:
                found[int(name)] = (int(session), state)
    return found


#: Why a command may start later that cannot be started now.
NO_ROOM = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
SNIPPET_CHARACTERS = 1024
#: What the kernel ends a process by at a limit, and the setting of that limit.
_BY_LIMIT = {int(signal.SIGXFSZ): "COMMAND_FILE_MIB", int(signal.SIGXCPU): "COMMAND_CPU_SECONDS"}


def verdict_of(
    running: Running, told: Mapping[str, Any], at: float, own_secrets: Sequence[str] = ()
) -> Verdict:
    """Judges a command that has ended at the monotonic time `at`; `told` is its guardian's report. What it
    printed of its own secret variables and of `own_secrets`, the worker's, is masked."""
    action, event_id = running.action, running.event.id
    text = running.output.text([*own_secrets, *(value for _, value in action.env)])
    snippet = one_line(text[:SNIPPET_CHARACTERS])
    status, error, duration_ms = _status_of(told), _error_of(running, told), (at - running.started_at) * 1000

    def ended(outcome: Outcome, reason: str = "") -> Verdict:
        return Verdict(event_id, outcome, status, error, snippet, duration_ms, reason, output=text or None)

    if error is None and status == 0:
        return ended(Outcome.SUCCESS)
    reason = error or f"exit status {status}"
    if "error" in told and not running.timed_out and told.get("errno") not in NO_ROOM:
        return ended(Outcome.PERMANENT, reason)
    retried = action.retry_exit_codes is None or status is None or status in action.retry_exit_codes
    return ended(Outcome.RETRY if retried else Outcome.PERMANENT, reason)


def _status_of(told: Mapping[str, Any]) -> int | None:
    """The exit status; None for a command that a signal ended, or that did not begin."""
    status = told.get("status")
    return os.WEXITSTATUS(status) if isinstance(status, int) and os.WIFEXITED(status) else None


def _error_of(running: Running, told: Mapping[str, Any]) -> str | None:
    """Why the exit status does not say it all."""
    if running.timed_out:
        return f"the command took longer than {running.timeout_seconds:g} s and was ended"
    if "error" in told:
        return f"the command could not be started: {told['error']}"
    status = told.get("status")
    if not isinstance(status, int):
        return "the command's guardian was killed"
    if not os.WIFSIGNALED(status):
        return None
    number = os.WTERMSIG(status)
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    limit = f": it reached the limit {_BY_LIMIT[number]}" if number in _BY_LIMIT else ""
    return f"the command was ended by {name}{limit}"


log = get_logger(__name__)

#: Limits are looked at so often at least.
LOOK_SECONDS = 0.5
#: Between two looks for processes that a killed guardian has left.
ORPHANS_SECONDS = 0.02


class CommandRequest(NamedTuple):
    """An attempt that was asked for at the monotonic time `at`; a verdict is told under its round."""

    event: Event
    action: CommandAction
    timeout_seconds: float
    round: int
    at: float

    def not_run(self, reason: str, outcome: Outcome) -> Verdict:
        duration_ms = (monotonic() - self.at) * 1000
        return Verdict.of_error(self.event.id, reason, outcome=outcome, duration_ms=duration_ms)


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
        self._asked: queue.SimpleQueue[CommandRequest | None] = queue.SimpleQueue()
        self._stopping = False
        self._running: dict[Running, int] = {}
        self._selector = selectors.DefaultSelector()
        self._wakeup = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._selector.register(self._wakeup, selectors.EVENT_READ, self._take_up)

    def put(self, asked: CommandRequest) -> None:
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

    def _start(self, asked: CommandRequest) -> None:
        """Starts an attempt, or says why not: whatever is wrong with one harms no other."""
        try:
            check_command(asked.action)
            if refusal := self._allowed.refusal(asked.action):
                raise InvalidField("action", f"this worker refuses it: {refusal}")
            running = Running.start(
                asked.event, asked.action, asked.timeout_seconds, self._limits, at=asked.at
            )
        except InvalidField as error:
            self._tell(asked.round, asked.not_run(error.message, Outcome.PERMANENT))
        except OSError as error:  # no process, descriptor or memory is left for it now
            reason = f"the command could not be started: {error.strerror}"
            self._tell(asked.round, asked.not_run(reason, Outcome.RETRY))
        except Exception as error:
            log.exception("command.broken", message="A command breaks our code", event_id=asked.event.id)
            self._tell(asked.round, Verdict.of_error(asked.event.id, error))
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
            verdict = Verdict.of_error(running.event.id, error)
        finally:
            running.close()
        if told:
            self._tell(number, verdict)
        else:
            self._orphans.begin()
            self._held.append((number, verdict))


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
        self._loop.put(CommandRequest(event, action, deliverable.timeout_seconds, self._round, monotonic()))

    def wait(self, timeout: float) -> Sequence[Verdict]:
        found: list[Verdict] = []
        until = monotonic() + timeout
        while True:
            left = 0.0 if found else until - monotonic()
            try:
                item = self._verdicts.get(timeout=left) if left > 0 else self._verdicts.get_nowait()
            except queue.Empty:
                return found
            if item is None:
                until = 0.0
            elif item[0] == self._round:
                found.append(item[1])

    def wake(self) -> None:
        self._verdicts.put(None)

    def interrupt(self) -> None:
        self._round += 1
        self._loop.interrupt()

    def close(self) -> None:
        self._round += 1
        self._loop.stop()

    def _tell(self, number: int, verdict: Verdict) -> None:
        self._verdicts.put((number, verdict))
        self._ready()
