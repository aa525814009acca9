"""Receiving callbacks with Starlette, FastAPI or any other ASGI server; it imports none of them.

>>> @receives(receiver)
... async def nightly(delivery):
...     print(delivery.json())
>>> app.add_route("/nightly", nightly)
"""

import inspect
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from scheduler_app.receiver.receiver import Answer, Delivery, Receiver

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Response(Protocol):
    """A response as Starlette has it: an ASGI application with a status."""

    @property
    def status_code(self) -> int: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


Handler = Callable[[Delivery], Awaitable[Response | None]]


def receives(receiver: Receiver) -> Callable[[Handler], "Endpoint"]:
    """Makes an ASGI application, which a route takes, of a coroutine function of the delivery.

    It returns a response of Starlette, or None for a 204. Its event is done unless it raises or answers with
    a status of 400 or more. Raises TypeError for a function that is no coroutine function: it would stop the
    event loop while it works.
    """

    def decorate(handler: Handler) -> Endpoint:
        if not inspect.iscoroutinefunction(handler):
            raise TypeError(f"{handler!r} must be a coroutine function: async def")
        return Endpoint(receiver, handler)

    return decorate


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The ASGI application of one handler."""

    receiver: Receiver
    handler: Handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"callbacks come by http, not by {scope['type']}")
        try:
            body = await _body(receive, self.receiver.max_body_bytes)
        except ConnectionError:
            return  # There is nobody to answer.
        if body is None:
            await _send(send, self.receiver.too_large())
            return
        result = await self.receiver.handle_async(
            [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]],
            body,
            self.handler,
            now=datetime.now(UTC),
            is_success=lambda response: response is None or response.status_code < 400,
        )
        if result is None:
            await _send(send, Answer(204))
        elif isinstance(result, Answer):
            await _send(send, result)
        else:
            await result(scope, receive, send)


async def _body(receive: Receive, limit: int) -> bytes | None:
    """The whole body; None if it is longer than `limit` bytes. Raises ConnectionError where the client has
    gone before its end."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError("the client has gone before the end of its request")
        body += message.get("body", b"")
        if len(body) > limit:
            return None
        if not message.get("more_body"):
            return bytes(body)


async def _send(send: Send, answer: Answer) -> None:
    headers = [(b"content-length", str(len(answer.body)).encode())] if answer.status != 204 else []
    headers.append((b"content-type", b"text/plain; charset=utf-8"))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
