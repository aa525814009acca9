"""A connection that was opened with credentials carries no request of others."""

from collections.abc import Callable
from contextlib import closing

import pytest

from scheduler_app.actions.http import Guard
from scheduler_app.actions.http.sender import Sender
from scheduler_app.domain.masking import is_credential
from tests.authority import Authority
from tests.integration.actions.conftest import LOOPBACK
from tests.integration.actions.receiver import Receiver
from tests.integration.actions.sending import request, send
from tests.integration.actions.test_tls import authority  # noqa: F401
from tests.processes import wait_until

Receive = Callable[..., Receiver]
ANNE, BERT = (("Authorization", "Negotiate anne"),), (("Authorization", "Negotiate bert"),)


def connections(receiver: Receiver, sender: Sender, *whose: tuple[tuple[str, str], ...]) -> list[int]:
    """The number of the connection on which each request came, one after another."""
    for number, headers in enumerate(whose):
        send(sender, request(receiver.url, key=f"e{number}", headers=headers))
    return [seen.connection for seen in receiver.seen[-len(whose) :]]


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_schedules_whose_credentials_differ_share_no_connection(
    receive: Receive,
    authority: Authority,  # noqa: F811
    tls: bool,
) -> None:
    receiver = receive(tls=authority.server("localhost") if tls else None)
    with closing(Sender(Guard(LOOPBACK), ca_bundle=str(authority.bundle))) as sender:
        order = connections(receiver, sender, ANNE, BERT, (), ANNE, BERT, (), ANNE)
        assert order == [1, 2, 3, 1, 2, 3, 1], "those of one kind share theirs, as ever"
        assert connections(receiver, sender, (("authorization", "Negotiate anne"),)) == [1]
        other = (("X-Trace", "1"), ("webhook-signature", "v1,1")), (("X-Trace", "2"),)
        assert connections(receiver, sender, *other) == [3, 3], (
            "what tells nothing of the caller is no credential"
        )


def test_what_names_a_caller_is_told_by_the_header_s_name() -> None:
    named = (
        *("Authorization", "Cookie", "X-API-Key", "Ocp-Apim-Subscription-Key", "X-Functions-Key"),
        *("aeg-sas-key", "X-JWT", "X-Auth-Token", "X-Session-Id", "X-Client-Cert", "X-Password"),
    )
    assert all(map(is_credential, named))
    assert not any(map(is_credential, ("Accept", "Content-Type", "User-Agent", "X-Tenant", "traceparent")))


def test_connections_with_credentials_are_bounded_all_together(receive: Receive) -> None:
    receiver = receive()
    with closing(Sender(Guard(LOOPBACK), max_connections=3)) as sender:
        many = [(("Authorization", f"Bearer {number}"),) for number in range(12)]
        # One after another: those unused for longest go first.
        connections(receiver, sender, *many)
        wait_until(lambda: len(receiver._open) == 3, "connections that are too many to close")
        newest = connections(receiver, sender, *many[-3:])
        assert newest == [10, 11, 12]
        # All at once: what finds no room is sent on a connection of its own, which is not kept.
        answers = send(
            sender, *(request(receiver.url, key=f"e{n}", headers=each) for n, each in enumerate(many))
        )
        assert [answer.status for answer in answers] == [200] * len(many)
        by_connection: dict[int, set[str]] = {}
        for seen in receiver.seen:
            by_connection.setdefault(seen.connection, set()).add(seen.headers["authorization"])
        assert all(len(callers) == 1 for callers in by_connection.values())
        wait_until(lambda: len(receiver._open) <= 3, "connections that are too many to close")
        assert len(sender._pools) <= 3
        # Nor do those of one caller take more than all may have.
        same = [request(receiver.url, key=f"s{n}", headers=ANNE) for n in range(12)]
        assert {answer.status for answer in send(sender, *same)} == {200}
        wait_until(lambda: len(receiver._open) <= 3, "connections that are too many to close")
    wait_until(lambda: not receiver._open, "connections to close with the sender")


def test_closing_with_requests_under_way_leaves_no_connection(receive: Receive) -> None:
    receiver = receive(lambda seen, connection: bool(connection.recv(1)) and False)
    with closing(Sender(Guard(LOOPBACK))) as sender:
        sender.start(request(receiver.url, headers=ANNE))
        while not receiver.seen:
            sender.wait(0.05)
    wait_until(lambda: not receiver._open, "the connection to close")
