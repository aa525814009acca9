"""Requests to the provider are bounded in time, size and number, and follow no redirect."""

import socketserver
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduler_app.domain.sign_in_flow import ProviderAway
from scheduler_app.oidc import exchange
from scheduler_app.oidc.exchange import Exchanges, is_safe
from tests.authority import Authority
from tests.openid_provider import be_patient
from tests.processes import PATIENCE_SECONDS, wait_until

Answering = Callable[[Any], None]
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch)


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Serves what a function does with each connection, and gives the URL."""
    servers = []

    def start(answering: Answering, tls: Any = None) -> str:
        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                while self.rfile.readline().strip():
                    continue
                answering(self.wfile)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True

            def get_request(self) -> Any:
                connection, address = super().get_request()
                return (tls.wrap_socket(connection, server_side=True) if tls else connection), address

            def handle_error(self, request: Any, client_address: Any) -> None:
                """Clients leave."""

        server = Server(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}/x?secret=1"

    yield start
    for each in servers:
        each.shutdown()
        each.server_close()


def refusal_of(url: str, exchanges: Exchanges | None = None) -> str:
    with pytest.raises(ProviderAway) as refused:
        (exchanges or Exchanges()).get(url)
    assert "secret" not in str(refused.value)
    return str(refused.value)


def test_an_answer_is_read_to_its_end(serve: Callable[..., str]) -> None:
    assert Exchanges().get(serve(lambda out: out.write(OK + b'{"a": 1}'))) == {"a": 1}


def test_an_answer_that_is_too_large_is_none(serve: Callable[..., str]) -> None:
    def endless(out: Any) -> None:
        out.write(OK + b"[")
        while True:
            out.write(b"1," * 10_000)

    assert "gave no answer" in refusal_of(serve(endless))


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b"null"])
def test_an_answer_that_is_no_object_is_none(serve: Callable[..., str], body: bytes) -> None:
    assert "no JSON object" in refusal_of(serve(lambda out: out.write(OK + body)))


def test_a_redirect_is_not_followed(serve: Callable[..., str]) -> None:
    elsewhere = serve(lambda out: out.write(OK + b"{}"))
    moved = f"HTTP/1.1 302 Found\r\nLocation: {elsewhere}\r\nContent-Length: 0\r\n\r\n".encode()
    assert "answered 302" in refusal_of(serve(lambda out: out.write(moved)))


def test_an_answer_that_trickles_in_holds_nobody_up(
    serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "ANSWER_SECONDS", 0.2)
    ended = threading.Event()

    def trickle(out: Any) -> None:
        out.write(OK)
        while not ended.wait(0.05):
            out.write(b" ")
            out.flush()

    try:
        assert "within 0.2 s" in refusal_of(serve(trickle))
    finally:
        ended.set()


def test_few_requests_wait_at_a_time_and_none_soon_after_one_in_vain(
    serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, exchanges = threading.Event(), Exchanges()
    url = serve(lambda out: ended.wait())
    monkeypatch.setattr(exchange, "AWAY_SECONDS", PATIENCE_SECONDS)
    waiting = [
        threading.Thread(target=refusal_of, args=(url, exchanges)) for _ in range(exchange.MAX_IN_FLIGHT)
    ]
    for each in waiting:
        each.start()
    try:
        # A look that took a place itself would let one of them be refused.
        wait_until(lambda: exchanges._free._value == 0, "all places to be taken")
        assert "wait for their answers already" in refusal_of(url, exchanges)
    finally:
        ended.set()
        for each in waiting:
            each.join()
    assert "a moment ago" in refusal_of(url, exchanges)


def test_a_certificate_that_nobody_knows_is_refused(serve: Callable[..., str], tmp_path: Path) -> None:
    tls = Authority(tmp_path, "nobody").server("127.0.0.1")
    assert "SSLError" in refusal_of(serve(lambda out: out.write(OK + b"{}"), tls))


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://login.example.com/keys", True),
        ("http://127.0.0.1:8000/keys", True),
        ("http://localhost/keys", True),
        ("http://[::1]/keys", True),
        ("http://login.example.com/keys", False),
        ("http://localhost.example.com/keys", False),
        ("http://127.0.0.1@login.example.com/", False),
        ("https://user@login.example.com/", False),
        ("javascript:alert(1)", False),
        ("https:///keys", False),
        ("https://x:y/", False),
        (None, False),
    ],
)
def test_only_https_and_this_machine_are_asked(url: object, safe: bool) -> None:
    assert is_safe(url) is safe
