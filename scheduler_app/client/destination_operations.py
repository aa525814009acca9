"""Each operation on destinations as a call or a listing. `destinations.py` says what the arguments mean."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict
from urllib.parse import quote

from scheduler_app.client.calls import Call, Listing, delete, get, patch, post, put
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


def get_destination(name: str) -> Call[Destination]:
    return get(_path(name), Destination.of)


def list_destinations() -> Listing[Destination]:
    return Listing("/api/v1/destinations", "destinations", Destination.of)


def put_destination(name: str, fields: Mapping[str, Any], dry_run: bool) -> Call[Destination]:
    return put(_path(name), Destination.of, dict(fields), dry_run=dry_run)


def update(name: str, fields: Mapping[str, Any]) -> Call[Destination]:
    return patch(_path(name), Destination.of, dict(fields))


def delete_destination(name: str) -> Call[None]:
    return delete(_path(name))


def pause(name: str) -> Call[Destination]:
    return post(_path(name, "pause"), Destination.of)


def resume(name: str) -> Call[Destination]:
    return post(_path(name, "resume"), Destination.of)


def test(name: str) -> Call[DestinationTest]:
    return post(_path(name, "test"), DestinationTest.of)


def _path(name: str, rest: str = "") -> str:
    return f"/api/v1/destinations/{quote(name, safe='')}" + (f"/{rest}" if rest else "")
