"""Processes: one document a process, written every few seconds, gone a minute after the last."""

import math
import os
import socket
from collections.abc import Callable, Mapping
from typing import Any

from scheduler_app.domain.field_types import Corrupt, fields, flag, instant, items, number, text, whole
from scheduler_app.store.mongo import Document, Mongo, new_token

#: A process that has not written for this long is missed, seconds.
MISSED_SECONDS = 15
MOST_NODES = 1_000
#: A clock that is put back leaves reports of the future behind, for a while.
LONGEST_AHEAD_MS = 86_400_000


class Processes:
    def __init__(self, mongo: Mongo, settings: Mapping[str, Any]) -> None:
        """`settings`: those of this process on which all must agree, nothing secret."""
        self._nodes = mongo.collection("nodes")
        self.settings = settings
        # Not host and pid alone: after a reboot, or in containers, they come again.
        self._id = f"{socket.gethostname()}-{os.getpid()}-{new_token()[:6]}"

    def report(self, role: str, **facts: Any) -> None:
        """Says that this process lives; `facts` are its version, clock offset, last tick, counters."""
        self._nodes.update_one(
            {"_id": self._id},
            [
                {
                    "$set": {
                        "v": 1,
                        "role": role,
                        "host": socket.gethostname(),
                        "pid": os.getpid(),
                        "seen_at": "$$NOW",
                    }
                    | {"settings": {"$literal": self.settings}}
                    | {name: {"$literal": fact} for name, fact in facts.items()}
                }
            ],
            upsert=True,
        )

    def leave(self) -> None:
        """Says that this process ends."""
        self._nodes.delete_one({"_id": self._id})

    def alive(self) -> list[Document]:
        """The processes that reported lately, by mongod's clock, with their `age_seconds`."""
        oldest = {"$subtract": ["$$NOW", MISSED_SECONDS * 1000]}
        age = {"$divide": [{"$subtract": ["$$NOW", "$seen_at"]}, 1000]}
        is_date = {"$lt": ["$seen_at", {"$add": ["$$NOW", LONGEST_AHEAD_MS]}]}
        found = self._nodes.aggregate(
            [
                # Other types come before dates, or after all of them; to reckon with one would fail for all.
                {"$match": {"$expr": {"$and": [{"$gt": ["$seen_at", oldest]}, is_date]}}},
                {"$limit": MOST_NODES},
                {"$set": {"age_seconds": age}},
            ],
            batchSize=MOST_NODES,
        )
        sound = [node for row in found if (node := _sound(row)) is not None]
        return sorted(sound, key=lambda node: (node["role"], node["_id"]))


def _sound(node: Document) -> Document | None:
    """The process as it can be reckoned with: without what is wrong in its document, which it writes anew in
    a few seconds; None where not even its role is known."""
    right = {name: value for name, value in node.items() if _is_right(name, value)}
    return right if {"_id", "role", "seen_at"} <= right.keys() else None


def _is_right(name: str, value: Any) -> bool:
    try:
        _CHECKS.get(name, _anything)(value, name)
    except Corrupt:
        return False
    return True


def _anything(value: Any, name: str) -> Any:
    return value


def _any_number(value: Any, name: str) -> float:
    return number(value, name, least=-math.inf)


def _origins(value: Any, name: str) -> Any:
    for load in items(value, name):
        text(fields(load, name).get("origin"), name)
        for count in ("in_flight", "waiting", "postponed"):
            whole(load.get(count), name)
        number(load.get("full_seconds"), name)
    return value


_CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "_id": text,
    "role": text,
    "host": text,
    "name": text,
    "version": text,
    "pid": whole,
    "seen_at": instant,
    "last_tick_at": instant,
    "last_tick_seconds": _any_number,
    "clock_offset_seconds": _any_number,
    "consuming": flag,
    "events": whole,
    "events_limit": whole,
    "origins": _origins,
}
