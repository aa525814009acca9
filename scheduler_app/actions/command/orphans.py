"""Processes of commands whose guardian was killed: the kernel gives them to the worker, which kills them."""

import ctypes
import os
import signal
from collections.abc import Collection
from contextlib import suppress

from scheduler_app.clock import monotonic

PR_SET_CHILD_SUBREAPER = 36
#: Processes that cannot be killed (they hang in the kernel) are left after so long.
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
