"""Lists of events, in the order of their run times."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pymongo import ASCENDING, DESCENDING

from scheduler_app.domain.action import UNKNOWN_ORIGIN
from scheduler_app.domain.retry import Codes
from scheduler_app.domain.states import LIVING, Kind, State
from scheduler_app.store.events.events import EventRecord, to_record
from scheduler_app.store.indexes import DEAD_OF_CAUSE
from scheduler_app.store.mongo import Document, Mongo
from scheduler_app.store.paging import MAX_MS, Page, PagedQuery, PageRequest, RowFilter, ascii_lower

#: Up to this many schedules, events are merged from an index; of more, each event's schedule is asked for.
#: mongod merges at most 200 ranges in the order of their index, and sorts more of them.
SCHEDULES_MERGED = 50
#: Schedules with a tag whose dead letters are told from others'.
MOST_TAGGED = 10_000


@dataclass(frozen=True, slots=True)
class EventListFilter:
    """Filters of a list of events, beside their schedule and their states; all that are given must match."""

    origin: str | None = None
    """Of the URL that the schedule had when the event was made."""
    status: Codes | None = None
    """Of the last attempt's answer."""
    error: str | None = None
    """Part of the last attempt's error or of the history's last line, whatever the case of its letters."""
    tag: str | None = None
    """Of the schedule, as it is now."""
    cause: str | None = None
    """The mark of the cause of their last failure; only of dead letters."""
    among: tuple[str, ...] | None = None
    """The ids of the schedules that they are of."""
    early_withdrawals: bool = True
    """Whether events are included that were cancelled before they were due."""


NO_FILTER = EventListFilter()


@dataclass(frozen=True, slots=True)
class ExpandedOccurrence:
    """An occurrence that is an event, whatever became of it."""

    event_id: str
    schedule_id: str
    run_time: datetime
    revision: int


@dataclass(frozen=True, slots=True)
class ExpandedOccurrences:
    """Occurrences in the order of their schedules' ids; `incomplete_from` is the first schedule of which some
    are missing, as of all after it."""

    rows: list[ExpandedOccurrence]
    incomplete_from: str | None


@dataclass(frozen=True, slots=True)
class DeadLetterCause:
    """Why some dead letters failed: what their last attempts have in common."""

    origin: str
    status: int | None
    """What the receiver answered; None if there was no answer."""
    error: str | None
    """The beginning of the error, or of the history's last line where no attempt was made."""
    count: int
    first: datetime | None
    """The earliest run time among them."""
    last: datetime | None
    schedules: tuple[str, ...] = ()
    """The ids of their schedules, in order; messages have none."""


@dataclass(frozen=True, slots=True)
class DeadLetterCauses:
    """The causes of the newest dead letters, the most frequent first, and how many dead letters were read."""

    rows: list[DeadLetterCause]
    read: int


class EventLists:
    """Reads only. No index has every state, because each transition of each event would write to it. Events
    in `error` have an index of their own, and so have the pending events of a schedule. Other states, and
    the filters of a Narrowing, are checked row by row among what an index returns."""

    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")
        self._schedules = mongo.collection("schedules")

    def page(
        self,
        tenant: str,
        window: PageRequest,
        *,
        schedule_id: str | None = None,
        states: Collection[State] | None = None,
        narrowing: EventListFilter = NO_FILTER,
        soonest_first: bool = False,
    ) -> Page[EventRecord]:
        """A tenant's events, of one schedule or of all; in these states, or in any. The window's times are
        run times, and the newest comes first unless `soonest_first`.
        """
        listing = self._listing(tenant, schedule_id, states, narrowing, soonest_first=soonest_first)
        if listing is None:
            return Page([], None)
        found = listing.page(window)
        return Page(list(map(to_record, found.rows)), found.next)

    def count_dead(
        self,
        tenant: str,
        window: PageRequest,
        *,
        schedule_id: str | None = None,
        narrowing: EventListFilter = NO_FILTER,
    ) -> tuple[int, bool]:
        """How many dead letters a page would have, and whether there may be more."""
        listing = self._listing(tenant, schedule_id, {State.ERROR}, narrowing)
        return listing.count(window) if listing else (0, False)

    def _listing(
        self,
        tenant: str,
        schedule_id: str | None,
        states: Collection[State] | None,
        narrowing: EventListFilter,
        *,
        soonest_first: bool = False,
    ) -> PagedQuery | None:
        """None where no event can match."""
        fits = _filter_expressions(narrowing)
        field, known = "", None
        owners: list[str] | None = None if schedule_id is None else [schedule_id]
        if narrowing.tag is not None:
            tagged = self._tagged(tenant, narrowing.tag, SCHEDULES_MERGED + 1)
            if len(tagged) <= SCHEDULES_MERGED:
                owners = tagged if owners is None else [each for each in owners if each in tagged]
            else:
                field, known = "schedule_id", self._among_tagged(narrowing.tag)
        if owners == []:
            return None
        which, hint = _index(tenant, owners, states)
        if narrowing.cause is not None:
            which, hint = {"state": State.ERROR.value, "cause": narrowing.cause}, DEAD_OF_CAUSE
        if states is not None and "state" not in which:
            fits.append({"$in": ["$state", sorted(states)]})
        if owners is not None and "schedule_id" not in which:
            fits.append({"$in": ["$schedule_id", owners]})
        row_filter = RowFilter({"$and": fits}, field, known) if fits or known else None
        return PagedQuery(
            *(self._events, "run_time", which, hint, row_filter),
            ascending=soonest_first,
            merged=isinstance(which.get("schedule_id"), dict),
        )

    def made_after(
        self, moment: datetime, schedule_ids: Collection[str], *, limit: int
    ) -> ExpandedOccurrences:
        """The occurrences of these schedules later than `moment` that are events; `limit` of them at most."""
        which = {
            "schedule_id": {"$in": list(schedule_ids)},
            "run_time": {"$gt": moment},
            "kind": Kind.SCHEDULED.value,
        }
        order = [("schedule_id", ASCENDING), ("run_time", DESCENDING), ("_id", DESCENDING)]
        cursor = self._events.find(
            which,
            {"schedule_id": 1, "run_time": 1, "revision": 1},
            sort=order,
            limit=limit + 1,
            hint="schedule_v1",
        )
        found = cursor.to_list()
        rows = [
            ExpandedOccurrence(row["_id"], row["schedule_id"], row["run_time"], row["revision"])
            for row in found[:limit]
            # A corrupt event is set aside by the worker that is to deliver it.
            if isinstance(row["run_time"], datetime) and isinstance(row.get("revision"), int)
        ]
        return ExpandedOccurrences(rows, found[limit]["schedule_id"] if len(found) > limit else None)

    def dead_letter_causes(
        self,
        tenant: str,
        *,
        most: int,
        since: datetime | None = None,
        until: datetime | None = None,
        tag: str | None = None,
    ) -> DeadLetterCauses:
        """Why the tenant's dead letters failed: of the newest ones with run times from `since` to before
        `until`, no more than `most` of which are read, those whose schedules have the `tag`."""
        which: Document = {"tenant": tenant, "state": State.ERROR.value}
        span = {"$gte": since} if since else {}
        span |= {"$lt": until} if until else {}
        if span:
            which["run_time"] = span
        fits: Any = {"$literal": True}
        if tag is not None:
            fits = {"$in": ["$schedule_id", {"$literal": self._tagged(tenant, tag, MOST_TAGGED)}]}
        newest: list[Document] = [
            {"$match": which},
            {"$sort": {"run_time": -1, "_id": -1}},
            {"$limit": most},
            {"$set": {"run_time": {"$cond": [_has_type("$run_time", "date"), "$run_time", None]}}},
            {
                "$group": {
                    "_id": {
                        "fits": fits,
                        "origin": _text("$origin"),
                        "status": _LAST_STATUS,
                        "error": _LAST_ERROR,
                    },
                    "schedules": {"$addToSet": "$schedule_id"},
                    "count": {"$sum": 1},
                    "first": {"$min": "$run_time"},
                    "last": {"$max": "$run_time"},
                }
            },
        ]
        rows = list(self._events.aggregate(newest, hint="dead_v2", maxTimeMS=MAX_MS))
        causes = [
            DeadLetterCause(
                row["_id"].get("origin") or UNKNOWN_ORIGIN,
                row["_id"].get("status"),
                row["_id"].get("error"),
                row["count"],
                row["first"],
                row["last"],
                tuple(sorted(each for each in row["schedules"] if isinstance(each, str))),
            )
            for row in rows
            if row["_id"]["fits"]
        ]
        return DeadLetterCauses(
            sorted(causes, key=lambda cause: -cause.count), sum(row["count"] for row in rows)
        )

    def _tagged(self, tenant: str, tag: str, limit: int) -> list[str]:
        """Schedules that have a tag, deleted ones included: their history stays."""
        rows = self._schedules.find({"tenant": tenant, "tags": tag}, {"_id": 1}, hint="list_tag_v1")
        return [row["_id"] for row in rows.limit(limit) if isinstance(row["_id"], str)]

    def _among_tagged(self, tag: str) -> Any:
        def known(ids: Collection[str]) -> set[str]:
            rows = self._schedules.find({"_id": {"$in": list(ids)}, "tags": tag}, {"_id": 1}, hint="_id_")
            return {row["_id"] for row in rows}

        return known


def _index(tenant: str, owners: list[str] | None, states: Collection[State] | None) -> tuple[Document, str]:
    """What the best index for it tells of a list, and that index."""
    if states is not None and set(states) == {State.ERROR}:
        return {"state": State.ERROR.value, "tenant": tenant}, "dead_v2"
    if owners is None:
        return {"tenant": tenant}, "list_v1"
    of_owners: Document = {"schedule_id": owners[0] if len(owners) == 1 else {"$in": owners}}
    if states is not None and LIVING.issuperset(states):
        return of_owners | {"due_at": {"$exists": True}}, "pending_v1"
    return of_owners, "schedule_v1"


def _filter_expressions(narrowing: EventListFilter) -> list[Document]:
    """Expressions of an event that a corrupt one does not make fail."""
    found: list[Document] = []
    if narrowing.origin is not None:
        found.append({"$eq": [{"$ifNull": ["$origin", UNKNOWN_ORIGIN]}, {"$literal": narrowing.origin}]})
    if narrowing.status is not None:
        ranges = narrowing.status.ranges
        status = "$$last.status_code"
        between = [{"$and": [{"$gte": [status, low]}, {"$lte": [status, high]}]} for low, high in ranges]
        found.append(_with_last("$attempts", {"$or": between}))
    if narrowing.error is not None:
        says = [
            _with_last(f"${name}", _contains_text(f"$$last.{field}", narrowing.error))
            for name, field in _SAYINGS
        ]
        found.append({"$or": says})
    if narrowing.among is not None:
        found.append({"$in": ["$schedule_id", {"$literal": list(narrowing.among)}]})
    if not narrowing.early_withdrawals:
        cancelled = {"$eq": ["$state", State.CANCELLED.value]}
        found.append({"$not": [{"$and": [cancelled, {"$lt": ["$archived_at", "$run_time"]}]}]})
    return found


_SAYINGS = (("attempts", "error"), ("status", "message"))


def _with_last(path: str, expression: Document) -> Document:
    """`expression` of `$$last`, the last item of a list."""
    items = {"$cond": [{"$isArray": path}, path, []]}
    return {"$let": {"vars": {"last": {"$arrayElemAt": [items, -1]}}, "in": expression}}


def _contains_text(path: str, words: str) -> Document:
    text = {"$toLower": {"$cond": [{"$eq": [{"$type": path}, "string"]}, path, ""]}}
    return {"$gte": [{"$indexOfCP": [text, {"$literal": ascii_lower(words)}]}, 0]}


def _has_type(path: str, kind: str) -> Document:
    return {"$eq": [{"$type": path}, kind]}


def _text(path: str) -> Document:
    """The beginning of a text; null for anything else."""
    return {"$cond": [_has_type(path, "string"), {"$substrCP": [path, 0, CAUSE_LENGTH]}, None]}


#: The characters of an error by which causes are told apart.
CAUSE_LENGTH = 80
_LAST_STATUS = _with_last(
    "$attempts", {"$cond": [_has_type("$$last.status_code", "int"), "$$last.status_code", None]}
)
_ATTEMPT_ERROR = _with_last("$attempts", _text("$$last.error"))
_LAST_LINE = _with_last("$status", _text("$$last.message"))
#: The history's last line only where the attempt says nothing: it names the attempt's number and time.
_LAST_ERROR: Document = {
    "$ifNull": [_ATTEMPT_ERROR, {"$cond": [{"$eq": [_LAST_STATUS, None]}, _LAST_LINE, None]}]
}
