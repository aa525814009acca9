"""The folder that keeps a run's data between runs, for its owner alone; one run at a time may use it."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scheduler_app.cli.errors import CannotStart

#: What a run keeps there. A folder that holds anything else is not ours to close.
_OURS = frozenset(
    (
        *("lock", "mongod", "redis", "running.yaml", "secrets-key", "flower-password", "temporary"),
        *("mongod.log", "mongod.log.1", "redis.log", "redis.log.1"),
    )
)


@contextmanager
def data_directory(path: Path) -> Iterator[Path]:
    """Makes the folder if need be and holds it. Raises `CannotStart` when it is in use or not writable, or
    when what it holds belongs to somebody else."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        _close_to_others(path)
        lock = (path / "lock").open("w")
    except OSError as error:
        raise CannotStart(
            f"The data directory {path} cannot be written ({error.strerror}): choose another folder with"
            " --data-dir."
        ) from None
    with lock:
        try:
            # The kernel gives it up when this process ends, however it ends.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotStart(
                f"Another `scheduler up` uses the data directory {path}: end it, or choose another"
                " folder with --data-dir."
            ) from None
        yield path


def temporary_directory(folder: Path) -> Path:
    """A folder for what the parts need for one run; removes what a killed run left there."""
    path = folder / "temporary"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def _close_to_others(folder: Path) -> None:
    """Takes every right of others away from our entries, and from the folder when it holds nothing else:
    one such as /var/lib or a home directory stays as it is."""
    entries = [Path(entry) for entry in os.scandir(folder)]
    ours = [path for path in entries if path.name in _OURS and path.exists()]
    # What a killed run was about to write is ours too.
    if all(path.name in _OURS or path.name.endswith(".new") for path in entries):
        ours.append(folder)
    for path in ours:
        found = path.stat()
        if os.geteuid() not in (0, found.st_uid):
            raise CannotStart(
                f"{path} belongs to another user, who could read or replace what is kept there: choose"
                " another folder with --data-dir."
            )
        if found.st_mode & 0o077:
            path.chmod(found.st_mode & 0o700)
