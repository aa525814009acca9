"""Requests as values, before they are sent, and what they are made of: what both clients have in common."""

import json
import os
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

from scheduler_app.client.record import Json
from scheduler_app.client.results import EditResult

T = TypeVar("T")

#: What an edit of many calls after each page, with the number of things that it has edited.
Progress = Callable[[int], None]

_A_PAGE = 100
#: Schedules that an edit of many left as they are, of which it tells one by one.
_SKIPPED = 100


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request; `read` makes the result of the JSON that is answered."""

    method: str
    path: str
    read: Callable[[Json], T]
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Json | None = None
    #: POST alone has one: the API acts once, however often it is asked.
    idempotency_key: str | None = None
    #: A receiver's own credential, for the event whose callback carried it.
    completion_token: str | None = field(default=None, repr=False)
    #: `read` is given {} for a 404: because nothing there is a result.
    accept_404: bool = False
    #: The same after a retry: the first try, whose answer was lost, has deleted it.
    accept_404_after_retry: bool = False

    @property
    def target(self) -> str:
        """The path with the query."""
        return f"{self.path}?{urlencode(self.query, doseq=True)}" if self.query else self.path

    @property
    def content(self) -> bytes | None:
        """The body in JSON. Raises ValueError for a number that JSON does not have."""
        return None if self.body is None else json.dumps(self.body, allow_nan=False).encode()

    @property
    def headers(self) -> dict[str, str]:
        """Without the API's key."""
        headers = {} if self.body is None else {"Content-Type": "application/json"}
        if self.completion_token:
            headers["X-Scheduler-Completion-Token"] = self.completion_token
        return headers | ({"Idempotency-Key": self.idempotency_key} if self.idempotency_key else {})


def tenant_header(tenant: str | None) -> dict[str, str]:
    """The tenant in which a key of the installation acts."""
    return {} if tenant is None else {"Scheduler-Tenant": tenant}


#: Calls of which each follows from the answers before, and the result of them all.
Steps = Generator[Call[Any], Any, T]


def get(path: str, read: Callable[[Json], T], query: Json | None = None) -> Call[T]:
    """Asks for an object; filters of `query` that are None are left out."""
    return Call("GET", path, read, without_none(query or {}))


def find(path: str, read: Callable[[Json], T]) -> Call[T | None]:
    """As `get`, but None when there is nothing at `path`."""
    return Call("GET", path, lambda answer: read(answer) if answer else None, accept_404=True)


def post(
    path: str,
    read: Callable[[Json], T],
    body: Json | None = None,
    *,
    key: str | None = None,
    dry_run: bool = False,
    token: str | None = None,
) -> Call[T]:
    """Does something once; `key` is the Idempotency-Key, a new one by default."""
    return Call("POST", path, read, _dry(dry_run), body or {}, key or os.urandom(16).hex(), token)


def put(path: str, read: Callable[[Json], T], body: Mapping[str, Any], *, dry_run: bool = False) -> Call[T]:
    """Changes or creates what is at `path`."""
    return Call("PUT", path, read, _dry(dry_run), dict(body))


def delete(path: str) -> Call[None]:
    """Deletes what is at `path`."""
    return Call("DELETE", path, lambda _: None, accept_404_after_retry=True)


def each(read: Callable[[Json], T], rows: str) -> Callable[[Json], tuple[T, ...]]:
    """Reads all of the list `rows` of an answer."""
    return lambda answer: tuple(map(read, answer[rows]))


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """A list that is asked for page by page; `rows` is its name in the answers."""

    path: str
    rows: str
    read: Callable[[Json], T]
    filters: Json = field(default_factory=dict)

    def page(self, cursor: str | None) -> Call[tuple[tuple[T, ...], str | None]]:
        """Asks for the rows at `cursor`, the first ones for None, and for where the next page begins."""
        return get(self.path, self._page, self.filters | {"limit": _A_PAGE, "cursor": cursor})

    def _page(self, answer: Json) -> tuple[tuple[T, ...], str | None]:
        return each(self.read, self.rows)(answer), answer.get("next_cursor")


def edit_of_many(path: str, done: str, which: Json, progress: Progress | None) -> Steps[EditResult]:
    """An edit that is made page by page; `done` is the name of its count in the answers."""

    def read(answer: Json) -> EditResult:
        return EditResult.of(answer | {"count": answer[done]}, as_json=answer)

    body = without_none(which) | {"limit": _A_PAGE}
    skipped: list[Json] = []
    count = omitted = 0
    while True:
        page: EditResult = yield post(path, read, body)
        count += page.count
        if progress is not None:
            progress(count)
        room = _SKIPPED - len(skipped)
        skipped += page.get("skipped", [])[:room]
        omitted += len(page.skipped[room:]) + page.skipped_omitted
        cursor = page.get("next_cursor")
        if not cursor:
            more = {"skipped_omitted": omitted} if omitted else {}
            return read({done: count, "skipped": skipped, **more})
        # A page without events has no `last_due_at`: the rate counts on from the one before.
        body = body | {"cursor": cursor} | without_none({"start_at": page.get("last_due_at")})


def path_of(collection: str, name: str, rest: str = "") -> str:
    """The path of what has this id or name, or of something below it. HTTP clients and proxies take `.` and
    `..` for steps in the path, also quoted: these two names are quoted twice."""
    quoted = "%252E" * len(name) if name in (".", "..") else quote(name, safe="")
    return f"/api/v1/{collection}/{quoted}" + (f"/{rest}" if rest else "")


def wire_values(fields: Mapping[str, object]) -> Json:
    """Fields as JSON has them: datetimes as text. Raises ValueError for one without an offset, unless the
    fields name the `timezone` that it is local to."""
    as_text = datetime.isoformat if "timezone" in fields else as_instant
    return {name: as_text(value) if isinstance(value, datetime) else value for name, value in fields.items()}


def instants(given: Mapping[str, datetime | str | None]) -> Json:
    """Those that are given, as the API takes them. Raises ValueError for a datetime without an offset."""
    return {name: as_instant(value) for name, value in given.items() if value is not None}


def as_instant(value: datetime | str) -> str:
    """The instant as the API takes it; text stays what it is. Raises ValueError for a datetime without an
    offset."""
    if not isinstance(value, datetime):
        return str(value)
    if value.tzinfo is None:
        raise ValueError("an instant needs an offset: datetime(…, tzinfo=UTC)")
    return value.astimezone(UTC).isoformat()


def without_none(values: Mapping[str, Any]) -> Json:
    """The values that are given."""
    return {name: value for name, value in values.items() if value is not None}


def _dry(dry_run: bool) -> Json:
    return {"dry_run": "true"} if dry_run else {}
