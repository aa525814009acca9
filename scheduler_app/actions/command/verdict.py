"""From how a command ended to what that means for its event."""

import errno
import os
import signal
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scheduler_app.actions.command.running import Running
from scheduler_app.actions.executor import Outcome, Verdict
from scheduler_app.clock import monotonic
from scheduler_app.domain.text import one_line

if TYPE_CHECKING:
    from scheduler_app.actions.command.loop import Asked

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


def unusable(asked: "Asked", reason: str) -> Verdict:
    """A command that cannot, or must not, be run as it is."""
    return Verdict(asked.event.id, Outcome.PERMANENT, None, reason, "", _since(asked), reason)


def not_started(asked: "Asked", error: OSError) -> Verdict:
    """A command for which this host has no room now."""
    reason = f"the command could not be started: {error.strerror}"
    return Verdict(asked.event.id, Outcome.RETRY, None, reason, "", _since(asked), reason)


def broken(event_id: str, error: Exception) -> Verdict:
    """A command that our own code cannot deal with."""
    reason = f"{type(error).__name__}: {error}"
    return Verdict(event_id, Outcome.PERMANENT, None, reason, "", 0.0, reason)


def _since(asked: "Asked") -> float:
    return (monotonic() - asked.at) * 1000


def _status_of(told: Mapping[str, Any]) -> int | None:
    """The exit status; None for a command that a signal ended, or that did not begin."""
    status = told.get("status")
    return os.WEXITSTATUS(status) if isinstance(status, int) and os.WIFEXITED(status) else None


def _error_of(running: Running, told: Mapping[str, Any]) -> str | None:
    """Why there is no exit status that says it all."""
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
