"""Messages for asyncio: the methods of `messages.Messages`, where their meaning stands."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Unpack

from scheduler_app.client import message_operations as operations
from scheduler_app.client.async_http import AsyncHttp
from scheduler_app.client.calls import Listing
from scheduler_app.client.errors import SchedulerError
from scheduler_app.client.message_operations import MessageFields
from scheduler_app.client.results import Message, MessageResult


class AsyncMessages:
    """`AsyncScheduler.messages`."""

    def __init__(self, http: AsyncHttp, rows: Callable[[Listing[Message]], AsyncIterator[Message]]) -> None:
        """`rows` asks for the pages of a listing."""
        self._http = http
        self._rows = rows

    async def schedule(
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
        own = {"id": id, "event_name": event_name, "metadata": metadata}
        return await self._http.send(
            operations.schedule(callback_url, at, payload, body, {**own, **fields}, idempotency_key)
        )

    async def schedule_many(
        self, messages: Sequence[Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> Sequence[MessageResult]:
        return await self._http.send(operations.schedule_many(messages, idempotency_key))

    async def get(self, message_id: str) -> Message:
        return await self._http.send(operations.get_message(message_id))

    async def find(self, message_id: str) -> Message | None:
        try:
            return await self.get(message_id)
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
    ) -> AsyncIterator[Message]:
        return self._rows(operations.list_messages(event_name, after, before, state))

    async def cancel(self, message_id: str) -> Message:
        return await self._http.send(operations.cancel(message_id))

    async def reschedule(self, message_id: str, at: datetime | timedelta) -> Message:
        return await self._http.send(operations.reschedule(message_id, at))
