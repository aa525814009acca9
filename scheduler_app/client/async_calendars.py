"""Calendars for asyncio: the methods of `calendars.Calendars`, where their meaning stands."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import date
from typing import Any

from scheduler_app.client import calendar_operations as operations
from scheduler_app.client.async_http import AsyncHttp
from scheduler_app.client.calls import Listing
from scheduler_app.client.record import Record


class AsyncCalendars:
    """`AsyncScheduler.calendars`."""

    def __init__(self, http: AsyncHttp, rows: Callable[[Listing[Record]], AsyncIterator[Record]]) -> None:
        """`rows` asks for the pages of a listing."""
        self._http = http
        self._rows = rows

    async def put(self, name: str, calendar: Mapping[str, Any], *, dry_run: bool = False) -> Record:
        return await self._http.send(operations.put_calendar(name, calendar, dry_run))

    async def get(self, name: str) -> Record:
        return await self._http.send(operations.get_calendar(name))

    def list(self) -> AsyncIterator[Record]:
        return self._rows(operations.list_calendars())

    async def days(self, name: str, first: date | str, last: date | str) -> Sequence[Record]:
        return await self._http.send(operations.days(name, first, last))

    async def delete(self, name: str) -> None:
        await self._http.send(operations.delete_calendar(name))
