"""Destinations for asyncio: the methods of `destinations.Destinations`, where their meaning stands."""

from collections.abc import AsyncIterator, Callable
from typing import Unpack

from scheduler_app.client import destination_operations as operations
from scheduler_app.client.async_http import AsyncHttp
from scheduler_app.client.calls import Listing
from scheduler_app.client.destination_operations import DestinationFields
from scheduler_app.client.errors import SchedulerError
from scheduler_app.client.results import Destination, DestinationTest


class AsyncDestinations:
    """`AsyncScheduler.destinations`."""

    def __init__(
        self, http: AsyncHttp, rows: Callable[[Listing[Destination]], AsyncIterator[Destination]]
    ) -> None:
        """`rows` asks for the pages of a listing."""
        self._http = http
        self._rows = rows

    async def put(
        self, name: str, *, dry_run: bool = False, **fields: Unpack[DestinationFields]
    ) -> Destination:
        return await self._http.send(operations.put_destination(name, fields, dry_run))

    async def update(self, name: str, **fields: Unpack[DestinationFields]) -> Destination:
        return await self._http.send(operations.update(name, fields))

    async def get(self, name: str) -> Destination:
        return await self._http.send(operations.get_destination(name))

    async def find(self, name: str) -> Destination | None:
        try:
            return await self.get(name)
        except SchedulerError as error:
            if error.status == 404:
                return None
            raise

    def list(self) -> AsyncIterator[Destination]:
        return self._rows(operations.list_destinations())

    async def delete(self, name: str) -> None:
        await self._http.send(operations.delete_destination(name))

    async def pause(self, name: str) -> Destination:
        return await self._http.send(operations.pause(name))

    async def resume(self, name: str) -> Destination:
        return await self._http.send(operations.resume(name))

    async def test(self, name: str) -> DestinationTest:
        return await self._http.send(operations.test(name))
