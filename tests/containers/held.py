"""Holds one thread of a process, as a debugger does: the process lives, and what that thread does hangs."""

import ctypes
import os

_ATTACH, _DETACH = 16, 17
#: waitpid for threads that are not children, too (__WALL).
_ANY_THREAD = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def hold(thread: int) -> None:
    """Stops the thread with this id (a process's own id is its main thread's) and none of its neighbours.
    It goes on by `let_go`, and when this process ends. Raises OSError where there is no such thread."""
    _ptrace(_ATTACH, thread)
    os.waitpid(thread, _ANY_THREAD)


def let_go(thread: int) -> None:
    """Lets a thread go on that `hold` stopped; both have to be called by the same thread of this process."""
    _ptrace(_DETACH, thread)


def _ptrace(request: int, thread: int) -> None:
    if _libc.ptrace(request, thread, None, None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
