"""Lists, newest first. A page begins after a row, not after a number of rows: what comes and goes elsewhere
neither repeats nor hides anything."""

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, Generic, TypeVar

from pymongo import DESCENDING
from pymongo.collection import Collection

from scheduler_app.store.field_types import EARLIEST, LATEST
from scheduler_app.store.mongo import Document

Row = TypeVar("Row")

#: A filter that no index has may pass over so many rows in one call; the page that it then gives is short,
#: and its `following` goes on from there. Under a second at worst.
MAX_EXAMINED = 100_000
_BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Position:
    """A row's place in a list ordered by (moment, id), both descending. Neither ever changes."""

    moment: datetime
    id: str


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows of a list; `following` is where the next page begins, None at the end."""

    rows: list[Row]
    following: Position | None


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a list that is asked for: `since` inclusive, `until` exclusive, strictly after `after`."""

    limit: int
    after: Position | None = None
    skip: int = 0
    since: datetime | None = None
    until: datetime | None = None


def newest(
    collection: Collection[Document],
    moment: str,
    which: Document,
    window: Window,
    *,
    rest: Document | None = None,
    hint: str | None = None,
) -> Page[Document]:
    """A page of the documents that match `which`, by an index that ends in (`moment`, `_id`), descending.

    `rest` is what that index cannot tell: `{field: {"$in": […]}}`. A document whose `moment` is no date is in
    no list.
    """
    if rest is None:
        query, order = _after(moment, which, window), [(moment, DESCENDING), ("_id", DESCENDING)]
        found = list(collection.find(query, sort=order, skip=window.skip, limit=window.limit + 1, hint=hint))
        rows = found[: window.limit]
        return Page(rows, _position(rows[-1], moment) if len(found) > len(rows) else None)
    ((field, choice),) = rest.items()
    allowed = set(choice["$in"])
    chosen: list[str] = []
    seen: Document | None = None
    most = MAX_EXAMINED + window.skip
    with closing(_scan(collection, moment, field, which, window, most + 1, hint)) as cursor:
        for row in islice(cursor, most):
            if isinstance(row.get(field), str) and row[field] in allowed:
                if len(chosen) == window.skip + window.limit:
                    break
                chosen.append(row["_id"])
            seen = row
        else:
            # Either every row was seen, or as many as one call may pass over.
            seen = seen if next(cursor, None) else None
    ids = chosen[window.skip :]
    # What has left the state in between is no longer to be shown.
    rows = list(collection.find({"_id": {"$in": ids}} | rest)) if ids else []
    rows.sort(key=lambda row: (row[moment], str(row["_id"])), reverse=True)
    return Page(rows, _position(seen, moment) if seen else None)


def _scan(
    collection: Collection[Document],
    moment: str,
    field: str,
    which: Document,
    window: Window,
    most: int,
    hint: str | None,
) -> Generator[Document, None, None]:
    """Rows in the list's order, with `field`: as many as a page wants first, where most pages are found, and
    then a thousand at a time."""
    order, fields = [(moment, DESCENDING), ("_id", DESCENDING)], {"_id": 1, moment: 1, field: 1}
    few = min(most, 2 * (window.skip + window.limit))
    first = list(collection.find(_after(moment, which, window), fields, sort=order, limit=few, hint=hint))
    yield from first
    if few <= len(first) < most:
        rest = _after(moment, which, replace(window, after=_position(first[-1], moment)))
        with collection.find(
            rest, fields, sort=order, limit=most - few, batch_size=_BATCH, hint=hint
        ) as cursor:
            yield from cursor


def _position(row: Document, moment: str) -> Position:
    return Position(row[moment], str(row["_id"]))


def _after(moment: str, which: Document, window: Window) -> Document:
    # What is no date has no place in the list: between two pages it would be lost, or come twice.
    since: dict[str, Any] = {"$gte": window.since or EARLIEST}
    until: dict[str, Any] = {"$lt": window.until or LATEST}
    last = window.after
    if last is None or (window.until and last.moment >= window.until):
        return which | {moment: since | until}
    older = which | {moment: since | {"$lt": last.moment}}
    if window.since and last.moment < window.since:
        return older
    # Two ranges that the planner merges in order: thousands of rows may share the last one's moment, and
    # none of those already seen is passed over again.
    return {"$or": [which | {moment: last.moment, "_id": {"$lt": last.id}}, older]}
