"""What ends one connection of the loop: a client that has gone, or a fault of ours, which is logged."""

import errno
import logging
import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.unit.webserver.serving import Served, served


@pytest.fixture
def api() -> Iterator[Served]:
    with served() as made:
        yield made


def test_a_client_that_has_gone_is_forgotten_without_a_word(
    api: Served, caplog: pytest.LogCaptureFixture
) -> None:
    channel, client = api.connect(b"GET / HTT")
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()  # which resets the connection
    api.wait_until(lambda: channel not in api.worker.channels.values())
    assert caplog.records == []


@pytest.mark.parametrize("code", [errno.ENOTCONN, errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.EPIPE])
def test_a_network_that_breaks_is_no_fault_of_ours(
    api: Served, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    class Broken(socket.socket):
        def recv(self, *_: object) -> bytes:
            raise OSError(code, os.strerror(code))

    channel, client = api.connect()
    channel.socket = Broken(fileno=channel.socket.detach())
    client.send(b"GET")
    api.wait_until(lambda: channel not in api.worker.channels.values())
    assert caplog.records == []


def test_a_network_that_breaks_under_an_answer_ends_the_connection_at_once(
    api: Served, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(socket.socket):
        def send(self, *_: object) -> int:
            raise OSError(errno.EHOSTUNREACH, "No route to host")

    channel, client = api.connect(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
    api.wait_until(lambda: channel.phase == "answer")
    channel.socket = Broken(fileno=channel.socket.detach())
    client.setblocking(False)

    def reads_until_it_is_gone() -> bool:
        with suppress(BlockingIOError, ConnectionResetError):
            client.recv(65536)
        return channel not in api.worker.channels.values()

    api.wait_until(reads_until_it_is_gone)
    assert caplog.records == []


def test_a_fault_of_ours_ends_one_connection_and_is_logged(
    api: Served, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: bytes) -> None:
        raise ValueError("of the test")

    other, _ = api.connect()
    channel, client = api.connect()
    monkeypatch.setattr(channel, "received", fail)
    client.send(b"GET")
    api.wait_until(lambda: channel not in api.worker.channels.values())
    assert list(api.worker.channels.values()) == [other]
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "of the test" in caplog.text


def test_an_application_that_fails_is_a_500_and_is_logged(
    api: Served, caplog: pytest.LogCaptureFixture
) -> None:
    _, client = api.connect(b"GET /fails HTTP/1.1\r\nHost: x\r\n\r\n")
    answer = api.answer_to(client)
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert b"of the test" not in answer
    assert "of the test" in caplog.text


def test_a_connection_that_waits_for_its_client_is_asked_nothing_until_that_has_sent(
    api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel, client = api.connect(b"GET / HTTP/1.0\r\n")
    asked = list[bool]()
    readable = channel.readable

    def noted() -> bool:
        asked.append(True)
        return bool(readable())

    monkeypatch.setattr(channel, "readable", noted)
    api.read()
    del asked[:]
    api.read()
    assert asked == []
    api.send(client, b"\r\n")
    assert asked != []


def test_urgent_data_does_not_make_the_loop_spin(api: Served) -> None:
    _, client = api.connect(b"GET / HTTP/1.0\r\n")
    client.send(b"x", socket.MSG_OOB)
    api.read()
    began = time.monotonic()
    api.worker.poll(0.2)
    assert time.monotonic() - began >= 0.2
    api.send(client, b"\r\n")
    assert api.answer_to(client).endswith(b"[]")
