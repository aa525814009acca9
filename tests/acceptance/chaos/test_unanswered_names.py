"""A name server that answers nothing holds up neither the API nor callbacks to other names."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import requests

from tests.acceptance.journal import Journal
from tests.acceptance.stack import Stack
from tests.processes import wait_until

pytestmark = pytest.mark.chaos

SILENT = "127.0.0.77"
#: Fewer than one sender may wait for at once.
UNANSWERED_NAMES = 8
#: The resolver gives up after 60 s.
RESOLVER = "options timeout:30 attempts:2"


@pytest.fixture
def stack_in_silence(make_stack: Callable[..., Stack], tmp_path: Path) -> Iterator[Stack]:
    """Its processes have a name server that answers nothing."""
    settings = tmp_path / "resolv.conf"
    settings.write_text(f"nameserver {SILENT}\n{RESOLVER}\n")
    mounted = f'mount --bind {settings} /etc/resolv.conf && exec "$@"'
    stack = make_stack(CALLBACK_ALLOWED_NETWORKS="127.0.0.0/8")
    stack.prefix = ("unshare", "--map-root-user", "--mount", "sh", "-c", mounted, "in-silence")
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as server:
        server.bind((SILENT, 53))
        stack.all()
        yield stack


def test_requests_about_a_name_without_an_answer_are_answered_and_other_names_are_called(
    stack_in_silence: Stack, journal: Journal
) -> None:
    stack = stack_in_silence

    def timed(method: str, path: str, body: object) -> tuple[requests.Response, float]:
        began = time.monotonic()
        answer = requests.request(method, stack.url + path, json=body)
        took = time.monotonic() - began
        print(f"{method} {path}: {answer.status_code} after {took:.2f} s")
        return answer, took

    for number in range(UNANSWERED_NAMES):
        made = {"name": "n", "callback_url": f"http://silent-{number}.example.com/", "delay_seconds": 1}
        answer, took = timed("POST", "/api/schedules", made)
        assert answer.status_code == 201, answer.text
        assert took < 5
    called = stack.create(journal.url("/called"), delay_seconds=1)
    wait_until(lambda: bool(journal.calls["/called"]), f"a call of {called}")

    receiver = {"url": "http://silent.example.com/", "timeout_seconds": 2}
    answer, took = timed("PUT", "/api/destinations/silent", receiver)
    assert (answer.status_code, took < 5) == (201, True), answer.text
    answer, took = timed("POST", "/api/destinations/silent/test", None)
    assert (answer.status_code, answer.json()["outcome"]) == (200, "retry"), answer.text
    # The resolver takes much longer.
    assert took < 20
