"""`scheduler up` on a machine that others use too: what they can reach, read and see."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests
import yaml
from pymongo import MongoClient
from pymongo.errors import OperationFailure
from redis import Redis as RedisClient
from redis.exceptions import AuthenticationError

from tests.acceptance.ups import Ups
from tests.processes import Program

#: What a person puts in, and what nobody else may read.
_CANARY = "canary-of-a-callback"


@pytest.fixture
def two(ups: Ups) -> tuple[Program, Program]:
    """Two runs, started at the same moment."""
    return ups.runs()


@pytest.fixture
def folders(ups: Ups, two: tuple[Program, Program]) -> tuple[Path, Path]:
    """Where they keep their data; that of the first is of an older release, which left everything open."""
    assert ups.folders
    return ups.folders


@pytest.fixture
def folder(folders: tuple[Path, Path]) -> Path:
    return folders[0]


def _running(folder: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load((folder / "data" / "running.yaml").read_text())
    return found


def _flower(up: Program) -> str:
    return up.wait_for(r"^  Flower +(http://\S+)")[1]


@pytest.mark.timeout(240)
def test_each_of_two_runs_has_a_flower_of_its_own_that_wants_its_login(
    two: tuple[Program, Program], folders: tuple[Path, Path]
) -> None:
    addresses = [_flower(up) for up in two]
    assert len(set(addresses)) == 2
    for url, home in zip(addresses, folders, strict=True):
        password = (home / "data" / "flower-password").read_text().strip()
        assert requests.get(f"{url}/workers").status_code == 401
        wrong, right = ("scheduler", "wrong"), ("scheduler", password)
        assert requests.get(f"{url}/workers", auth=wrong).status_code == 401
        assert requests.get(f"{url}/workers", auth=right).status_code == 200
        # A name that a stranger has made to mean 127.0.0.1.
        for path in ("/workers", "/metrics", "/healthcheck"):
            headers = {"Host": "rebound.example.com:5555"}
            refused = requests.get(f"{url}{path}", auth=right, headers=headers)
            assert refused.status_code == 421, path


@pytest.mark.timeout(240)
def test_nobody_else_reaches_mongodb_or_redis_and_the_data_of_before_is_there(
    folders: tuple[Path, Path],
) -> None:
    for home in folders:
        found = _running(home)
        with MongoClient[dict[str, Any]](found["mongo"]["uri"]) as ours:
            assert ours.old.kept.count_documents({}) == (1 if home == folders[0] else 0)
            address = ours.address
        assert address is not None
        with (
            MongoClient[dict[str, Any]](*address, directConnection=True) as stranger,
            pytest.raises(OperationFailure, match="requires authentication"),
        ):
            stranger.old.kept.find_one()
        port = found["broker"]["url"].rpartition(":")[2].partition("/")[0]
        with RedisClient(port=int(port)) as unknown, pytest.raises(AuthenticationError):
            unknown.ping()


@pytest.mark.timeout(240)
def test_no_secret_is_in_a_command_line_a_log_or_a_file_that_others_can_read(
    two: tuple[Program, Program], folder: Path
) -> None:
    up, data = two[0], folder / "data"
    found = _running(folder)
    made = requests.post(
        f"http://127.0.0.1:{found['api']['port']}/api/schedules",
        json={
            "name": "sealed",
            "callback_url": "http://127.0.0.1:9/",
            "rrule": "FREQ=YEARLY",
            "headers": {"Authorization": f"Bearer {_CANARY}"},
        },
    )
    assert made.status_code == 201, made.text
    with MongoClient[dict[str, Any]](found["mongo"]["uri"]) as ours:
        stored = ours[found["mongo"]["database"]].schedules.find_one({"_id": made.json()["id"]})
    assert _CANARY not in str(stored), "SECRETS_KEY is the data folder's own"

    secrets = [
        found["mongo"]["uri"].partition("scheduler:")[2].partition("@")[0],
        found["broker"]["url"].removeprefix("redis://:").partition("@")[0],
        (data / "secrets-key").read_text().strip(),
        (data / "flower-password").read_text().strip(),
        _CANARY,
    ]

    assert all(len(secret) >= 16 for secret in secrets)
    said = up.output + "".join(path.read_text(errors="replace") for path in data.glob("*.log*"))
    shown = "\n".join(command_lines(up))
    assert "--keyFile" in shown
    for secret in secrets:
        assert secret not in shown
        assert secret not in said
    # What MongoDB keeps in its folder is closed by the folder, and comes and goes.
    kept = (path for path in (data, *data.rglob("*")) if "mongod" not in path.relative_to(data).parts[:-1])
    assert [path for path in kept if is_open_to_others(path)] == []


def command_lines(up: Program) -> Iterator[str]:
    for process in up.processes():
        with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
            yield " ".join(process.cmdline())


def is_open_to_others(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & 0o077)
    except FileNotFoundError:  # it was there when the folder was listed
        return False


@pytest.mark.timeout(240)
def test_the_parts_keep_their_temporary_files_in_the_data_folder(
    folder: Path,
) -> None:
    assert list((folder / "data" / "temporary").glob("scheduler-metrics-*"))
