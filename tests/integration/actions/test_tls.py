"""Certificates are always verified, by name, by time and by authority."""

from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from scheduler_app.actions.http import Guard, parse_networks
from scheduler_app.actions.http.sender import Sender
from tests.authority import Authority
from tests.integration.actions.receiver import Receiver
from tests.integration.actions.sending import send_one

Receive = Callable[..., Receiver]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"), "trusted")


@pytest.fixture
def tls_sender(resources: ExitStack, authority: Authority) -> Sender:
    guard = Guard(parse_networks("127.0.0.0/8,::1"))
    return resources.enter_context(closing(Sender(guard, ca_bundle=str(authority.bundle))))


def test_a_good_certificate_is_accepted_and_its_connection_kept(
    receive: Receive, authority: Authority, tls_sender: Sender
) -> None:
    receiver = receive(tls=authority.server("localhost"))
    for _ in range(3):
        answer = send_one(tls_sender, receiver.url)
        assert (answer.status, answer.error, answer.snippet) == (200, None, "ok")
    assert receiver.connections == 1


def test_an_expired_certificate_is_refused(
    receive: Receive, authority: Authority, tls_sender: Sender
) -> None:
    assert_not_accepted(receive(tls=authority.server("localhost", days=-1)), tls_sender, "expired")


def test_a_certificate_for_another_name_is_refused(
    receive: Receive, authority: Authority, tls_sender: Sender
) -> None:
    assert_not_accepted(receive(tls=authority.server("example.com")), tls_sender, "localhost")


def test_a_certificate_of_an_unknown_authority_is_refused(
    receive: Receive, tls_sender: Sender, tmp_path: Path
) -> None:
    unknown = Authority(tmp_path, "unknown")
    assert_not_accepted(receive(tls=unknown.server("localhost")), tls_sender, "issuer")


def test_without_a_bundle_of_ours_certifis_is_trusted_and_nothing_else(
    receive: Receive, authority: Authority, sender: Sender
) -> None:
    assert_not_accepted(receive(tls=authority.server("localhost")), sender, "issuer")


def test_a_receiver_that_does_not_speak_tls_is_a_passing_failure(
    receive: Receive, tls_sender: Sender
) -> None:
    receiver = receive()
    answer = send_one(tls_sender, receiver.url.replace("http:", "https:"))
    assert answer.error is not None
    assert answer.error.startswith("TLS failed: ")
    assert (answer.status, answer.permanent) == (None, False)


def assert_not_accepted(receiver: Receiver, sender: Sender, reason: str) -> None:
    answer = send_one(sender, receiver.url)
    assert answer.error is not None
    assert answer.error.startswith("the certificate is not accepted: ")
    assert reason in answer.error
    assert (answer.status, answer.permanent) == (None, False)
    assert receiver.seen == []
