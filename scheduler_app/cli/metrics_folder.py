"""The folder in which the API's processes keep their shared counters; it must not outlive them."""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "scheduler-metrics-"
_LOCK = "lock"


def make() -> Path:
    """Creates a folder, locked until the last process of this API has ended. Removes unlocked folders, which
    an API that was killed has left."""
    for leftover in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        _remove_if_unlocked(leftover)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    # Locked before it gets its name: another API that starts now must not find it unlocked.
    unnamed = folder / "unnamed"
    lock = os.open(unnamed, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unnamed.rename(folder / _LOCK)
    # Inherited over the exec by which gunicorn upgrades itself (USR2): the new master uses the same folder.
    os.set_inheritable(lock, True)
    return folder


def remove(folder: Path) -> None:
    """Removes a folder that `make` has created, and no other: an operator may have set one of their own."""
    if folder.name.startswith(_PREFIX):
        shutil.rmtree(folder, ignore_errors=True)


def _remove_if_unlocked(folder: Path) -> None:
    try:
        if folder.lstat().st_uid != os.geteuid():
            return
        lock = os.open(folder / _LOCK, os.O_RDWR)
    except OSError:
        return  # it is being created or removed at this moment
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove(folder)
    except BlockingIOError:
        return
    finally:
        os.close(lock)
