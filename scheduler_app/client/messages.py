"""Messages: one-off deliveries without a schedule. `async_messages` is the twin of this module."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Unpack

from scheduler_app.client import message_operations as operations
from scheduler_app.client.calls import Listing
from scheduler_app.client.errors import SchedulerError
from scheduler_app.client.http import Http
from scheduler_app.client.message_operations import MessageFields
from scheduler_app.client.results import Message, MessageResult


class Messages:
    """`Scheduler.messages`. Every method raises SchedulerError."""

    def __init__(self, http: Http, rows: Callable[[Listing[Message]], Iterator[Message]]) -> None:
        """`rows` asks for the pages of a listing."""
        self._http = http
        self._rows = rows

    def schedule(
        self,
        callback_url: str,
        *,
        at: datetime | timedelta | None = None,
        id: str | None = None,
        event_name: str | None = None,
        payload: object = None,
        body: str | bytes | None = None,
        metadata: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
        **fields: Unpack[MessageFields],
    ) -> Message:
        """Schedules a message for `at`: an aware datetime, a delay, or None for at once.

        `payload` is sent as JSON, `body` as it is. A known `id` with the same content returns that message,
        and raises SchedulerError with the status 409 for other content. Raises ValueError for a datetime
        without an offset.
        """
        own = {"id": id, "event_name": event_name, "metadata": metadata}
        return self._http.send(
            operations.schedule(callback_url, at, payload, body, {**own, **fields}, idempotency_key)
        )

    def schedule_many(
        self, messages: Sequence[Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> Sequence[MessageResult]:
        """Up to 1,000 messages in one request, in the API's own fields; the results, in the same order, have
        `status` 201 or 200 and an `id`, or another status and a `problem`."""
        return self._http.send(operations.schedule_many(messages, idempotency_key))

    def get(self, message_id: str) -> Message:
        """Returns the message with its history."""
        return self._http.send(operations.get_message(message_id))

    def find(self, message_id: str) -> Message | None:
        """As `get`, but None when there is no such message."""
        try:
            return self.get(message_id)
        except SchedulerError as error:
            if error.status == 404:
                return None
            raise

    def list(
        self,
        *,
        event_name: str | None = None,
        after: datetime | str | None = None,
        before: datetime | str | None = None,
        state: str | None = None,
    ) -> Iterator[Message]:
        """Yields the messages matching every given filter, the soonest first; `after` is included, `before`
        not. `state` may be several: "ready_queue,retrying"."""
        return self._rows(operations.list_messages(event_name, after, before, state))

    def cancel(self, message_id: str) -> Message:
        """Cancels a message; raises SchedulerError with the status 409 once it is in flight or delivered."""
        return self._http.send(operations.cancel(message_id))

    def reschedule(self, message_id: str, at: datetime | timedelta) -> Message:
        """Moves a message to another time, where `cancel` could cancel it."""
        return self._http.send(operations.reschedule(message_id, at))
