"""Destinations: named receivers and their limits. `async_destinations` is the twin of this module."""

from collections.abc import Callable, Iterator
from typing import Unpack

from scheduler_app.client import destination_operations as operations
from scheduler_app.client.calls import Listing
from scheduler_app.client.destination_operations import DestinationFields
from scheduler_app.client.errors import SchedulerError
from scheduler_app.client.http import Http
from scheduler_app.client.results import Destination, DestinationTest


class Destinations:
    """`Scheduler.destinations`. Every method raises SchedulerError."""

    def __init__(self, http: Http, rows: Callable[[Listing[Destination]], Iterator[Destination]]) -> None:
        """`rows` asks for the pages of a listing."""
        self._http = http
        self._rows = rows

    def put(self, name: str, *, dry_run: bool = False, **fields: Unpack[DestinationFields]) -> Destination:
        """Creates a destination, or replaces it: what is left out has its default. `result` is `created`,
        `changed` or `unchanged`; `signing_secret` is there only when this generated it. `dry_run` changes
        nothing."""
        return self._http.send(operations.put_destination(name, fields, dry_run))

    def update(self, name: str, **fields: Unpack[DestinationFields]) -> Destination:
        """Sets the fields given; the others stay, and None takes one away."""
        return self._http.send(operations.update(name, fields))

    def get(self, name: str) -> Destination:
        """Returns the destination; `flow` is how it is at this moment, where it has limits."""
        return self._http.send(operations.get_destination(name))

    def find(self, name: str) -> Destination | None:
        """As `get`, but None when there is no such destination."""
        try:
            return self.get(name)
        except SchedulerError as error:
            if error.status == 404:
                return None
            raise

    def list(self) -> Iterator[Destination]:
        """Yields the destinations, newest first, without `flow`."""
        return self._rows(operations.list_destinations())

    def delete(self, name: str) -> None:
        """Removes a destination with its secrets; raises SchedulerError with the status 409 while it is in
        use."""
        self._http.send(operations.delete_destination(name))

    def pause(self, name: str) -> Destination:
        """Stops sending; what is due waits until `resume`."""
        return self._http.send(operations.pause(name))

    def resume(self, name: str) -> Destination:
        return self._http.send(operations.resume(name))

    def test(self, name: str) -> DestinationTest:
        """Calls the destination once, now, outside of its limits, and returns what it answered."""
        return self._http.send(operations.test(name))
