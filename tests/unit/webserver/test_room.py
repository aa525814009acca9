"""Which connections have to make room when a process has too many, or holds too much for them."""

import os
import resource
import socket
import time
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from scheduler_app.webserver import limits, worker
from tests.unit.webserver.serving import Served, served

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n"
BODY = HEAD + b"\r\n"


@pytest.fixture
def api() -> Iterator[Served]:
    with served() as made:
        yield made


def test_the_least_active_one_makes_room_but_none_that_is_being_answered(api: Served) -> None:
    running, _ = api.connect(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
    api.connect(BODY)
    newer, _ = api.connect()
    assert api.worker.make_room()
    assert list(api.worker.channels.values()) == [running, newer]
    assert (newer.held_bytes, api.worker.closed["evicted"]) == (0, 1)
    assert not api.worker.make_room(newest=newer)
    assert list(api.worker.channels.values()) == [running, newer]


def test_a_kept_connection_that_was_just_used_does_not_make_room_for_an_older_half_request(
    api: Served,
) -> None:
    used, client = api.connect(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    api.wait_until(lambda: used.phase == "idle")
    api.worker.sweep(time.monotonic())
    api.connect(HEAD)
    api.worker.sweep(time.monotonic())
    api.send(client, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    api.wait_until(lambda: used.phase == "idle")
    assert api.worker.make_room()
    assert list(api.worker.channels.values()) == [used]


def test_where_all_are_being_answered_a_new_one_is_refused() -> None:
    with served(worker_connections=1) as api:
        api.connect(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        _, client = api.connect()
        answer = api.answer_to(client)
        assert api.worker.closed["refused"] == 1
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nRetry-After: 2\r\n" in answer


def test_the_slowest_of_those_that_hold_memory_makes_room_until_it_suffices(
    api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, _ = api.connect(BODY + b"x" * (limits.SLOW_BYTES - 1))
    header, _ = api.connect(HEAD)
    first, _ = api.connect(BODY + b"x" * 150_000)
    second, _ = api.connect(BODY + b"x" * 150_000)
    monkeypatch.setattr(limits, "MAX_BUFFERED_BYTES", 400_000)
    third, client = api.connect(BODY + b"x" * 30_000)
    assert list(api.worker.channels.values()) == [small, header, first, second, third], (
        "it does not hold too much"
    )
    api.send(client, b"x" * 50_000)
    assert list(api.worker.channels.values()) == [small, header, second, third]
    api.send(client, b"x" * 400_000)
    # Itself it is spared, and the others hold little.
    assert list(api.worker.channels.values()) == [small, header, third]


def test_an_answer_that_nobody_reads_makes_room_as_well(api: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    channel, _ = api.connect(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
    api.wait_until(lambda: channel.held_bytes > 1_000_000)
    api.worker.free_memory()
    assert list(api.worker.channels.values()) == [channel]
    monkeypatch.setattr(limits, "MAX_BUFFERED_BYTES", 1_000_000)
    api.worker.sweep(time.monotonic())
    assert api.worker.channels == {}


def test_what_is_held_at_the_bounds_makes_room_only_beyond_them(
    api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_BUFFERED_BYTES", limits.SLOW_BYTES)
    first, _ = api.connect(BODY + b"x" * limits.SLOW_BYTES)
    api.worker.free_memory()
    assert list(api.worker.channels.values()) == [first]
    second, _ = api.connect(BODY + b"x" * limits.SLOW_BYTES)
    assert list(api.worker.channels.values()) == [second]


def test_why_connections_were_closed_is_told_with_their_numbers_every_ten_seconds_at_most(
    api: Served,
) -> None:
    now = time.monotonic()
    api.connect()
    api.worker.closed.update(("too_slow", "refused", "too_slow"))
    with capture_logs() as lines:
        api.worker.sweep(now)
        api.worker.sweep(now + 0.1)  # there is nothing to tell
        api.worker.closed.update(("evicted",))
        api.worker.sweep(now + 9)
        assert len(lines) == 1
        api.worker.next_log = now + 9.1
        api.worker.sweep(now + 9.1)
    assert [{key: line.get(key) for key in ("open", "too_slow", "refused", "evicted")} for line in lines] == [
        {"open": 1, "too_slow": 2, "refused": 1, "evicted": None},
        {"open": 1, "too_slow": None, "refused": None, "evicted": 1},
    ]


@pytest.mark.parametrize(("wanted", "left", "most"), [(3, 2, 2), (2, 50, 2), (2, 2, 2), (3, -5, 1)])
def test_there_are_no_more_connections_than_files_that_are_left_for_them(
    wanted: int, left: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The limit itself stays: this process of tests may have more files open than a lower one would leave.
    monkeypatch.setattr(worker, "_OTHER_FILES", files - left)
    made = Served(worker_connections=wanted)
    made.close()
    assert made.worker.most == most


def test_without_files_accepting_pauses_until_the_next_look_and_a_connection_makes_room(api: Served) -> None:
    api.connect()
    [server] = api.worker.servers
    with socket.create_connection(("127.0.0.1", api.port)):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        os.close(next_file := os.dup(0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (next_file, hard))
        try:
            api.wait_until(lambda: not server.accepting)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert api.worker.channels == {}
        api.worker.sweep(time.monotonic())
        api.wait_until(lambda: len(api.worker.channels) == 1)
