"""Short ways to send a request and to wait for its answer."""

from typing import Any

from scheduler_app.actions.http import Request, Response
from scheduler_app.actions.http.sender import Sender
from tests.processes import PATIENCE_SECONDS


def request(url: str, key: str = "event", **changes: Any) -> Request:
    options: dict[str, Any] = {
        "method": "POST",
        "headers": (),
        "body": b"{}",
        "timeout_seconds": PATIENCE_SECONDS,
    }
    return Request(key=key, url=url, **(options | changes))


def send(sender: Sender, *requests: Request) -> list[Response]:
    """Every answer, in the order they came."""
    for one in requests:
        sender.start(one)
    answers: list[Response] = []
    while sender.in_flight:
        answers += sender.wait(PATIENCE_SECONDS)
    return answers


def send_one(sender: Sender, url: str, **changes: Any) -> Response:
    (answer,) = send(sender, request(url, **changes))
    return answer
