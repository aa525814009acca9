"""The folder that keeps the embedded servers' data between runs; one run at a time may use it."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scheduler_app.cli.failure import CannotStart


@contextmanager
def data_directory(path: Path) -> Iterator[Path]:
    """Makes the folder if need be and holds it. Raises `CannotStart` when it is in use or not writable."""
    try:
        path.mkdir(parents=True, exist_ok=True)
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
