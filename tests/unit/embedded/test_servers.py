"""The embedded servers themselves: real ones, in temporary folders."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pymongo import MongoClient
from pymongo.errors import OperationFailure
from redis import Redis as RedisClient
from redis.exceptions import AuthenticationError

from scheduler_app.embedded import (
    DidNotStart,
    Mongod,
    Redis,
    free_port,
    is_free,
    server,
    with_parent_death_signal,
)
from tests.processes import wait_until


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    # pytest keeps its folders; mongod's journal alone is 300 MB.
    for file in tmp_path.rglob("*"):
        if file.is_file():
            file.unlink()


def _insert(server: Mongod, key: int) -> None:
    with MongoClient[dict[str, int]](server.uri) as client:
        client.test.kept.insert_one({"_id": key})


def _keys(server: Mongod) -> list[int]:
    with MongoClient[dict[str, int]](server.uri) as client:
        return sorted(document["_id"] for document in client.test.kept.find())


def test_mongod_keeps_its_data_over_a_stop_and_a_kill_though_its_port_changes(folder: Path) -> None:
    with Mongod(folder) as first:
        _insert(first, 1)
    second = Mongod(folder).start()
    _insert(second, 2)
    second.kill()
    with Mongod(folder) as third:
        assert len({first.port, second.port, third.port}) == 3
        assert _keys(third) == [1, 2]
        _insert(third, 3)


def test_the_folder_of_a_mongod_that_has_ended_is_a_backup(folder: Path) -> None:
    """As the manual has it copied."""
    with Mongod(folder / "data", password="a-password-of-twenty") as first:
        _insert(first, 1)
    shutil.copytree(folder / "data", folder / "copy")
    with Mongod(folder / "data", password="a-password-of-twenty") as first:
        _insert(first, 2)
    with Mongod(folder / "copy", password="another-password-of-it") as copy:
        assert _keys(copy) == [1]


def test_mongod_is_a_primary_that_can_do_transactions(mongo_uri: str, database_name: str) -> None:
    with MongoClient[dict[str, int]](mongo_uri) as client, client.start_session() as session:
        client[database_name].create_collection("rows")
        with session.start_transaction():
            client[database_name].rows.insert_one({"_id": 1}, session=session)
        assert client[database_name].rows.count_documents({}) == 1


def test_redis_keeps_its_messages_over_a_restart_and_never_evicts(folder: Path) -> None:
    with Redis(folder) as first, RedisClient(port=first.port) as client:
        client.lpush("celery", "message")
    with Redis(folder) as second, RedisClient(port=second.port) as client:
        assert client.lrange("celery", 0, -1) == [b"message"]
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("append*")["appendfsync"] == "everysec"


def test_a_taken_port_is_refused_and_the_server_that_has_it_is_not_mistaken_for_ours(
    folder: Path, redis_server: Redis, mongod_server: Mongod
) -> None:
    with pytest.raises(DidNotStart, match=r"(?i)address already in use"):
        Redis(folder, redis_server.port).start()
    with pytest.raises(DidNotStart, match=r"(?i)address already in use"):
        Mongod(folder, mongod_server.port).start()


def test_a_port_is_free_until_somebody_listens_on_it(redis_server: Redis) -> None:
    assert not is_free(redis_server.port)
    assert is_free(free_port())


def test_who_asks_for_several_ports_gets_different_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "RANGE", range(20_000, 20_100))
    assert len({free_port() for _ in range(20)}) == 20


def test_where_no_port_is_free_it_is_said_and_not_looked_for_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(server, "RANGE", range(port, port + 1))
        with pytest.raises(OSError, match=f"no port of 127.0.0.1 from {port} to {port} is free"):
            free_port()


def test_a_server_dies_with_the_process_that_started_it_even_when_that_is_killed(folder: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from scheduler_app.embedded import Redis;"
        f"print(Redis(Path({str(folder)!r})).start().pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        server = int(owner.stdout.readline())
        assert psutil.pid_exists(server)
        os.kill(owner.pid, signal.SIGKILL)
    wait_until(lambda: not psutil.pid_exists(server), "the server to die")


def test_it_is_refused_outside_the_main_thread_whose_end_would_kill_the_command() -> None:
    refusals = []

    def start() -> None:
        try:
            with_parent_death_signal(["true"])
        except RuntimeError as error:
            refusals.append(str(error))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert len(refusals) == 1
    assert "main thread" in refusals[0]


def test_with_a_password_strangers_are_refused_and_no_command_line_or_log_shows_it(folder: Path) -> None:
    password = "a-password-of-32-characters-or-so"
    with (
        Mongod(folder / "mongod", password=password) as mongod,
        Redis(folder / "redis", password=password) as redis,
    ):
        _insert(mongod, 1)
        assert _keys(mongod) == [1]
        with RedisClient.from_url(redis.url) as client_of_ours:
            assert client_of_ours.ping()

        with MongoClient[dict[str, int]](port=mongod.port, directConnection=True) as stranger:
            for attempt in (
                lambda: stranger.test.kept.find_one(),
                # Whoever comes first from this machine could otherwise make themselves the owner.
                lambda: stranger.admin.command("createUser", "first", pwd="mine", roles=["root"]),
            ):
                with pytest.raises(OperationFailure, match="requires authentication"):
                    attempt()
        with RedisClient(port=redis.port) as stranger_here, pytest.raises(AuthenticationError):
            stranger_here.ping()

        for server in (mongod, redis):
            assert server.pid is not None
            assert password not in " ".join(psutil.Process(server.pid).cmdline())
            assert password not in server.log.read_text()
    readable = [file for file in folder.rglob("*") if file.parent == folder and file.stat().st_mode & 0o077]
    assert readable == []


def test_data_from_before_there_were_passwords_is_served_with_a_new_one_at_each_start(folder: Path) -> None:
    with Mongod(folder) as open_to_all:
        _insert(open_to_all, 1)
    for key, password in ((2, "the-first-password"), (3, "the-second-password")):
        server = Mongod(folder, password=password).start()
        _insert(server, key)
        server.kill()
    with Mongod(folder) as open_again:
        assert _keys(open_again) == [1, 2, 3]
