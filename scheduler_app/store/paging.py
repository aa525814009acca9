"""Pages of lists that are in the order of time.

A page begins after a row, and not after a number of rows: rows that are inserted or removed elsewhere neither
repeat a row nor hide one.
"""

from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from pymongo import ASCENDING, DESCENDING
from pymongo.collection import Collection as MongoCollection

from scheduler_app.clock import monotonic
from scheduler_app.domain.stored_fields import EARLIEST, LATEST
from scheduler_app.store.mongo import Document

Row = TypeVar("Row")

#: The most rows that a call looks at for a filter that no index answers. Its page is short then, and
#: `Page.next` goes on from there. That takes less than a second, unless documents are large.
MAX_EXAMINED = 100_000
#: A call looks for so long, unless its window says another time.
MAX_SECONDS = 3.0
#: The same, as a limit that MongoDB keeps.
MAX_MS = int(MAX_SECONDS * 1000)
BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Position:
    """A row's place in a list ordered by (moment, id), neither of which ever changes; or in one by name."""

    moment: datetime
    id: str
    name: str = ""
    """In a list by name: the row's."""


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows of a list; `next` is where the next page begins, None at the end."""

    rows: list[Row]
    next: Position | None


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The part of a list that is asked for: `since` inclusive, `until` exclusive, strictly after `after`.

    Where a filter is looked for row by row, the page ends after that many `seconds`; `Page.next` continues.
    """

    limit: int
    after: Position | None = None
    skip: int = 0
    since: datetime | None = None
    until: datetime | None = None
    seconds: float = MAX_SECONDS


#: Returns those of the given values that match.
JudgedValues = Callable[[Collection[str]], Collection[str]]


@dataclass(frozen=True, slots=True)
class RowFilter:
    """The part of a filter that the list's index cannot answer."""

    matches: Document
    """An expression on a row, true for rows that match. It must not fail on any row, corrupt ones
    included."""
    field: str = ""
    """The field whose values `known` judges, a batch of rows at a time, where the row alone does not tell."""
    known: JudgedValues | None = None


@dataclass(frozen=True, slots=True)
class PagedQuery:
    """A list: the rows of a collection that match `which`, in the order of an index that ends in (`moment`,
    `_id`), both descending; `ascending` reads it from its other end. A document whose `moment` is not a
    date is in no list."""

    collection: MongoCollection[Document]
    moment: str
    which: Document
    hint: str | None = None
    row_filter: RowFilter | None = None
    ascending: bool = False
    merged: bool = False
    """Whether `which` is of several ranges of the index, each with few rows of one moment."""

    def page(self, window: PageRequest) -> Page[Document]:
        if self.row_filter is None:
            found = self._find(window, window.limit + 1, skip=window.skip).to_list()
            rows = found[: window.limit]
            return Page(rows, self._position(rows[-1]) if len(found) > len(rows) else None)
        chosen, following = self._choose(self.row_filter, window)
        # A row that no longer matches is not shown.
        still = {"_id": {"$in": chosen}, "$expr": self.row_filter.matches}
        rows = list(self.collection.find(still, hint="_id_")) if chosen else []
        place = {str(row_id): number for number, row_id in enumerate(chosen)}
        rows.sort(key=lambda row: place[str(row["_id"])])
        return Page(rows, following)

    def count(self, window: PageRequest) -> tuple[int, bool]:
        """How many rows a page would have, and whether there may be more."""
        if self.row_filter is None:
            which, most = self._query(window), window.limit
            found = self.collection.count_documents(which, hint=self.hint, limit=most + 1)
            return min(found, most), found > most
        chosen, following = self._choose(self.row_filter, window)
        return len(chosen), following is not None

    def _choose(self, row_filter: RowFilter, window: PageRequest) -> tuple[list[Any], Position | None]:
        """The ids of a page, and where the next page begins, among as many rows as one call may look at."""
        chosen: list[Any] = []
        seen: Document | None = None
        most, wanted = MAX_EXAMINED + window.skip, window.skip + window.limit
        examined, end = 0, monotonic() + window.seconds
        with closing(self._batches(row_filter, window, most + 1)) as batches:
            for number, batch in enumerate(batches):
                fitting = _fitting(row_filter, batch)
                # However long it took, the first batch is looked at whole: each page goes on by some rows.
                late = number > 0 and monotonic() > end and len(chosen) >= window.skip
                for row, fits in zip(batch, fitting, strict=True):
                    over = examined == most or late
                    if seen and (over or (fits and len(chosen) == wanted)):
                        return chosen[window.skip :], self._position(seen)
                    if fits:
                        chosen.append(row["_id"])
                    seen = row
                    examined += 1
        return chosen[window.skip :], None

    def _batches(
        self, row_filter: RowFilter, window: PageRequest, most: int
    ) -> Generator[list[Document], None, None]:
        """Rows in the list's order, with what is to be judged: as many as a page wants first, where most
        pages are found, and then a thousand at a time."""
        fields: Document = {**{key: 1 for key, _ in self._order()}, "fits": row_filter.matches}
        if row_filter.field:
            fields[row_filter.field] = 1
        few = min(most, 2 * (window.skip + window.limit))
        first = self._find(window, few, fields).to_list()
        yield first
        if few <= len(first) < most:
            onward = replace(window, after=self._position(first[-1]))
            with self._find(onward, most - few, fields).batch_size(BATCH) as cursor:
                while batch := cursor.to_list(BATCH):
                    yield batch

    def _find(self, window: PageRequest, limit: int, fields: Document | None = None, *, skip: int = 0) -> Any:
        return self.collection.find(
            self._query(window), fields, sort=self._order(), skip=skip, limit=limit, hint=self.hint
        )

    def _order(self) -> list[tuple[str, int]]:
        direction = ASCENDING if self.ascending else DESCENDING
        return [(self.moment, direction), ("_id", direction)]

    def _query(self, window: PageRequest) -> Document:
        # A row whose moment is not a date has no place in the list: it would be lost between two pages, or
        # come twice.
        since: Document = {"$gte": window.since or EARLIEST}
        until: Document = {"$lt": window.until or LATEST}
        last = window.after
        if last is None:
            return self.which | {self.moment: since | until}
        if self.ascending:
            before, beyond = last.moment < since["$gte"], last.moment >= until["$lt"]
            onward, further = until | {"$gt": last.moment}, {"$gt": last.id}
        else:
            before, beyond = last.moment >= until["$lt"], last.moment < since["$gte"]
            onward, further = since | {"$lt": last.moment}, {"$lt": last.id}
        if before:
            return self.which | {self.moment: since | until}
        later = self.which | {self.moment: onward}
        if beyond:
            return later
        if self.merged:
            # The planner merges several ranges, and not those of an $or: it would sort.
            onward |= {"$gte" if self.ascending else "$lte": last.moment}
            onward.pop("$gt" if self.ascending else "$lt")
            seen = {"$lte" if self.ascending else "$gte": last.id}
            return self.which | {self.moment: onward, "$nor": [{self.moment: last.moment, "_id": seen}]}
        # Two ranges that the planner merges in order: thousands of rows may share the last one's moment, and
        # none of those already seen is passed over again.
        return {"$or": [self.which | {self.moment: last.moment, "_id": further}, later]}

    def _position(self, row: Document) -> Position:
        return Position(row[self.moment], str(row["_id"]))


class PagedByName(PagedQuery):
    """The same in the order of names, of which several may be alike: of an index that ends in (`name`
    ascending, `moment` and `_id` descending). A row whose name is not text is in no such list; it has no
    window of time."""

    __slots__ = ()

    def _order(self) -> list[tuple[str, int]]:
        return [("name", ASCENDING), (self.moment, DESCENDING), ("_id", DESCENDING)]

    def _query(self, window: PageRequest) -> Document:
        dated = self.which | {self.moment: {"$gte": EARLIEST, "$lt": LATEST}}
        last = window.after
        if last is None:
            return dated | {"name": {"$gte": ""}}
        alike = self.which | {"name": last.name}
        return {
            "$or": [
                alike | {self.moment: last.moment, "_id": {"$lt": last.id}},
                alike | {self.moment: {"$gte": EARLIEST, "$lt": last.moment}},
                dated | {"name": {"$gt": last.name}},
            ]
        }

    def _position(self, row: Document) -> Position:
        return Position(row[self.moment], str(row["_id"]), row["name"])


def _fitting(row_filter: RowFilter, batch: Sequence[Document]) -> list[bool]:
    fitting = [row["fits"] is True for row in batch]
    if row_filter.known is None:
        return fitting
    # Only text is asked for; another value may not even have a hash.
    values = [
        str(row[row_filter.field]) if isinstance(row.get(row_filter.field), str) else "" for row in batch
    ]
    asked = {value for value, fits in zip(values, fitting, strict=True) if fits and value}
    known = row_filter.known(asked) if asked else ()
    return [fits and value in known for value, fits in zip(values, fitting, strict=True)]


def ascii_lower(words: str) -> str:
    """In lower case as mongod makes it: letters of ASCII alone."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in words)


#: What the first look goes on after.
FIRST: Final = ("", "")


def later_than(last: tuple[str, str]) -> Document:
    """The condition of what is after a tenant's document in the order of tenants and ids."""
    tenant, own_id = last
    return {"$or": [{"tenant": tenant, "_id": {"$gt": own_id}}, {"tenant": {"$gt": tenant}}]}


def last_of(rows: Sequence[Document], *, limit: int) -> tuple[str, str]:
    """The document after which the next look goes on, whether it could be read or not; before all others
    where these were the last ones."""
    return FIRST if len(rows) < limit else (str(rows[-1]["tenant"]), str(rows[-1]["_id"]))
