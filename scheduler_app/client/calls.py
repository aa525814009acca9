"""Requests as values, before they are sent, and pages of them: what both clients have in common."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

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
    #: The first try, whose answer was lost, has deleted it.
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


def get(path: str, read: Callable[[Json], T], query: Json | None = None) -> Call[T]:
    """Asks for an object; filters of `query` that are None are left out."""
    return Call("GET", path, read, without_none(query or {}))


def post(
    path: str,
    read: Callable[[Json], T],
    body: Json | None = None,
    *,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[T]:
    """Does something once; `key` is the Idempotency-Key, a new one by default."""
    return Call("POST", path, read, _dry(dry_run), body or {}, key or os.urandom(16).hex())


def put(path: str, read: Callable[[Json], T], body: Json, *, dry_run: bool = False) -> Call[T]:
    """Changes or creates what is at `path`."""
    return Call("PUT", path, read, _dry(dry_run), body)


def patch(path: str, read: Callable[[Json], T], body: Json) -> Call[T]:
    """Changes some fields of what is at `path`."""
    return Call("PATCH", path, read, body=body)


def delete(path: str) -> Call[None]:
    """Deletes what is at `path`."""
    return Call("DELETE", path, lambda _: None, accept_404_after_retry=True)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some rows of a list, and where the next page begins."""

    rows: tuple[T, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """A list that is asked for page by page; `rows` is its name in the answers."""

    path: str
    rows: str
    read: Callable[[Json], T]
    filters: Json = field(default_factory=dict)

    def page(self, cursor: str | None) -> Call[Page[T]]:
        """Asks for the page at `cursor`, the first one for None."""
        return get(self.path, self._page, self.filters | {"limit": _A_PAGE, "cursor": cursor})

    def _page(self, answer: Json) -> Page[T]:
        return Page(tuple(map(self.read, answer[self.rows])), answer.get("next_cursor"))


class EditOfMany:
    """An edit that is made page by page; `done` is the name of its count in the answers."""

    def __init__(self, path: str, done: str, which: Json) -> None:
        self._path, self._done = path, done
        self._body = without_none(which) | {"limit": _A_PAGE}
        self._count = self._omitted = 0
        self._skipped: list[Json] = []
        self._ended = False

    def calls(self) -> Iterator[Call[None]]:
        """Yields the next call once the one before has been answered."""
        while not self._ended:
            yield post(self._path, self._add, self._body)

    @property
    def count(self) -> int:
        """How many were edited so far."""
        return self._count

    def result(self) -> EditResult:
        """Of all pages together."""
        answer: Json = {self._done: self._count, "skipped": self._skipped}
        if self._omitted:
            answer["skipped_omitted"] = self._omitted
        return EditResult.of(answer | {"count": self._count}, as_json=answer)

    def _add(self, page: Json) -> None:
        self._count += page[self._done]
        room = _SKIPPED - len(self._skipped)
        self._skipped += page["skipped"][:room]
        self._omitted += len(page["skipped"][room:]) + page.get("skipped_omitted", 0)
        cursor = page.get("next_cursor")
        self._ended = not cursor
        self._body = self._body | {"cursor": cursor}
        if page.get("last_due_at"):
            # A page without events has none: the rate counts on from the one before.
            self._body["start_at"] = page["last_due_at"]


def without_none(values: Json) -> Json:
    """The values that are given."""
    return {name: value for name, value in values.items() if value is not None}


def _dry(dry_run: bool) -> Json:
    return {"dry_run": "true"} if dry_run else {}
