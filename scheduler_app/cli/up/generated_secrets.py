"""Secrets that a run makes for itself and keeps in its data folder, each in a file of its own."""

import secrets
from collections.abc import Callable
from pathlib import Path

from cryptography.fernet import Fernet

from scheduler_app.cli.errors import CannotStart
from scheduler_app.embedded import write_private

SECRETS_KEY = "secrets-key"
FLOWER_PASSWORD = "flower-password"  # noqa: S105
FLOWER_USER = "scheduler"


def secrets_keys(folder: Path, given: str) -> str:
    """The value of SECRETS_KEY for all parts: `given`, if any, and then the folder's own key.

    The folder's key stays behind one that is given later, so that what it sealed can still be opened. One
    that was given from the beginning stays alone. Raises `CannotStart` for a file that holds no key.
    """
    path = folder / SECRETS_KEY
    if given and not path.exists():
        return given
    key = _kept(path, lambda: Fernet.generate_key().decode())
    try:
        Fernet(key)
    except ValueError:
        raise CannotStart(
            f"{path} holds no Fernet key: put it back from a backup. Without it the secrets in MongoDB cannot"
            " be read; removing the file makes a new key, and those secrets must then be given again."
        ) from None
    return f"{given},{key}" if given else key


def flower_password(folder: Path) -> str:
    """Kept between runs, because browsers remember it. Raises `CannotStart` for an empty file."""
    path = folder / FLOWER_PASSWORD
    password = _kept(path, lambda: secrets.token_urlsafe(24))
    if not password:
        raise CannotStart(f"{path} is empty: remove it, and the next start makes a new password.")
    return password


def _kept(path: Path, make: Callable[[], str]) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except FileNotFoundError:
        made = make()
        write_private(path, f"{made}\n")
        return made
