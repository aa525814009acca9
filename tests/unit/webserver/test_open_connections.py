"""Which connections have to make room when a process has too many, or holds too much for them."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from gunicorn.config import Config

from scheduler_app.webserver.connection import Connection, Phase
from scheduler_app.webserver.limits import MAX_BUFFERED_BYTES
from scheduler_app.webserver.open_connections import OpenConnections


@pytest.fixture
def connection() -> Iterator[Callable[..., Connection]]:
    """Makes a connection over a real pair of sockets, in a phase since a time."""
    with ExitStack() as sockets:

        def make(phase: Phase, since: float, held: int = 0) -> Connection:
            ours, theirs = socket.socketpair()
            sockets.enter_context(ours)
            sockets.enter_context(theirs)
            made = Connection(Config(), ours, ("127.0.0.1", 1), ("127.0.0.1", 2))
            made.enter(phase, since, 10.0)
            made.sendall(b"x" * held)
            return made

        yield make


def test_the_least_active_one_makes_room_but_none_that_is_being_answered(
    connection: Callable[..., Connection],
) -> None:
    table = OpenConnections(2)
    running, older, newer = (
        connection(Phase.RUNNING, 1.0),
        connection(Phase.BODY, 2.0),
        connection(Phase.IDLE, 3.0),
    )
    for each in (running, newer, older):
        table.add(each)
    assert table.is_overfull
    assert table.least_active(newest=newer) is older
    table.discard(older)
    assert not table.is_overfull
    assert table.least_active(newest=newer) is None


def test_the_slowest_of_those_that_hold_memory_makes_room_until_it_suffices(
    connection: Callable[..., Connection],
) -> None:
    table = OpenConnections(10)
    size = MAX_BUFFERED_BYTES // 2
    first, second, third = (connection(Phase.ANSWER, since, size) for since in (1.0, 2.0, 3.0))
    small = connection(Phase.ANSWER, 0.0, 10)
    for each in (small, first, second, third):
        table.add(each)
        table.charge(each)
    assert table.slowest_holder(spared=third) is first
    assert table.slowest_holder(spared=first) is second
    table.discard(first)
    table.discard(first)  # only once is it taken off the sum
    assert table.slowest_holder(spared=third) is second
    table.discard(second)
    assert table.slowest_holder(spared=third) is None
