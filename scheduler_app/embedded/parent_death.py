"""A command that ends when the process that started it ends, however that one dies.

Linux sends the signal (`PR_SET_PDEATHSIG`) when the parent *thread* exits, so a tethered process must be
started from the main thread. It is asked for between fork and exec by a small launcher, this file, and not
in `preexec_fn`: that would run Python in a fork of a process with threads (pymongo has some), and may hang.
On other systems the command is run as it is.
"""

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1


def tethered(command: Sequence[str]) -> list[str]:
    """`command` as it has to be started so that it is killed when this process dies.

    Raises RuntimeError outside the main thread: the command would die with the thread.
    """
    if not sys.platform.startswith("linux"):
        return list(command)
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError(
            "a tethered process must be started from the main thread, or it dies with its thread"
        )
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def _launch(parent: int, command: list[str]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    # The parent may have died before the call above: then nobody would ever send the signal.
    if os.getppid() != parent:
        sys.exit(1)
    try:
        os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    _launch(int(sys.argv[1]), sys.argv[2:])
