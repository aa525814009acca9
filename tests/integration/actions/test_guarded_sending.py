"""What a stranger's URL cannot reach. A listener stands wherever one can, and must not see a connection."""

import errno
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pycurl
import pytest

from scheduler_app.actions.http import Guard, Response, parse_networks
from scheduler_app.actions.http import sender as sender_module
from scheduler_app.actions.http.sender import Sender
from scheduler_app.actions.http.transfer import Transfer
from tests.integration.actions.receiver import Receiver, says
from tests.integration.actions.sending import request, send, send_one

PRIVATE = (
    "refused by this worker's settings: the receiver has a private address;"
    " CALLBACK_ALLOWED_NETWORKS does not allow it"
)
SPELLINGS = [
    "http://127.0.0.1:{port}/",
    "http://127.1:{port}/",
    "http://2130706433:{port}/",
    "http://0x7f000001:{port}/",
    "http://0x7f.1:{port}/",
    "http://017700000001:{port}/",
    "http://0177.0.0.01:{port}/",
    "http://localhost:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[0:0:0:0:0:ffff:7f00:1]:{port}/",
]


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A listener on loopback: the kernel completes connections into its backlog, where they stay seen."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield listener


def was_connected(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_loopback_is_refused_in_every_spelling_and_sees_no_connection(
    spelling: str, listener: socket.socket, strict_sender: Sender
) -> None:
    answer = send_one(strict_sender, spelling.format(port=listener.getsockname()[1]))
    assert (answer.status, answer.permanent, answer.ours) == (None, False, True)
    assert answer.error == PRIVATE
    assert not was_connected(listener)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_same_spellings_reach_loopback_where_it_is_allowed(
    spelling: str, receive: Callable[..., Receiver], sender: Sender
) -> None:
    receiver = receive()
    answer = send_one(sender, spelling.format(port=receiver.port))
    assert (answer.status, answer.error) == (200, None)
    assert len(receiver.seen) == 1


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://169.254.169.254/latest/meta-data/", "169.254.169.254 is link-local"),
        ("http://[fd00:ec2::254]/", "fd00:ec2::254 is unique-local"),
        ("http://[::ffff:169.254.169.254]/", "leads to 169.254.169.254, which is link-local"),
        ("http://[64:ff9b::a9fe:a9fe]/", "leads to 169.254.169.254, which is link-local"),
        ("http://[::1]/", "::1 is loopback"),
        ("http://0/", "0.0.0.0 is unspecified"),
        ("http://10.0.0.1/", "10.0.0.1 is private"),
        ("http://100.100.100.200/", "shared by carriers"),
        ("http://255.255.255.255/", "broadcast"),
    ],
)
def test_the_log_alone_says_which_address_was_refused_and_why(
    url: str, reason: str, strict_sender: Sender, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = send_one(strict_sender, url)
    assert answer == Response("event", None, PRIVATE, False, None, None, "", answer.duration_ms, ours=True)
    logged = capsys.readouterr().err
    assert ("callback.refused" in logged, "event_id=event" in logged, reason in logged) == (True,) * 3


def test_a_denied_port_is_refused_at_every_address_and_sees_no_connection(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    with closing(Sender(Guard(parse_networks("127.0.0.0/8"), frozenset({port})))) as sender:
        for url in (f"http://127.0.0.1:{port}/", f"https://localhost:{port}/"):
            answer = send_one(sender, url)
            assert (
                answer.error
                == f"refused by this worker's settings: port {port} is denied by CALLBACK_DENIED_PORTS"
            )
            assert (answer.status, answer.permanent, answer.ours) == (None, False, True)
    assert not was_connected(listener)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("file:///etc/passwd", "the scheme must be http or https, not file"),
        ("gopher://127.0.0.1:6379/_FLUSHALL", "not gopher"),
        ("http://user@example.com/", "user or password"),
        ("http://example.com\\@127.0.0.1/", "user or password"),
        ("http:///nowhere", "a host is missing"),
        ("not a url", "spaces"),
    ],
)
def test_what_is_refused_says_why_and_that_a_retry_is_no_use(
    url: str, reason: str, strict_sender: Sender
) -> None:
    answer = send_one(strict_sender, url)
    assert answer.error is not None
    assert answer.error.startswith("refused: ")
    assert reason in answer.error
    assert (answer.status, answer.permanent) == (None, True)


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "gopher://127.0.0.1:{port}/_x", "dict://127.0.0.1:{port}/"]
)
def test_libcurl_itself_knows_no_scheme_but_http(
    url: str, listener: socket.socket, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Were the check of the URL ever passed by, the door would still be shut.
    monkeypatch.setattr(sender_module, "checked_url", lambda request: request.url)
    answer = send_one(sender, url.format(port=listener.getsockname()[1]))
    assert answer.status is None
    assert answer.snippet == ""
    assert not was_connected(listener)


@pytest.mark.parametrize(
    "target", ["http://169.254.169.254/", "http://127.0.0.1:{port}/", "file:///etc/passwd"]
)
def test_a_redirect_is_an_answer_and_is_not_followed(
    target: str, listener: socket.socket, receive: Callable[..., Receiver], sender: Sender
) -> None:
    target = target.format(port=listener.getsockname()[1])
    receiver = receive(says("302 Found", f"Location: {target}"))
    answer = send_one(sender, receiver.url)
    assert (answer.status, answer.location, answer.permanent) == (302, target, False)
    assert answer.error == f"redirect to {target} not followed"
    assert not was_connected(listener)


@pytest.fixture
def resolve(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes libcurl resolve a name as told: "name:port:address,address" (CURLOPT_RESOLVE)."""

    def tell(entry: str) -> None:
        class Told(Transfer):
            __slots__ = ()

            def prepare(self, *arguments: Any) -> None:
                super().prepare(*arguments)
                self.curl.setopt(pycurl.RESOLVE, [entry])

        monkeypatch.setattr(sender_module, "Transfer", Told)

    return tell


@pytest.mark.parametrize("private", ["10.0.0.1", "169.254.169.254", "[fd00::1]", "127.0.0.1,[::1],10.0.0.1"])
def test_a_name_that_resolves_to_private_addresses_is_refused(
    private: str, listener: socket.socket, strict_sender: Sender, resolve: Callable[[str], None]
) -> None:
    port = listener.getsockname()[1]
    resolve(f"innocent.test:{port}:{private}")
    answer = send_one(strict_sender, f"http://innocent.test:{port}/")
    assert answer.error == PRIVATE
    assert (answer.permanent, answer.ours) == (False, True)
    assert not was_connected(listener)


@pytest.mark.parametrize("order", ["127.0.0.1,127.0.0.2", "127.0.0.2,127.0.0.1", "[::1],127.0.0.1,127.0.0.2"])
def test_of_several_addresses_only_those_allowed_are_connected(
    order: str, receive: Callable[..., Receiver], resolve: Callable[[str], None]
) -> None:
    allowed, forbidden = on_one_port(receive)
    with closing(Sender(Guard(parse_networks("127.0.0.2/32")))) as sender, forbidden:
        forbidden.setblocking(False)
        resolve(f"mixed.test:{allowed.port}:{order}")
        answer = send_one(sender, f"http://mixed.test:{allowed.port}/")
        assert answer.status == 200
        assert not was_connected(forbidden)


def on_one_port(receive: Callable[..., Receiver]) -> tuple[Receiver, socket.socket]:
    """A receiver on 127.0.0.2, and a listener on 127.0.0.1, where another program may have that port."""
    while True:
        allowed = receive(host="127.0.0.2")
        try:
            return allowed, socket.create_server(("127.0.0.1", allowed.port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise


def test_where_the_allowed_address_fails_the_refused_one_is_not_tried(
    listener: socket.socket, resolve: Callable[[str], None]
) -> None:
    port = listener.getsockname()[1]
    resolve(f"mixed.test:{port}:127.0.0.2,127.0.0.1")  # nobody listens on 127.0.0.2
    with closing(Sender(Guard(parse_networks("127.0.0.2/32")))) as sender:
        answer = send_one(sender, f"http://mixed.test:{port}/")
    assert answer.error == "could not connect: connection refused (and refused: a private address)"
    assert (answer.permanent, answer.ours) == (False, False)
    assert not was_connected(listener)


def test_the_proxy_of_the_environment_is_not_obeyed(
    receive: Callable[..., Receiver], sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, receiver = receive(), receive()
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert send_one(sender, receiver.url).status == 200
    assert (proxy.connections, receiver.connections) == (0, 1)


def test_the_passwords_of_the_workers_home_stay_there(
    receive: Callable[..., Receiver], sender: Sender, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    (tmp_path / ".netrc").write_text("machine localhost login me password hunter2\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    receiver = receive()
    send_one(sender, receiver.url)
    assert "authorization" not in receiver.seen[0].headers


def test_a_cookie_is_not_carried_to_the_next_request(
    receive: Callable[..., Receiver], sender: Sender
) -> None:
    receiver = receive(says("200 OK", "Set-Cookie: id=1; Path=/"))
    send_one(sender, receiver.url)
    send_one(sender, receiver.url)
    assert "cookie" not in receiver.seen[1].headers


@pytest.mark.parametrize(
    "header",
    [
        ("X", "a\r\nX-Evil: 1"),
        ("X", "a\nX-Evil: 1"),
        ("X", "a\r\n\r\nGET /admin HTTP/1.1"),
        ("X\r\nX-Evil", "1"),
        ("X", "a\x00b"),
        ("Content-Length", "0"),
        ("Transfer-Encoding", "chunked"),
        ("X", "\ud800"),
    ],
)
def test_a_header_that_breaks_the_request_never_leaves(
    header: tuple[str, str], receive: Callable[..., Receiver], sender: Sender
) -> None:
    receiver = receive()
    answer = send_one(sender, receiver.url, headers=(header,))
    assert (answer.status, answer.permanent) == (None, True)
    assert answer.error is not None
    assert answer.error.startswith("refused: ")
    assert receiver.connections == 0


def test_refusals_among_others_disturb_nobody(receive: Callable[..., Receiver], sender: Sender) -> None:
    receiver = receive()
    urls = [receiver.url, "http://10.0.0.1/", "file:///x", receiver.url, "http://[::]/", "", receiver.url]
    answers = send(sender, *(request(url, key=str(number)) for number, url in enumerate(urls)))
    by_key = {answer.key: answer for answer in answers}
    assert [by_key[str(number)].status for number in range(7)] == [200, None, None, 200, None, None, 200]
    assert [by_key[str(number)].permanent for number in range(7)] == [
        False,
        False,
        True,
        False,
        False,
        True,
        False,
    ]
    assert [key for key, answer in by_key.items() if answer.ours] == ["1", "4"]
