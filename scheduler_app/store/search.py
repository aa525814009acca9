"""Looks for words in what people named or wrote. No text is stored for it, and no index: a schedule costs
nothing more to create. What a schedule says is looked through, the newest first, for a bounded time.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from pymongo import DESCENDING

from scheduler_app.clock import monotonic
from scheduler_app.domain.ids import SEPARATOR, message_event_id, name_of, tenant_of, whole_id
from scheduler_app.domain.search import FoundDestination, FoundEvent, FoundSchedule, before_query
from scheduler_app.domain.states import Kind
from scheduler_app.domain.stored_fields import LATEST
from scheduler_app.store.mongo import BY_ID, Document, Mongo
from scheduler_app.store.schedules.schedules import NOT_DELETED
from scheduler_app.store.tags import LAST

#: Schedules that are looked through at a time; destinations that are at all.
CHUNK: Final = 10_000
MOST_DESTINATIONS: Final = 2_000
#: Other tenants that are passed over where ids are looked for.
MOST_LOOKS: Final = 100
#: Schedules whose events are merged in the order of an index.
MOST_MERGED: Final = 50
#: How long one question may take, in ms.
MAX_MS: Final = 2_000
#: What ids are made of.
_ID_PART: Final = re.compile(r"[A-Za-z0-9_.\-]+\Z")
_NEWEST_FIRST: Final = [("created_at", DESCENDING), ("_id", DESCENDING)]
_LATEST_FIRST: Final = [("run_time", DESCENDING), ("_id", DESCENDING)]


class Search:
    """Reads only."""

    def __init__(self, mongo: Mongo) -> None:
        self._schedules = mongo.collection("schedules")
        self._destinations = mongo.collection("destinations")
        self._events = mongo.collection("events")

    def schedules_by_index(self, tenant: str, words: str, *, limit: int) -> list[FoundSchedule]:
        """The schedule of this id, and those with names that begin so, letter by letter."""
        begins: Document = {"name": {"$gte": words, "$lt": words + LAST}}
        living: Document = {"tenant": tenant, "state": NOT_DELETED}
        by_id = self._schedules.find(living | {"_id": whole_id(tenant, words)}, _FIELDS, hint=BY_ID)
        by_name = self._schedules.find(living | begins, _FIELDS, hint="list_name_v1", max_time_ms=MAX_MS)
        return [_schedule(row) for row in (*by_id.limit(1), *by_name.limit(limit))]

    def schedules(
        self, tenant: str, words: str, *, limit: int, seconds: float
    ) -> tuple[list[FoundSchedule], bool]:
        """The newest `limit` schedules with these words in a name, a tag, a phrase or a URL before its query,
        whatever the case; and whether all were looked through within the time."""
        says: Document = {"$or": _said(words)}
        found: list[FoundSchedule] = []
        until, end = LATEST, monotonic() + seconds
        while True:
            since = self._chunk(tenant, until)
            when = {"$lt": until} | ({} if since is None else {"$gte": since})
            which = {"tenant": tenant, "created_at": when, "state": NOT_DELETED} | says
            rows = self._schedules.find(
                which, _FIELDS, sort=_NEWEST_FIRST, hint="list_v1", max_time_ms=MAX_MS
            )
            found += map(_schedule, rows.limit(limit - len(found)))
            if since is None or len(found) == limit:
                return found, since is None and len(found) < limit
            if monotonic() > end:
                return found, False
            until = since

    def schedules_among(
        self, tenant: str, ids: Sequence[str], words: str, *, limit: int
    ) -> list[FoundSchedule]:
        """Those of these schedules with the words, or this id: that one and those with names that begin so,
        then the newest."""
        own_id = whole_id(tenant, words)
        which: Document = {"_id": {"$in": list(ids)}, "$or": [*_said(words), {"_id": own_id}]}
        rows = list(self._schedules.find(which, _FIELDS | {"created_at": 1}, hint=BY_ID, max_time_ms=MAX_MS))
        rows.sort(key=lambda row: str(row.get("created_at")), reverse=True)
        found = sorted(
            map(_schedule, rows), key=lambda each: each.id != own_id and not each.name.startswith(words)
        )
        return found[:limit]

    def _chunk(self, tenant: str, until: datetime) -> datetime | None:
        """When the last of the next `CHUNK` schedules was created; None where there are fewer."""
        which = {"tenant": tenant, "created_at": {"$lt": until, "$not": {"$type": "array"}}}
        row = self._schedules.find_one(
            which, {"created_at": 1, "_id": 0}, sort=_NEWEST_FIRST, skip=CHUNK, hint="list_v1"
        )
        return None if row is None else row["created_at"]

    def destinations(self, tenant: str, words: str, *, limit: int) -> tuple[list[FoundDestination], bool]:
        """Those with these words in the name or in the URL before its query; and whether all were looked
        through."""
        rows = self._destinations.find(
            {"tenant": tenant}, {"action.url": 1}, sort=_NEWEST_FIRST, hint="list_v1", max_time_ms=MAX_MS
        )
        wanted, found = words.casefold(), list[FoundDestination]()
        for number, row in enumerate(rows.limit(MOST_DESTINATIONS + 1)):
            if number == MOST_DESTINATIONS or len(found) == limit:
                return found, False
            action = row.get("action")
            url = action.get("url") if isinstance(action, dict) else None
            url = url if isinstance(url, str) else ""
            if wanted in name_of(str(row["_id"])).casefold() or wanted in before_query(url).casefold():
                found.append(FoundDestination(str(row["_id"]), url))
        return found, True

    def events(self, tenant: str, beginning: str, *, limit: int) -> list[FoundEvent]:
        """Events of schedules with ids that begin so, the latest of them in the order of their ids."""
        return self._by_id(tenant, whole_id(tenant, beginning), limit) if _is_id(beginning) else []

    def events_among(
        self, tenant: str, ids: Sequence[str], beginning: str, *, limit: int
    ) -> list[FoundEvent]:
        """Of those of these schedules: the latest by their run times where the words begin the id of a
        schedule, and by their ids where they go beyond that. `MOST_MERGED` schedules are looked at."""
        if not _is_id(beginning):
            return []
        begins = whole_id(tenant, beginning)
        owners = [each for each in ids if each.startswith(begins)][:MOST_MERGED]
        of_owners: Document = {"schedule_id": {"$in": owners}}
        rows = self._events.find(of_owners, _EVENT_FIELDS, sort=_LATEST_FIRST, hint="schedule_v1")
        found = [_event(row) for row in rows.max_time_ms(MAX_MS).limit(limit)] if owners else []
        named = [each for each in ids if begins.startswith(f"{each}-")]
        if named and len(found) < limit:
            which = {"_id": {"$gte": begins, "$lt": begins + LAST}, "schedule_id": {"$in": named}}
            rows = self._events.find(which, _EVENT_FIELDS, sort=[("_id", DESCENDING)], hint=BY_ID)
            found += [_event(row) for row in rows.max_time_ms(MAX_MS).limit(limit - len(found))]
        return found

    def messages(self, tenant: str, beginning: str, *, limit: int) -> list[FoundEvent]:
        """The same of messages, by the ids that people gave them."""
        return self._by_id(tenant, message_event_id(tenant, beginning), limit) if _is_id(beginning) else []

    def _by_id(self, tenant: str, beginning: str, limit: int) -> list[FoundEvent]:
        """The ids of a whole other tenant may begin so, where they are those of the default one: each such
        tenant costs a look, however many events it has."""
        found: list[FoundEvent] = []
        until = beginning + LAST
        for _ in range(MOST_LOOKS):
            rows = self._events.find(
                {"_id": {"$gte": beginning, "$lt": until}},
                _EVENT_FIELDS,
                sort=[("_id", DESCENDING)],
                hint=BY_ID,
                max_time_ms=MAX_MS,
            )
            other = None
            for row in rows.limit(limit - len(found)):
                other = owner if (owner := tenant_of(str(row["_id"]))) != tenant else None
                if other is not None:
                    break
                found.append(_event(row))
            if other is None or len(found) == limit:
                break
            until = f"{other}{SEPARATOR}"
        return found


def _said(words: str) -> list[Document]:
    """Conditions of a schedule, one of which holds where it says the words."""
    part = re.escape(words)
    anywhere: Document = {"$regex": part, "$options": "i"}
    return [
        {"name": anywhere},
        {"tags": anywhere},
        {"trigger.written.phrase": anywhere},
        {"action.url": {"$regex": f"^[^?#]*{part}", "$options": "i"}},
    ]


def _event(row: Document) -> FoundEvent:
    return FoundEvent(
        str(row["_id"]),
        str(row.get("state", "")),
        row["run_time"] if isinstance(row.get("run_time"), datetime) else None,
        "" if row.get("kind") == Kind.MESSAGE else str(row.get("schedule_id", "")),
    )


def _is_id(text: str) -> bool:
    return _ID_PART.match(text) is not None


_EVENT_FIELDS: Document = {"state": 1, "run_time": 1, "schedule_id": 1, "kind": 1}
_FIELDS: Document = {
    "name": 1,
    "state": 1,
    "tags": 1,
    "trigger.written.phrase": 1,
    "action.url": 1,
}


def _schedule(row: Document) -> FoundSchedule:
    def text(*path: str) -> str:
        value: object = row
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, str) else ""

    tags = row.get("tags")
    return FoundSchedule(
        str(row["_id"]),
        text("name"),
        text("state"),
        tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else (),
        text("trigger", "written", "phrase"),
        text("action", "url"),
    )
