"""Encrypts the stored secrets of schedules and messages again with the newest key, page by page, while
processes keep working. Messages may wait for longer than a key lives.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pymongo import UpdateOne

from scheduler_app.domain.ids import message_event_id
from scheduler_app.domain.message import Message, UnreadableMessage
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store.encryption import WIPE, SecretBox, action_kind
from scheduler_app.store.events.events import tenants_with_events
from scheduler_app.store.events.messages import read_message, sealed_content
from scheduler_app.store.mongo import Document, Mongo
from scheduler_app.store.schedules.documents import CorruptSchedule, read_schedule, to_schedule_document

SCHEDULES_A_PAGE = 100
#: A schedule that somebody edits between its reading and its writing is read again, up to this many times;
#: the edit has sealed it with that process's newest key.
TRIES = 3
#: The parts of a document that sealing rewrites.
_PARTS = ("v", "action", "signing", "sealed")


@dataclass(frozen=True, slots=True)
class ResealProgress:
    """How far it has come: schedules looked at, sealed again, rid of secrets because they were deleted; and
    the last page's ids that could not be read, with the reasons."""

    seen: int = 0
    sealed: int = 0
    wiped: int = 0
    unreadable: tuple[tuple[str, str], ...] = ()


class ScheduleResealing:
    """A run may be ended and begun again at any time, and two may run at once: secrets under the newest key
    are passed over, and a document is written only if it is as it was read."""

    def __init__(self, mongo: Mongo, secret_box: SecretBox) -> None:
        """`secret_box` must have a key."""
        self._schedules = mongo.collection("schedules")
        self._majority = mongo.majority("schedules")
        self._secret_box = secret_box

    def count(self) -> int:
        """How many schedules there are, deleted ones included; roughly."""
        return self._schedules.estimated_document_count()

    def run(self, *, page: int = SCHEDULES_A_PAGE) -> Iterator[ResealProgress]:
        """Goes through all schedules, deleted ones included, and tells after each page. Raises a
        STORE_FAULT, after which it can be begun again."""
        so_far, after = ResealProgress(), None
        while True:
            which: Document = {} if after is None else {"_id": {"$gt": after}}
            ids = [row["_id"] for row in self._majority.find(which, {"_id": 1}).sort("_id", 1).limit(page)]
            if not ids:
                return
            so_far, after = self._page(ids, so_far), ids[-1]
            yield so_far

    def _page(self, ids: list[Any], so_far: ResealProgress) -> ResealProgress:
        sealed = wiped = 0
        unreadable: dict[str, str] = {}
        for _ in range(TRIES):
            anew, wipes = list[UpdateOne](), list[UpdateOne]()
            unreadable.clear()
            for row in self._majority.find({"_id": {"$in": ids}}):
                if row.get("state") == ScheduleState.DELETED.value:
                    if _holds_secrets(row):
                        wipes.append(UpdateOne({"_id": row["_id"], "state": row["state"]}, WIPE))
                    continue
                found = self._sealed_anew(row)
                if isinstance(found, CorruptSchedule):
                    unreadable[str(found.schedule_id)] = found.reason
                elif found is not None:
                    anew.append(found)
            if not anew and not wipes:
                break
            sealed += self._write(anew)
            wiped += self._write(wipes)
        return ResealProgress(
            so_far.seen + len(ids), so_far.sealed + sealed, so_far.wiped + wiped, tuple(unreadable.items())
        )

    def _write(self, updates: list[UpdateOne]) -> int:
        return self._schedules.bulk_write(updates, ordered=False).matched_count if updates else 0

    def _sealed_anew(self, row: Document) -> UpdateOne | CorruptSchedule | None:
        """The write; None if the newest key has sealed it, or nothing in it is secret."""
        token = row.get("sealed")
        if isinstance(token, bytes) and self._secret_box.is_newest(token):
            return None
        found = read_schedule(row, self._secret_box)
        if not isinstance(found, Schedule):
            return found
        document = to_schedule_document(found, self._secret_box)
        if "sealed" not in document:
            return None
        parts = {name: document[name] for name in _PARTS if name in document}
        # As it was read: an edit raises the version, and another run changes what is sealed.
        same = {name: {"$eq": row[name]} if name in row else {"$exists": False} for name in _SAME}
        return UpdateOne({"_id": row["_id"], **same}, {"$set": parts})


_SAME = ("v", "version", "state", "action", "signing", "sealed")


def _holds_secrets(row: Mapping[str, Any]) -> bool:
    action = row.get("action")
    if "sealed" in row or "signing" in row or not isinstance(action, dict):
        return True
    try:
        return bool(action_kind(action).split(action)[1])
    except Exception:  # a corrupt document: its reader says what is wrong with it
        return True


MESSAGES_A_PAGE = 500
#: Behind every other character of an id.
_LAST = "\x7f"
_AS_READ = ("v", "action", "signing", "sealed")


class MessageResealing:
    """As `ScheduleResealing`: a run may be ended and begun again, and two may run at once."""

    def __init__(self, mongo: Mongo, secret_box: SecretBox) -> None:
        """`secret_box` must have a key."""
        self._events = mongo.collection("events")
        self._majority = mongo.majority("events")
        self._secret_box = secret_box

    def run(self, *, page: int = MESSAGES_A_PAGE) -> Iterator[ResealProgress]:
        """Goes through the messages of all tenants in the order of their ids, which none ever changes, and
        tells after each page. Raises a STORE_FAULT, after which it can be begun again."""
        seen = sealed = 0
        for tenant in tenants_with_events(self._majority):
            first = message_event_id(tenant, "")
            after, end = first, first + _LAST
            while rows := self._page(after, end, page):
                updates, unreadable = list[UpdateOne](), list[tuple[str, str]]()
                for row in rows:
                    found = self._sealed_anew(row)
                    if isinstance(found, UnreadableMessage):
                        unreadable.append((str(row["_id"]), found.reason))
                    elif found is not None:
                        updates.append(found)
                if updates:
                    sealed += self._events.bulk_write(updates, ordered=False).matched_count
                seen, after = seen + len(rows), rows[-1]["_id"]
                yield ResealProgress(seen, sealed, 0, tuple(unreadable))

    def _page(self, after: str, end: str, limit: int) -> list[Document]:
        rows = self._majority.find({"_id": {"$gt": after, "$lt": end}}).sort("_id", 1).limit(limit)
        return list(rows)

    def _sealed_anew(self, row: Document) -> UpdateOne | UnreadableMessage | None:
        """The write; None if the newest key has sealed it, or nothing in it is secret."""
        token = row.get("sealed")
        if isinstance(token, bytes) and self._secret_box.is_newest(token):
            return None
        found = read_message(row, self._secret_box)
        if not isinstance(found, Message):
            return found
        content = sealed_content(found, self._secret_box)
        if "sealed" not in content:
            return None
        # A cancellation may have wiped it meanwhile, and another run have sealed it.
        same: dict[str, Any] = {
            name: {"$eq": row[name]} if name in row else {"$exists": False} for name in _AS_READ
        }
        return UpdateOne({"_id": row["_id"], **same}, {"$set": content})
