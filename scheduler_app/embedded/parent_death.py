"""Commands that are killed when the process that started them ends, however that happens.

Linux sends the signal (`PR_SET_PDEATHSIG`) when the parent *thread* exits, so such a process must be started
from the main thread. A small launcher, this file, requests the signal between fork and exec. `preexec_fn`
would run Python in a fork of a process with threads (pymongo has some), which may hang. On other systems the
command is run as it is.
"""

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1


def with_parent_death_signal(command: Sequence[str]) -> list[str]:
    """Returns the command line to start instead of `command`, so that it is killed when this process dies.

    Raises RuntimeError outside the main thread: the command would die with the thread.
    """
    if not sys.platform.startswith("linux"):
        return list(command)
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError(
            "the process must be started from the main thread, or it would be killed when its thread ends"
        )
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def _launch(parent: int, command: list[str]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    # The parent may have died before the call above: then the signal would never come.
    if os.getppid() != parent:
        sys.exit(1)
    try:
        os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    _launch(int(sys.argv[1]), sys.argv[2:])
