"""Processes: each writes its document every few seconds, with the settings on which processes must agree
(nothing in them is secret); a document disappears a minute after the last write.
"""

import hashlib
import math
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from scheduler_app.config import Settings
from scheduler_app.domain.action import CALLBACKS
from scheduler_app.domain.stored_fields import Corrupt, fields, flag, instant, items, number, text, whole
from scheduler_app.store.mongo import Document, Mongo, new_token
from scheduler_app.version import INDEX_LEVEL, POLICY_LEVEL


def shared_settings(settings: Settings) -> dict[str, Any]:
    """By the setting's name, as JSON values."""
    return {
        "CALLBACK_ALLOWED_NETWORKS": ",".join(_items(settings.callback_allowed_networks)),
        "CALLBACK_DENIED_PORTS": ",".join(_items(settings.callback_denied_ports)),
        "DISPATCH_HORIZON_SECONDS": settings.horizon_seconds,
        "PREQUEUER_EVENT_TIMEFRAME_MINUTES": settings.prequeuer_event_timeframe_minutes,
        "RETENTION_DAYS": settings.retention_days,
        "MESSAGE_RETENTION_DAYS": settings.message_retention_days,
        "SECRETS_KEY": fingerprint(settings.secrets_key),
    }


def fingerprint(keys: str) -> str:
    """Shows whether two processes seal with the same key, and nothing of the key: that is 256 random bits."""
    newest = next(_items(keys), "")
    if not newest:
        return "not set"
    return f"key {hashlib.sha256(f'rrule-scheduler:{newest}'.encode()).hexdigest()[:8]}"


def _items(text: str) -> Iterator[str]:
    return (item.strip() for item in text.split(",") if item.strip())


#: A process that has not written for this long is missed, seconds.
MISSED_SECONDS = 15
MAX_PROCESSES = 1_000
#: A clock that is put back leaves reports of the future behind, for a while.
LONGEST_AHEAD_MS = 86_400_000


class OriginLoad(NamedTuple):
    """What a worker has of one receiver."""

    origin: str
    in_flight: int
    waiting: int
    postponed: int
    full_seconds: float
    """How long events have been waiting because the origin is at its limit."""


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """A process as it reported itself. What it did not report, or what is wrong in its document, has its
    default."""

    id: str
    role: str
    """`api`, `beat`, `worker` or `doctor`."""
    seen_at: datetime
    """When it reported, by mongod's clock."""
    age_seconds: float
    """How long ago that was."""
    host: str = ""
    name: str = ""
    version: str = ""
    policy_level: int = 0
    """Its POLICY_LEVEL; older releases report none."""
    index_level: int = 0
    """Its INDEX_LEVEL; older releases report none."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings on which processes must agree, by name (see `shared_settings`)."""
    last_tick_at: datetime | None = None
    """When a beat's last tick ended."""
    clock_offset_seconds: float = 0.0
    """mongod's clock minus the process's."""
    clock_jump_seconds: float = 0.0
    """By how much mongod's clock has jumped, while the process follows monotonic time."""
    consuming: bool = True
    """Whether a worker takes messages."""
    queues: tuple[str, ...] = (CALLBACKS,)
    """The queues that a worker serves; older releases, which report none, serve this one."""
    behind_since: datetime | None = None
    """Since when the oldest message is due whose events a worker has not claimed; None if it keeps up."""
    events: int = 0
    """Events that a worker holds."""
    events_limit: int | None = None
    origins: tuple[OriginLoad, ...] = ()


class Processes:
    def __init__(self, mongo: Mongo, settings: Mapping[str, Any]) -> None:
        """`settings`: those of this process on which all must agree, nothing secret."""
        self._nodes = mongo.collection("nodes")
        self.settings = settings
        # Not host and pid alone: after a reboot, or in containers, they come again.
        self._id = f"{socket.gethostname()}-{os.getpid()}-{new_token()[:6]}"

    def report(self, role: str, **facts: Any) -> None:
        """Reports that this process lives. `facts` are its version, clock offset, last tick and counters."""
        self._nodes.update_one(
            {"_id": self._id},
            [
                {
                    "$set": {
                        "v": 1,
                        "role": role,
                        "host": socket.gethostname(),
                        "pid": os.getpid(),
                        "policy_level": POLICY_LEVEL,
                        "index_level": INDEX_LEVEL,
                        "seen_at": "$$NOW",
                    }
                    | {"settings": {"$literal": self.settings}}
                    | {name: {"$literal": fact} for name, fact in facts.items()}
                }
            ],
            upsert=True,
        )

    def leave(self) -> None:
        """Removes the document of this process, which ends."""
        self._nodes.delete_one({"_id": self._id})

    def alive(self) -> list[ProcessRecord]:
        """The processes that reported within `MISSED_SECONDS`, by mongod's clock, by their roles and ids."""
        oldest = {"$subtract": ["$$NOW", MISSED_SECONDS * 1000]}
        age = {"$divide": [{"$subtract": ["$$NOW", "$seen_at"]}, 1000]}
        is_date = {"$lt": ["$seen_at", {"$add": ["$$NOW", LONGEST_AHEAD_MS]}]}
        found = self._nodes.aggregate(
            [
                # Other types come before dates, or after all of them; to reckon with one would fail for all.
                {"$match": {"$expr": {"$and": [{"$gt": ["$seen_at", oldest]}, is_date]}}},
                {"$limit": MAX_PROCESSES},
                {"$set": {"age_seconds": age}},
            ],
            batchSize=MAX_PROCESSES,
        )
        records = [record for row in found if (record := _record(row)) is not None]
        return sorted(records, key=lambda record: (record.role, record.id))


def _record(row: Document) -> ProcessRecord | None:
    """The process, without what is wrong in its document, which it writes again in a few seconds; None if
    not even its role is known."""
    right = {field: row[field] for field in _CHECKS if _is_valid(field, row.get(field))}
    if not {"_id", "role", "seen_at", "age_seconds"} <= right.keys():
        return None
    right["id"] = right.pop("_id")
    if "queues" in right:
        right["queues"] = tuple(right["queues"])
    right["origins"] = tuple(_load(each) for each in right.get("origins", ()))
    return ProcessRecord(**right)


def _load(load: Document) -> OriginLoad:
    return OriginLoad(*(load[field] for field in OriginLoad._fields))


def _is_valid(field: str, value: object) -> bool:
    try:
        _CHECKS[field](value, field)
    except Corrupt:
        return False
    return True


def _any_number(value: object, name: str) -> float:
    return number(value, name, least=-math.inf)


def _origins(value: object, name: str) -> list[Document]:
    loads = items(value, name)
    for load in loads:
        text(fields(load, name).get("origin"), name)
        for count in ("in_flight", "waiting", "postponed"):
            whole(load.get(count), name)
        number(load.get("full_seconds"), name)
    return loads


def _texts(value: object, name: str) -> list[str]:
    return [text(each, f"an item of {name}") for each in items(value, name)]


#: The fields that a record has, by their names in the document.
_CHECKS: dict[str, Callable[[Any, str], object]] = {
    "_id": text,
    "role": text,
    "host": text,
    "name": text,
    "version": text,
    "policy_level": whole,
    "index_level": whole,
    "settings": fields,
    "seen_at": instant,
    "age_seconds": _any_number,
    "last_tick_at": instant,
    "clock_offset_seconds": _any_number,
    "clock_jump_seconds": _any_number,
    "consuming": flag,
    "queues": _texts,
    "behind_since": instant,
    "events": whole,
    "events_limit": whole,
    "origins": _origins,
}
