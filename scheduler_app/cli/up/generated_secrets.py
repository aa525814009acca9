"""Secrets that `scheduler up` generates and keeps in its data folder, each in a file of its own."""

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
