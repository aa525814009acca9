"""Each operation on messages as a call or a listing. What the arguments mean stands in `messages.py`."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, TypedDict
from urllib.parse import quote

from scheduler_app.client.calls import Call, Listing, get, post, without_none
from scheduler_app.client.record import Json
from scheduler_app.client.request_values import as_instant
from scheduler_app.client.results import Message, MessageResult


class MessageFields(TypedDict, total=False):
    """How a message is delivered: the fields that it has as a schedule has them."""

    path: Annotated[str, "The path and query below the destination's URL"]
    method: Annotated[str, "The HTTP method, in capital letters; the destination's, or POST, unless given"]
    headers: Annotated[Mapping[str, str], "Header names and values"]
    queue: Annotated[str, "Which workers deliver it: those started with `-Q` and this name"]
    max_retries: Annotated[int, "How many attempts may follow the first one"]
    retry_backoff_seconds: Annotated[float, "The delay before the first retry"]
    retry_backoff_max_seconds: Annotated[float, "The longest delay before a retry"]
    retry_codes: Annotated[Sequence[int | str], "The statuses after which an attempt is retried"]
    timeout_seconds: Annotated[float, "How long the whole answer may take"]
    success_codes: Annotated[Sequence[int | str], "The statuses that complete the message"]
    expire_after_seconds: Annotated[
        float, "How long after it was due the message is given up, its retries included"
    ]
    on_success: Annotated[str, "The name of a destination that is told when the message was delivered"]
    on_failure: Annotated[str, "The name of a destination that is told when it ended in error"]
    signing: Annotated[bool, "Whether the callback is signed"]


def schedule(
    callback_url: str | None,
    destination: str | None,
    at: datetime | timedelta | None,
    payload: object,
    body: str | bytes | None,
    fields: Mapping[str, object],
    idempotency_key: str | None,
) -> Call[Message]:
    receiver = {"callback_url": callback_url, "destination": destination}
    given: Json = {**without_none(receiver | dict(fields)), **_timing(at)}
    if payload is not None:
        given["payload"] = payload
    if isinstance(body, bytes):
        given["body_base64"] = b64encode(body).decode()
    elif body is not None:
        given["body"] = body
    return post("/api/v1/messages", Message.of, given, key=idempotency_key)


def schedule_many(
    messages: Sequence[Mapping[str, Any]], idempotency_key: str | None
) -> Call[tuple[MessageResult, ...]]:
    def read(answer: Json) -> tuple[MessageResult, ...]:
        return tuple(map(MessageResult.of, answer["results"]))

    body = {"messages": [dict(each) for each in messages]}
    return post("/api/v1/messages/bulk", read, body, key=idempotency_key)


def get_message(message_id: str) -> Call[Message]:
    return get(_path(message_id), Message.of)


def cancel(message_id: str) -> Call[Message]:
    return post(_path(message_id, "cancel"), Message.of)


def reschedule(message_id: str, at: datetime | timedelta) -> Call[Message]:
    return post(_path(message_id, "reschedule"), Message.of, _timing(at))


def list_messages(
    event_name: str | None,
    destination: str | None,
    after: datetime | str | None,
    before: datetime | str | None,
    state: str | None,
) -> Listing[Message]:
    times = {"after": after, "before": before}
    filters = {name: None if value is None else as_instant(value) for name, value in times.items()}
    return Listing(
        "/api/v1/messages",
        "messages",
        Message.of,
        {"event_name": event_name, "destination": destination, "state": state, **filters},
    )


def _timing(at: datetime | timedelta | None) -> Json:
    if at is None:
        return {}
    if isinstance(at, timedelta):
        return {"delay_seconds": at.total_seconds()}
    return {"scheduled_at": as_instant(at)}


def _path(message_id: str, rest: str = "") -> str:
    return f"/api/v1/messages/{quote(message_id, safe='')}" + (f"/{rest}" if rest else "")
