"""Ports of each test process."""

import socket
from contextlib import ExitStack

import pytest

from tests import ports
from tests.ports import own_ports

#: Outside the ports of servers of tests, and of those that systems assign.
OF = range(31_000, 31_030)


def test_no_two_that_ask_have_a_port_in_common_and_where_nothing_is_left_they_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held: list[socket.socket] = []
    monkeypatch.setattr(ports, "_held", held)
    with ExitStack() as open_:
        found = [own_ports(OF, 10) for _ in range(3)]
        for each in held:
            open_.enter_context(each)
        assert [len(each) for each in found] == [9, 9, 9]
        assert len({port for each in found for port in each}) == 27
        assert own_ports(OF, 10) == OF
