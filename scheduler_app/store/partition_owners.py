"""Which beat owns which partitions: one document, which every beat renews each second.

It has each beat's lease, what that beat owns, and how often each partition was taken over. Leases are written
and judged by mongod's clock. A change is written only onto the version that it was made from, so that of two
beats that take the same partition one has to look again.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from scheduler_app.domain.ids import PARTITIONS
from scheduler_app.domain.partitions import UNPARTITIONED, OwnerLease, Ownership
from scheduler_app.store.mongo import Document, Mongo, lease

_ID = "owners"
DOCUMENT_VERSION = 1


class PartitionOwners:
    def __init__(self, mongo: Mongo) -> None:
        self._owners = mongo.collection("partitions")

    def renew(self, beat: str, *, lease_seconds: float) -> Ownership:
        """Renews the lease of `beat`, which is listed from then on, and returns who owns what. Raises a
        STORE_FAULT."""
        until, seen = lease(lease_seconds), {"seen_at": "$$NOW"}
        known: Document = {"_id": _ID, f"beats.{beat}": {"$exists": True}}
        row = self._change(known, {f"beats.{beat}.until": until} | seen)
        if row is None:
            entry = {"until": until, "partitions": []}
            others = {"$cond": [{"$eq": [{"$type": "$beats"}, "object"]}, "$beats", {}]}
            added = {
                "v": DOCUMENT_VERSION,
                "version": _next("$version"),
                "beats": {"$mergeObjects": [others, {beat: entry}]},
            } | seen
            try:
                row = self._change({"_id": _ID}, added, upsert=True)
            except DuplicateKeyError:  # another beat has made the document at this moment
                row = self._change({"_id": _ID}, added)
        return _read(row or {})

    def change(
        self, seen: Ownership, beat: str, own: Collection[int], *, epochs: Sequence[int], lease_seconds: float
    ) -> bool:
        """Gives `beat` these partitions, and removes the beats whose leases are over; False when anything has
        changed since `seen`. Raises a STORE_FAULT."""
        over = seen.over() - {beat}
        which: Document = {"_id": _ID, "version": seen.version}
        # One that has renewed its lease since it was seen stays.
        which |= {f"beats.{name}.until": seen.beats[name].until for name in over}
        put: Document = {f"beats.{beat}": {"until": lease(lease_seconds), "partitions": sorted(own)}}
        put |= {"version": _next("$version"), "epochs": {"$literal": list(epochs)}}
        gone = [{"$unset": [f"beats.{name}" for name in sorted(over)]}] if over else []
        return self._owners.update_one(which, [{"$set": put}, *gone]).matched_count == 1

    def leave(self, beat: str) -> None:
        """Frees what `beat` owns. Raises a STORE_FAULT."""
        known = {"_id": _ID, f"beats.{beat}": {"$exists": True}}
        put = {"$set": {"version": _next("$version")}}
        self._owners.update_one(known, [put, {"$unset": [f"beats.{beat}"]}])

    def _change(self, which: Document, put: Document, *, upsert: bool = False) -> Document | None:
        found: Document | None = self._owners.find_one_and_update(
            which, [{"$set": put}], upsert=upsert, return_document=ReturnDocument.AFTER
        )
        return found


def _next(path: str) -> Document:
    return {"$add": [{"$cond": [{"$isNumber": path}, path, 0]}, 1]}


def _read(row: Mapping[str, Any]) -> Ownership:
    """What is wrong in the document is left out: the next change replaces it."""
    beats = row.get("beats")
    known = {name: _lease(each) for name, each in beats.items()} if isinstance(beats, dict) else {}
    epochs = row.get("epochs")
    right = isinstance(epochs, list) and len(epochs) == PARTITIONS + 1 and all(map(_is_count, epochs))
    return Ownership(
        version=row.get("version"),
        seen_at=row["seen_at"],
        beats={name: each for name, each in known.items() if each is not None},
        epochs=tuple(epochs) if right and epochs else (0,) * (PARTITIONS + 1),
    )


def _lease(entry: Any) -> OwnerLease | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("until"), datetime):
        return None
    partitions = entry.get("partitions")
    own = partitions if isinstance(partitions, list) else []
    return OwnerLease(entry["until"], frozenset(each for each in own if _is_partition(each)))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and value >= 0


def _is_partition(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value <= UNPARTITIONED


def in_partitions(own: Collection[int] | None) -> Document:
    """The condition of documents in these partitions; None for all of them, and no condition. What has no
    partition, or none that there is, counts as UNPARTITIONED."""
    if own is None or len(own) > PARTITIONS:
        return {}
    if UNPARTITIONED in own:
        return {"partition": {"$nin": [each for each in range(PARTITIONS) if each not in own]}}
    return {"partition": {"$in": sorted(own)}}
