"""Which connections have to make room when a process has too many, or holds too much for them."""

import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from gunicorn.config import Config
from structlog.testing import capture_logs

from scheduler_app.webserver.connection import Connection, Phase
from scheduler_app.webserver.limits import MAX_BUFFERED_BYTES, SLOW_BYTES
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
    assert table.least_active() is older
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


def test_it_knows_its_connections_and_may_be_changed_while_it_is_gone_through(
    connection: Callable[..., Connection],
) -> None:
    table = OpenConnections(2)
    first, second, other = (connection(Phase.IDLE, 1.0) for _ in range(3))
    table.add(first)
    table.add(second)
    assert first in table
    assert other not in table
    assert not table.is_overfull, "as many as are wanted"
    for each in table:
        table.discard(each)
    assert len(table) == 0
    table.discard(other)
    assert len(table) == 0


def test_memory_is_counted_as_it_is_now_and_a_client_that_sends_a_head_or_holds_little_is_spared(
    connection: Callable[..., Connection],
) -> None:
    table = OpenConnections(10)
    newest = connection(Phase.BODY, 9.0)
    full = connection(Phase.ANSWER, 2.0, MAX_BUFFERED_BYTES)
    good_part, little = connection(Phase.BODY, 1.5, SLOW_BYTES), connection(Phase.ANSWER, 1.0, SLOW_BYTES - 1)
    head = connection(Phase.HEADER, 0.5, SLOW_BYTES)
    table.add(full)
    table.charge(full)
    assert table.slowest_holder(spared=newest) is None, "not more than they may hold"
    for each in (newest, good_part, little, head):
        table.add(each)
        table.charge(each)
        table.charge(each)  # only once is it counted
    assert table.slowest_holder(spared=newest) is good_part
    assert table.slowest_holder(spared=good_part) is full
    for each in (good_part, little, head):
        table.discard(each)
    assert table.slowest_holder(spared=newest) is None
    good_part.sendall(b"x")
    table.add(good_part)
    table.charge(good_part)
    assert table.slowest_holder(spared=newest) is good_part
    full.flush()
    table.charge(full)
    assert table.slowest_holder(spared=newest) is None


def test_why_connections_were_closed_is_told_with_their_numbers_every_ten_seconds_at_most(
    connection: Callable[..., Connection],
) -> None:
    table = OpenConnections(10)
    table.add(connection(Phase.IDLE, 1.0))
    for reason in ("too_slow", "refused", "too_slow"):
        table.count_closed(reason)
    with capture_logs() as lines:
        table.log_closed(100.0)
        table.log_closed(200.0)  # there is nothing to tell
        table.count_closed("evicted")
        table.log_closed(109.0)
        assert len(lines) == 1
        table.log_closed(110.0)
    assert [{key: line.get(key) for key in ("open", "too_slow", "refused", "evicted")} for line in lines] == [
        {"open": 1, "too_slow": 2, "refused": 1, "evicted": None},
        {"open": 1, "too_slow": None, "refused": None, "evicted": 1},
    ]


@pytest.mark.parametrize(("wanted", "left", "most"), [(3, 2, 2), (2, 50, 2), (2, 2, 2), (3, -5, 1)])
def test_there_are_no_more_connections_than_files_that_are_left_for_them(
    connection: Callable[..., Connection], wanted: int, left: int, most: int
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # 128 are kept for what is no connection.
    resource.setrlimit(resource.RLIMIT_NOFILE, (128 + left, hard))
    try:
        table = OpenConnections(wanted)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    for _ in range(most):
        table.add(connection(Phase.IDLE, 1.0))
    assert not table.is_overfull
    table.add(connection(Phase.IDLE, 1.0))
    assert table.is_overfull
