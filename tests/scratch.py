"""A folder for all that a test process puts into the temporary folder, and the end of all that it starts.

Fixtures clean up after themselves, but not in a process that is killed. So a watcher is started beside it:
a process that waits for the end of a pipe, which comes however the test process ends. Then it kills whatever
was started with the folder's name in its environment, and removes the folder.
"""

import atexit
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

MARK = "TESTS_SCRATCH"
_PR_SET_PDEATHSIG = 1
_PATIENCE_SECONDS = 20.0
_IN_MEMORY = Path("/dev/shm")
_ENOUGH_BYTES = 4 * 2**30


def enter(*, in_memory: bool = True) -> None:
    """From now on the temporary folder of this process, and of those that it starts, is one of its own.

    It is kept in memory where there is room, unless `in_memory` is false: what is measured is on a disk.
    """
    # pytest's own folders of the last runs stay where they are, to be looked at.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    folder = tempfile.mkdtemp(prefix="scheduler-tests-", dir=_memory() if in_memory else None)
    os.environ |= {"TMPDIR": folder, MARK: folder}
    tempfile.tempdir = folder
    # In a session of its own: Ctrl-C is for the tests.
    watcher = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, folder], stdin=subprocess.PIPE, start_new_session=True
    )
    assert watcher.stdin is not None
    atexit.register(watcher.wait, _PATIENCE_SECONDS)
    atexit.register(watcher.stdin.close)


def _memory() -> str | None:
    """A folder that is kept in memory, if there is room; None, the usual one, where there is none.

    A test makes dozens of collections and indexes, and each is a file that mongod writes out before it
    answers: on a disk that takes three times as long, and it is most of what a short test waits for.
    """
    if not _IN_MEMORY.is_dir() or shutil.disk_usage(_IN_MEMORY).free < _ENOUGH_BYTES:
        return None
    return str(_IN_MEMORY)


def end_with_parent() -> None:
    """Lets the kernel kill this process when the one that distributes the tests ends in any way."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _watch(folder: str) -> None:
    sys.stdin.buffer.read()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        for pid in _started_with(folder):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)
        if not Path(folder).exists() and not _started_with(folder):
            return
        time.sleep(0.05)


def _started_with(folder: str) -> list[int]:
    """The living processes whose environment names the folder, but for this one."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            named = f"{MARK}={folder}".encode() in (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended, or is another user's
        if named and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


if __name__ == "__main__":
    _watch(sys.argv[1])
