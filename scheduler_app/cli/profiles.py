"""Servers and their keys by name: a file of this user, which others must not be able to read."""

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import click

DEFAULT = "default"
MAX_BYTES = 256 * 1024
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Profile:
    """A server."""

    url: str
    api_key: str | None = field(default=None, repr=False)


def profiles_path() -> Path:
    """SCHEDULER_PROFILES, or `scheduler/profiles.toml` in the folder of this user's configuration."""
    if chosen := os.environ.get("SCHEDULER_PROFILES"):
        return Path(chosen)
    folder = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(folder) / "scheduler" / "profiles.toml"


def chosen_profile(name: str | None) -> Profile | None:
    """The profile of that name, or the one called `default`; None if none was chosen and there is none.
    Raises click.ClickException."""
    profiles = read_profiles()
    if name is None:
        return profiles.get(DEFAULT)
    if name not in profiles:
        known = ", ".join(profiles) or "none yet"
        raise click.UsageError(f"there is no profile {name!r}, but {known}: `scheduler profile set {name}`")
    return profiles[name]


def read_profiles() -> dict[str, Profile]:
    """All profiles by their names; none without a file. Raises click.ClickException."""
    path = profiles_path()
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            if found.st_uid != os.geteuid() or found.st_mode & 0o077:
                raise click.ClickException(
                    f"{path} holds keys, and others may read or write it: chmod 600 {path}"
                )
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise click.ClickException(f"{path} cannot be read: {error.strerror}") from None
    # Imported here: where there are no profiles, commands need not wait for it.
    import tomllib

    try:
        if len(raw) > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES // 1024} KiB")
        return {name: _profile(name, fields) for name, fields in tomllib.loads(raw.decode()).items()}
    except ValueError as error:
        raise click.ClickException(f"{path} is no file of profiles: {error}") from None


def write_profiles(profiles: dict[str, Profile]) -> None:
    """Replaces the file as a whole: a reader sees the old one or the new one."""
    path = profiles_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            for name, profile in profiles.items():
                file.write(f"[{name}]\nurl = {_quoted(profile.url)}\n")
                if profile.api_key:
                    file.write(f"api_key = {_quoted(profile.api_key)}\n")
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def check_name(name: str) -> None:
    """Raises click.UsageError."""
    if not _NAME.fullmatch(name):
        raise click.UsageError("a profile's name has 1 to 64 letters, digits, underscores and hyphens")


def _profile(name: str, fields: object) -> Profile:
    if not isinstance(fields, dict) or not isinstance(fields.get("url"), str):
        raise ValueError(f"[{name}] needs a url in quotes")
    if unknown := fields.keys() - {"url", "api_key"}:
        raise ValueError(f"[{name}] has {sorted(unknown)[0]!r}, and takes url and api_key")
    if not isinstance(fields.get("api_key", ""), str):
        raise ValueError(f"[{name}] needs its api_key in quotes")
    return Profile(fields["url"], fields.get("api_key") or None)


def _quoted(text: str) -> str:
    """A string of JSON, which is one of TOML unless it has surrogates in it."""
    return json.dumps(text, ensure_ascii=False)
