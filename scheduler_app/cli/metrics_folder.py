"""The folder in which the API's processes count together, and which none of them may leave behind."""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "scheduler-metrics-"
_LOCK = "lock"


def make() -> Path:
    """A new folder, held until the last process of this API has ended; removes those that nobody holds any
    more, which an API leaves that was killed."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        _remove_if_left(left)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    # Held before it has its name: another API that starts now must not find it free.
    unnamed = folder / "unnamed"
    lock = os.open(unnamed, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unnamed.rename(folder / _LOCK)
    # Also over the exec by which gunicorn upgrades itself (USR2): the new master counts in the same folder.
    os.set_inheritable(lock, True)
    return folder


def remove(folder: Path) -> None:
    """Takes away a folder that `make` has made; one that an operator has set is theirs."""
    if folder.name.startswith(_PREFIX):
        shutil.rmtree(folder, ignore_errors=True)


def _remove_if_left(folder: Path) -> None:
    try:
        if folder.lstat().st_uid != os.geteuid():
            return
        lock = os.open(folder / _LOCK, os.O_RDWR)
    except OSError:
        return  # it is being made or removed at this moment
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove(folder)
    except BlockingIOError:
        return
    finally:
        os.close(lock)
