"""What ends one connection of the loop: a client that has gone, or a fault of ours, which is logged."""

import errno
import os
import selectors
import socket
from collections.abc import Iterator

import pytest
from gunicorn.config import Config
from structlog.testing import capture_logs

from scheduler_app.webserver.connection import Connection
from scheduler_app.webserver.open_connections import OpenConnections
from scheduler_app.webserver.worker import BufferingWorker


@pytest.fixture
def worker() -> Iterator[BufferingWorker]:
    """One whose loop does not run."""
    made = object.__new__(BufferingWorker)
    made.connections = OpenConnections(10)
    with selectors.DefaultSelector() as made.selector:
        yield made


@pytest.fixture
def connection(worker: BufferingWorker) -> Iterator[tuple[Connection, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        made = Connection(Config(), ours, ("127.0.0.1", 1), ("127.0.0.1", 2))
        worker.connections.add(made)
        yield made, theirs


def test_a_client_that_has_gone_is_forgotten_without_a_word(
    worker: BufferingWorker, connection: tuple[Connection, socket.socket]
) -> None:
    ours, theirs = connection
    ours.sock.send(b"unread: the other end resets the connection")
    theirs.close()
    with capture_logs() as lines:
        worker._guarded(ours, worker._receive)
    assert (ours in worker.connections, lines) == (False, [])


@pytest.mark.parametrize(
    "fault", [OSError(errno.ENOSPC, "no room for another watch"), ValueError("of the test")], ids=repr
)
def test_a_fault_of_ours_ends_one_connection_and_is_logged(
    worker: BufferingWorker, connection: tuple[Connection, socket.socket], fault: Exception
) -> None:
    def step(_: Connection) -> None:
        raise fault

    with capture_logs() as lines:
        worker._guarded(connection[0], step)
    assert connection[0] not in worker.connections
    assert [line["event"] for line in lines] == ["api.connection_failed"]


@pytest.mark.parametrize("code", [errno.ENOTCONN, errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.EPIPE])
def test_a_network_that_breaks_is_no_fault_of_ours(
    worker: BufferingWorker, connection: tuple[Connection, socket.socket], code: int
) -> None:
    def step(_: Connection) -> None:
        raise OSError(code, os.strerror(code))

    with capture_logs() as lines:
        worker._guarded(connection[0], step)
    assert (connection[0] in worker.connections, lines) == (False, [])
