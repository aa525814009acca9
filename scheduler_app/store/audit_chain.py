"""What a beat does with the lines of the audit: it moves those that are on their way, and gives each its
place in the chain of its tenant."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from typing import Any

from bson import MinKey
from pymongo import ASCENDING, DESCENDING
from pymongo.errors import BulkWriteError, DuplicateKeyError

from scheduler_app.domain import hash_chain
from scheduler_app.domain.act import ActorKind
from scheduler_app.domain.hash_chain import BEGINNING, Link
from scheduler_app.domain.ids import tenant_of
from scheduler_app.store.audit_lines import BY_NUMBER, DOCUMENT_VERSION, OWED_LINES, UNCHAINED
from scheduler_app.store.bulk_writes import insert_new, value_by_id
from scheduler_app.store.faults import STORE_FAULTS, only_duplicates
from scheduler_app.store.mongo import BY_ID, Document, Mongo, met_another_write


class AuditChain:
    """What a beat does with lines: it moves those that are on their way, and gives each its place."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._lines = mongo.collection("audit")
        self._majority = mongo.majority("audit")
        self._edits = mongo.collection("edits")
        self._schedules = mongo.collection("schedules")

    def tenants(self, *, limit: int) -> list[str]:
        """Some tenants with lines that have no place yet."""
        found: list[str] = []
        while len(found) < limit:
            which = {"unchained": True, "tenant": {"$gt": found[-1] if found else ""}}
            row = self._lines.find_one(which, {"tenant": 1}, sort=[("tenant", 1), ("_id", 1)], hint=UNCHAINED)
            if row is None:
                break
            found.append(row["tenant"])
        return found

    def chain(self, tenant: str, *, limit: int) -> int:
        """Gives lines of a tenant their places, in the order of their ids; returns how many. Of several beats
        at once one does it, and the others return 0. Raises a STORE_FAULT."""
        return _of_one_beat(lambda: self._chained(tenant, limit))

    def _chained(self, tenant: str, limit: int) -> int:
        with self._mongo.transaction():
            which = {"tenant": tenant, "unchained": True}
            sort = [("tenant", ASCENDING), ("_id", ASCENDING)]
            rows = self._lines.find(which, hint=UNCHAINED, sort=sort, limit=limit).to_list()
            if rows:
                ids, places = [row["_id"] for row in rows], self._places(tenant, rows)
                placed = {"$mergeObjects": ["$$ROOT", value_by_id(ids, places)]}
                # Another beat that has written one of them since ends this transaction.
                self._lines.update_many(
                    {"_id": {"$in": ids}}, [{"$replaceWith": placed}, {"$unset": "unchained"}], hint=BY_ID
                )
        return len(rows)

    def _places(self, tenant: str, rows: Sequence[Document]) -> list[Document]:
        """The next places in the chain of a tenant, for these lines."""
        last = self._lines.find_one(
            {"tenant": tenant, "number": {"$gt": 0}},
            {"number": 1, "hash": 1},
            sort=[("number", DESCENDING)],
            hint=BY_NUMBER,
        ) or {"number": 0, "hash": BEGINNING}
        places: list[Document] = []
        previous = str(last.get("hash"))
        for number, row in enumerate(rows, last["number"] + 1):
            place: Document = {"number": number, "previous": previous}
            previous = _digest(row | place)
            places.append(place | {"hash": previous})
        return places

    def links(self, tenant: str, after: int, *, limit: int) -> list[Link]:
        """The places of a tenant's lines with numbers after this one, in their order."""
        rows = self._majority.find(
            {"tenant": tenant, "number": {"$gt": after}},
            hint=BY_NUMBER,
            sort=[("number", ASCENDING)],
            limit=limit,
        )
        return [
            Link(row["number"], str(row.get("previous")), str(row.get("hash")), _digest(row), str(row["_id"]))
            for row in rows
        ]

    def move_owed(self, *, limit: int, ids: Sequence[str] | None = None) -> int:
        """Moves lines out of the documents of schedules, where they were written with what they tell of: of
        some, or of these; returns of how many. A beat that is killed in between leaves some to be moved once
        more, under the same ids.

        Of some they are inserted with their places: to be inserted first and to get their places then is
        three times as dear. Of several beats at once one does it, and the others return 0.
        """
        which: Document = {"unlogged": {"$exists": True}, "unlogged._id": {"$gte": MinKey()}}
        rows = (
            self._schedules.find(which, {"unlogged": 1}, hint=OWED_LINES, limit=limit)
            if ids is None
            else self._schedules.find({"_id": {"$in": list(ids)}}, {"unlogged": 1}, hint=BY_ID)
        )
        owed = {row["_id"]: lines for row in rows.to_list() if (lines := row.get("unlogged"))}
        if not owed:
            return 0
        lines = [each for found in owed.values() if isinstance(found, list) for each in found]
        sound = {each["_id"]: each for each in lines if isinstance(each, dict) and _is_sound(each)}
        if ids is not None and sound:
            insert_new(self._lines, list(sound.values()))
        elif ids is None and _of_one_beat(lambda: self._insert_with_places(sound)) < len(sound):
            return 0
        self._forget_owed(list(owed), list(sound))
        return len(owed)

    def _insert_with_places(self, lines: Mapping[str, Document]) -> int:
        """Inserts those that are not there yet; returns how many of them are there then."""
        with self._mongo.transaction():
            rows = self._lines.find({"_id": {"$in": list(lines)}}, {"_id": 1}, hint=BY_ID)
            there = {row["_id"] for row in rows.to_list()}
            of_tenants: defaultdict[str, list[Document]] = defaultdict(list)
            for own_id, line in lines.items():
                if own_id not in there:
                    said = {name: value for name, value in line.items() if name != "unchained"}
                    of_tenants[line["tenant"]].append(said)
            fresh = [
                line | place
                for tenant, some in of_tenants.items()
                for line, place in zip(some, self._places(tenant, some), strict=True)
            ]
            if fresh:
                self._lines.insert_many(fresh)
        return len(lines)

    def _forget_owed(self, schedules: Sequence[str], lines: Sequence[str]) -> None:
        """Removes lines from documents. Those that have no others, which are nearly all, are looked for by a
        condition: an expression would compare each of its lines with each of `lines`. What no line may be
        would be found again and again, and goes with the last one that is."""
        which: Document = {"_id": {"$in": schedules}}
        is_another = {"_id": {"$nin": lines, "$type": "string"}, "tenant": {"$type": "string"}}
        has_others = {"unlogged": {"$elemMatch": is_another}}
        done = self._schedules.update_many(
            which | {"$nor": [has_others]}, {"$unset": {"unlogged": ""}}, hint=BY_ID
        )
        if done.matched_count < len(schedules):
            self._schedules.update_many(
                which | has_others, {"$pull": {"unlogged": {"_id": {"$in": lines}}}}, hint=BY_ID
            )

    def prune(self, tenant: str, before: datetime, *, limit: int) -> int:
        """Removes the first lines of a chain that are older; returns how many. What is left is a chain."""
        first = self._lines.find(
            {"tenant": tenant, "number": {"$gt": 0}}, {"at": 1}, sort=[("number", ASCENDING)], hint=BY_NUMBER
        )
        rows = takewhile(lambda row: _is_older(row.get("at"), before), first.limit(limit).batch_size(limit))
        ids = [row["_id"] for row in rows]
        return self._lines.delete_many({"_id": {"$in": ids}}, hint=BY_ID).deleted_count if ids else 0

    def all_tenants(self) -> list[str]:
        """All that have lines, by the index alone."""
        return sorted(each for each in self._lines.distinct("tenant") if isinstance(each, str))

    def carry_edits(self, *, limit: int) -> int:
        """Moves what older releases have kept of edits of schedules; returns how many. A beat that is killed
        in between leaves some to be moved once more, under the same ids."""
        rows = list(self._edits.find({}, hint=BY_ID, limit=limit))
        if not rows:
            return 0
        with self._mongo.transaction():
            ids = [row["_id"] for row in rows]
            there = {each["_id"] for each in self._lines.find({"_id": {"$in": ids}}, {"_id": 1}, hint=BY_ID)}
            if fresh := [_carried(row) for row in rows if row["_id"] not in there]:
                self._lines.insert_many(fresh)
            self._edits.delete_many({"_id": {"$in": ids}})
        return len(rows)


def _of_one_beat(write: Callable[[], int]) -> int:
    """What a transaction returns that gives places; 0 where another beat has given the same ones."""
    try:
        return write()
    except BulkWriteError as error:
        if not only_duplicates(error):
            raise
    except DuplicateKeyError:
        return 0
    except STORE_FAULTS as error:
        if not met_another_write(error):
            raise
    return 0


def _is_sound(line: Mapping[str, Any]) -> bool:
    return isinstance(line.get("_id"), str) and isinstance(line.get("tenant"), str)


def _digest(row: Mapping[str, Any]) -> str:
    return hash_chain.digest(
        {name: value for name, value in row.items() if name not in ("hash", "unchained")}
    )


def _carried(row: Document) -> Document:
    """The line of what an older release kept. Whatever it holds, nothing of it is lost."""
    owner = str(row.get("schedule_id") or "")
    by: Document = {"kind": ActorKind.KEY.value, "name": row.get("by"), "installation": True}
    line: Document = {
        **{name: row.get(name) for name in ("_id", "at", "what", "version", "before", "after", "times")},
        "v": DOCUMENT_VERSION,
        "tenant": row.get("tenant") or tenant_of(owner),
        "kind": "schedule",
        "resource": f"schedule/{owner}",
        "by": {name: value for name, value in by.items() if value},
        "reason": row.get("note"),
        "secrets": ["unknown", "unknown"] if row.get("secrets_changed") else None,
        "unchained": True,
    }
    return {name: value for name, value in line.items() if value}


def _is_older(at: object, before: datetime) -> bool:
    # What is no instant would keep all that follows for ever.
    return not isinstance(at, datetime) or at < before
