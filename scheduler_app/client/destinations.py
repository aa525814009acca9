"""Destinations: named receivers and their limits."""

from typing import Unpack

from scheduler_app.client import calls
from scheduler_app.client.calls import Call, Listing, path_of
from scheduler_app.client.destination_fields import DestinationFields
from scheduler_app.client.methods import AsyncClient, SyncClient, listing, operation
from scheduler_app.client.results import Destination, DestinationTest


class DestinationOperations:
    """Every method raises SchedulerError."""

    @operation
    def put(
        self, name: str, *, dry_run: bool = False, **fields: Unpack[DestinationFields]
    ) -> Call[Destination]:
        """Creates a destination, or replaces it: what is left out has its default. `result` is `created`,
        `changed` or `unchanged`; `signing_secret` is there only when this generated it. `dry_run` changes
        nothing."""
        return calls.put(path_of("destinations", name), Destination.of, fields, dry_run=dry_run)

    @operation
    def update(self, name: str, **fields: Unpack[DestinationFields]) -> Call[Destination]:
        """Sets the fields given; the others stay, and None takes one away."""
        return Call("PATCH", path_of("destinations", name), Destination.of, body=dict(fields))

    @operation
    def get(self, name: str) -> Call[Destination]:
        """Returns the destination; `flow` is how it is at this moment, where it has limits."""
        return calls.get(path_of("destinations", name), Destination.of)

    @operation
    def find(self, name: str) -> Call[Destination | None]:
        """As `get`, but None when there is no such destination."""
        return calls.find(path_of("destinations", name), Destination.of)

    @listing
    def list(self) -> Listing[Destination]:
        """Yields the destinations, newest first, without `flow`."""
        return Listing("/api/v1/destinations", "destinations", Destination.of)

    @operation
    def delete(self, name: str) -> Call[None]:
        """Removes a destination with its secrets; raises SchedulerError with the status 409 while it is in
        use."""
        return calls.delete(path_of("destinations", name))

    @operation
    def pause(self, name: str) -> Call[Destination]:
        """Stops sending; what is due waits until `resume`."""
        return calls.post(path_of("destinations", name, "pause"), Destination.of)

    @operation
    def resume(self, name: str) -> Call[Destination]:
        """Ends a pause."""
        return calls.post(path_of("destinations", name, "resume"), Destination.of)

    @operation
    def test(self, name: str) -> Call[DestinationTest]:
        """Calls the destination once, now, outside of its limits, and returns what it answered."""
        return calls.post(path_of("destinations", name, "test"), DestinationTest.of)


class Destinations(DestinationOperations, SyncClient):
    """`Scheduler.destinations`."""


class AsyncDestinations(DestinationOperations, AsyncClient):
    """`AsyncScheduler.destinations`."""
