"""Messages: one-off deliveries without a schedule."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Unpack

from scheduler_app.client import calls
from scheduler_app.client.calls import Call, Listing, path_of
from scheduler_app.client.message_fields import MessageFields
from scheduler_app.client.methods import AsyncClient, SyncClient, listing, operation
from scheduler_app.client.record import Json
from scheduler_app.client.results import Message, MessageResult


class MessageOperations:
    """Every method raises SchedulerError."""

    @operation
    def schedule(
        self,
        callback_url: str | None = None,
        *,
        destination: str | None = None,
        at: datetime | timedelta | None = None,
        body: str | bytes | None = None,
        idempotency_key: str | None = None,
        **fields: Unpack[MessageFields],
    ) -> Call[Message]:
        """Schedules a message to `callback_url`, or to the named `destination` and a `path` below it.

        `at` is an aware datetime, a delay, or None for at once. `payload` is sent as JSON, `body` as it is. A
        known `id` with the same content returns that message, and raises SchedulerError with the status 409
        for other content. Raises ValueError for a datetime without an offset.
        """
        sent = {"body_base64": b64encode(body).decode()} if isinstance(body, bytes) else {"body": body}
        own = {"callback_url": callback_url, "destination": destination, **sent}
        given = calls.without_none({**own, **fields}) | _timing(at)
        return calls.post("/api/v1/messages", Message.of, given, key=idempotency_key)

    @operation
    def schedule_many(
        self, messages: Sequence[Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> Call[Sequence[MessageResult]]:
        """Up to 1,000 messages in one request, in the API's own fields; the results, in the same order, have
        `status` 201 or 200 and an `id`, or another status and a `problem`."""
        body = {"messages": [dict(each) for each in messages]}
        read = calls.each(MessageResult.of, "results")
        return calls.post("/api/v1/messages/bulk", read, body, key=idempotency_key)

    @operation
    def get(self, message_id: str) -> Call[Message]:
        """Returns the message with its history."""
        return calls.get(path_of("messages", message_id), Message.of)

    @operation
    def find(self, message_id: str) -> Call[Message | None]:
        """As `get`, but None when there is no such message."""
        return calls.find(path_of("messages", message_id), Message.of)

    @listing
    def list(
        self,
        *,
        event_name: str | None = None,
        destination: str | None = None,
        after: datetime | str | None = None,
        before: datetime | str | None = None,
        state: str | None = None,
    ) -> Listing[Message]:
        """Yields the messages matching every given filter, the soonest first; `after` is included, `before`
        not. `state` may be several: "ready_queue,retrying"."""
        filters = {"event_name": event_name, "destination": destination, "state": state}
        filters |= calls.instants({"after": after, "before": before})
        return Listing("/api/v1/messages", "messages", Message.of, filters)

    @operation
    def cancel(self, message_id: str) -> Call[Message]:
        """Cancels a message; raises SchedulerError with the status 409 once it is in flight or delivered."""
        return calls.post(path_of("messages", message_id, "cancel"), Message.of)

    @operation
    def reschedule(self, message_id: str, at: datetime | timedelta) -> Call[Message]:
        """Moves a message to another time, where `cancel` could cancel it."""
        return calls.post(path_of("messages", message_id, "reschedule"), Message.of, _timing(at))


class Messages(MessageOperations, SyncClient):
    """`Scheduler.messages`."""


class AsyncMessages(MessageOperations, AsyncClient):
    """`AsyncScheduler.messages`."""


def _timing(at: datetime | timedelta | None) -> Json:
    if isinstance(at, timedelta):
        return {"delay_seconds": at.total_seconds()}
    return calls.instants({"scheduled_at": at})
