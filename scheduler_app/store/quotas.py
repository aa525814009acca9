"""How much tenants have used of their limits, exactly, however many processes make something at once.

What exists has a document for each tenant and limit. Whoever is about to make something first notes there how
much: what others are making counts as made for all who come later. The document knows an upper bound of what
there was when those before it had finished: each adds what it has made, and nobody subtracts what is deleted.
So most look at this one document alone; what exists is counted where the bound leaves no room, or is old:
who runs the installation makes things without noting them here.

What is counted by days has a document for each day, to which is added before anything is made. It is never
too low: what was not made is given back, and a process that dies in between leaves it too high.

Tenants without limits have no documents here.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NamedTuple

from scheduler_app.domain.ids import tenant_of
from scheduler_app.store.mongo import BY_ID, Document, Mongo

#: After so long a process that has noted something, and said no more of it, has died.
LEASE_SECONDS = 120
_LIVING: Document = {
    "$filter": {"input": {"$ifNull": ["$making", []]}, "cond": {"$gt": ["$$this.until", "$$NOW"]}}
}


class Noted(NamedTuple):
    """What a document says at the moment at which something was noted in it, or later."""

    turn: int
    """Rises whenever somebody finishes."""
    bound: int | None
    """There were no more than so many; None where that is unknown."""
    age: timedelta
    """How long ago that was counted."""
    before: dict[str, int]
    """How much others are making that noted it before, by their tokens."""


class Quotas:
    def __init__(self, mongo: Mongo) -> None:
        self._quotas = mongo.collection("quotas")

    def note(self, quota_id: str, token: str, number: int, *, bound_seconds: int) -> Noted:
        """Notes that so many are about to be made; `finish` follows. A bound that was counted longer ago than
        that is not used."""
        mine = {
            "token": token,
            "number": number,
            "until": _ago(-LEASE_SECONDS),
        }
        # A process that died may have made what it noted: the bound says nothing any more.
        all_alive = {"$eq": [{"$size": _LIVING}, {"$size": {"$ifNull": ["$making", []]}}]}
        is_new = {"$gt": ["$counted_at", _ago(bound_seconds)]}
        noted: Document = {
            "tenant": {"$literal": tenant_of(quota_id)},
            "turn": {"$ifNull": ["$turn", 0]},
            "bound": {"$cond": [{"$and": [all_alive, is_new]}, {"$ifNull": ["$bound", None]}, None]},
            "making": {"$concatArrays": [_LIVING, [mine]]},
            "noted_at": "$$NOW",
        }
        row = self._quotas.find_one_and_update(
            {"_id": quota_id}, [{"$set": noted}], upsert=True, return_document=True, hint=BY_ID
        )
        return _noted(row or {}, token)

    def look(self, quota_id: str, token: str) -> Noted:
        """What the document says by now."""
        return _noted(self._quotas.find_one({"_id": quota_id}, hint=BY_ID) or {}, token)

    def found(self, quota_id: str, turn: int, number: int) -> None:
        """Says how many there are, counted after `turn` was read; nothing where somebody finished since."""
        counted: Document = {"bound": number, "counted_at": "$$NOW"}
        self._quotas.update_one({"_id": quota_id, "turn": turn}, [{"$set": counted}], hint=BY_ID)

    def finish(self, quota_id: str, token: str, made: int | None) -> None:
        """Says how many were made of what was noted; None where that is unknown."""
        others = {"$filter": {"input": "$making", "cond": {"$ne": ["$$this.token", token]}}}
        change: Document = {
            "making": others,
            "turn": {"$add": ["$turn", 1]},
            "bound": None if made is None else {"$add": ["$bound", made]},
        }
        self._quotas.update_one({"_id": quota_id}, [{"$set": change}], hint=BY_ID)

    def add(self, quota_id: str, number: int, most: int, expires_at: datetime) -> tuple[int, int]:
        """Adds as many of `number` as there is room for below `most`; returns how many these are, and the
        sum. A negative number gives back."""
        room = {"$max": [0, {"$subtract": [most, {"$ifNull": ["$sum", 0]}]}]}
        change: Document = {
            "tenant": {"$literal": tenant_of(quota_id)},
            "expires_at": expires_at,
            "added": {"$min": [number, room]},
            "sum": {"$add": [{"$ifNull": ["$sum", 0]}, {"$min": [number, room]}]},
        }
        row = self._quotas.find_one_and_update(
            {"_id": quota_id}, [{"$set": change}], upsert=True, return_document=True, hint=BY_ID
        )
        return (0, 0) if row is None else (row["added"], row["sum"])

    def known(self, quota_ids: Collection[str]) -> dict[str, int]:
        """The sums and bounds of those of which there are any."""
        rows = self._quotas.find({"_id": {"$in": list(quota_ids)}}, {"sum": 1, "bound": 1}, hint=BY_ID)
        found = {row["_id"]: row.get("sum", row.get("bound")) for row in rows}
        return {quota_id: number for quota_id, number in found.items() if number is not None}


def _ago(seconds: int) -> Document:
    return {"$dateSubtract": {"startDate": "$$NOW", "unit": "second", "amount": seconds}}


def _noted(row: Document, token: str) -> Noted:
    before: dict[str, int] = {}
    for each in row.get("making", ()):
        if each["token"] == token:
            break
        before[each["token"]] = each["number"]
    age = row["noted_at"] - row["counted_at"] if "counted_at" in row else timedelta.max
    return Noted(row.get("turn", 0), row.get("bound"), age, before)
