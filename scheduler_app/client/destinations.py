"""Destinations: named receivers and their limits."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypedDict, Unpack

from scheduler_app.client import calls
from scheduler_app.client.calls import Call, Listing, path_of
from scheduler_app.client.methods import AsyncClient, SyncClient, listing, operation
from scheduler_app.client.results import Destination, DestinationTest


class DestinationFields(TypedDict, total=False):
    """The fields of a destination as the API takes them; None takes one away."""

    url: Annotated[str, "The http or https URL to call, with a query where all need one"]
    method: Annotated[str | None, "The method of schedules that give none"]
    headers: Annotated[Mapping[str, str], "Sent with every request"]
    auth: Annotated[
        Mapping[str, str] | None,
        "The credentials of every request: `basic` with `username` and `password`, or `bearer` with `token`",
    ]
    allowed_methods: Annotated[Sequence[str], "The methods that schedules may use; all of them unless given"]
    signing: Annotated[bool, "Whether requests are signed (Standard Webhooks)"]
    max_retries: Annotated[int | None, "How many attempts may follow the first one, for all that come here"]
    retry_backoff_seconds: Annotated[float | None, "The delay before the first retry, for all"]
    retry_backoff_max_seconds: Annotated[float | None, "The longest delay before a retry, for all"]
    retry_codes: Annotated[
        Sequence[int | str] | None, "The statuses after which an attempt is retried, for all"
    ]
    success_codes: Annotated[Sequence[int | str] | None, "The statuses that complete an event, for all"]
    timeout_seconds: Annotated[float | None, "How long the whole answer may take, for all"]
    rate_per_second: Annotated[
        float | None, "How many requests may start each second, of all workers together"
    ]
    burst: Annotated[int, "How many may start at one instant after a quiet time; 1 unless given"]
    concurrency: Annotated[int | None, "How many requests may be in flight, of all workers together"]
    breaker: Annotated[
        Mapping[Literal["failures", "open_seconds"], float] | None,
        "After `failures` in a row nothing is sent for `open_seconds`; then one probe at a time",
    ]
    queue: Annotated[
        str | None, "Which workers send what comes here, where the schedule or message names no queue"
    ]
    paused: Annotated[bool, "Nothing is sent; what is due waits until it is resumed"]


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
