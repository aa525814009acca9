"""The folder that keeps data between runs, private to its owner and used by one run at a time, and the
secrets that `scheduler up` generates and keeps there, each in a file of its own.
"""

import fcntl
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.fernet import Fernet

from scheduler_app.cli.click_extensions import CannotStart
from scheduler_app.embedded import write_private

#: What a run keeps there. The permissions of a folder that holds anything else are left alone.
_OWN_NAMES = frozenset(
    (
        *("lock", "mongod", "redis", "running.yaml", "secrets-key", "flower-password", "temporary"),
        *("mongod.log", "mongod.log.1", "redis.log", "redis.log.1"),
    )
)


@contextmanager
def data_directory(path: Path) -> Iterator[Path]:
    """Creates the folder if necessary, and locks it. Raises `CannotStart` when another run uses it, when it
    is not writable, or when its entries belong to another user."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        _make_private(path)
        lock = (path / "lock").open("w")
    except OSError as error:
        raise CannotStart(
            f"The data directory {path} cannot be written ({error.strerror}): choose another folder with"
            " --data-dir."
        ) from None
    with lock:
        try:
            # The kernel releases it when this process ends, however it ends.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotStart(
                f"Another `scheduler up` uses the data directory {path}: end it, or choose another"
                " folder with --data-dir."
            ) from None
        yield path


def temporary_directory(folder: Path) -> Path:
    """Returns an empty folder for the temporary files of the services; removes what a killed run left."""
    path = folder / "temporary"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def _make_private(folder: Path) -> None:
    """Removes the permissions of other users from the entries of a run, and from the folder itself when it
    holds nothing else: a folder such as /var/lib or a home directory stays as it is."""
    entries = [Path(entry) for entry in os.scandir(folder)]
    own = [path for path in entries if path.name in _OWN_NAMES and path.exists()]
    # A killed run may have left a file that it was about to rename.
    if all(path.name in _OWN_NAMES or path.name.endswith(".new") for path in entries):
        own.append(folder)
    for path in own:
        found = path.stat()
        if os.geteuid() not in (0, found.st_uid):
            raise CannotStart(
                f"{path} belongs to another user, who could read or replace what is kept there: choose"
                " another folder with --data-dir."
            )
        if found.st_mode & 0o077:
            path.chmod(found.st_mode & 0o700)


SECRETS_KEY = "secrets-key"
FLOWER_PASSWORD = "flower-password"  # noqa: S105
FLOWER_USER = "scheduler"


def secrets_keys(folder: Path, given: str) -> str:
    """Returns the value of SECRETS_KEY for all services: `given`, if any, then the folder's own key.

    The folder's key follows a key that is given later, so that secrets sealed with it can still be opened. A
    key that was given from the first run on stays the only one. Raises `CannotStart` for a file that holds no
    key.
    """
    path = folder / SECRETS_KEY
    if given and not path.exists():
        return given
    key = _read_or_generate(path, lambda: Fernet.generate_key().decode())
    try:
        Fernet(key)
    except ValueError:
        raise CannotStart(
            f"{path} holds no Fernet key: put it back from a backup. Without it the secrets in MongoDB cannot"
            " be read; removing the file makes a new key, and those secrets must then be given again."
        ) from None
    return f"{given},{key}" if given else key


def flower_password(folder: Path) -> str:
    """Returns the password, which stays the same between runs: browsers remember it. Raises `CannotStart` for
    an empty file."""
    path = folder / FLOWER_PASSWORD
    password = _read_or_generate(path, lambda: secrets.token_urlsafe(24))
    if not password:
        raise CannotStart(f"{path} is empty: remove it, and the next start makes a new password.")
    return password


def _read_or_generate(path: Path, generate: Callable[[], str]) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except FileNotFoundError:
        generated = generate()
        write_private(path, f"{generated}\n")
        return generated
