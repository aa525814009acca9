"""Encrypts the secrets of messages again with the newest key: they may wait for longer than a key lives."""

from collections.abc import Iterator
from typing import Any

from pymongo import UpdateOne

from scheduler_app.domain.message import Message, UnreadableMessage
from scheduler_app.domain.message_ids import message_event_id
from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.events.message_documents import read_message, sealed_content
from scheduler_app.store.events.tenants import tenants_with_events
from scheduler_app.store.mongo import Document, Mongo
from scheduler_app.store.schedules.resealing import Resealed

MESSAGES_A_PAGE = 500
#: Behind every other character of an id.
_LAST = "\x7f"
_AS_READ = ("v", "action", "signing", "sealed")


class MessageResealing:
    """As `Resealing` for schedules: a run may be ended and begun again, and two may run at once."""

    def __init__(self, mongo: Mongo, secret_box: SecretBox) -> None:
        """`secret_box` must have a key."""
        self._events = mongo.collection("events")
        self._majority = mongo.majority("events")
        self._secret_box = secret_box

    def run(self, *, page: int = MESSAGES_A_PAGE) -> Iterator[Resealed]:
        """Goes through the messages of all tenants in the order of their ids, which none ever changes, and
        tells after each page. Raises a STORE_FAULT, after which it can be begun again."""
        seen = sealed = 0
        for tenant in tenants_with_events(self._majority):
            first = message_event_id("", tenant=tenant)
            after, end = first, first + _LAST
            while rows := self._page(after, end, page):
                updates, left = list[UpdateOne](), list[tuple[str, str]]()
                for row in rows:
                    found = self._sealed_anew(row)
                    if isinstance(found, UnreadableMessage):
                        left.append((str(row["_id"]), found.reason))
                    elif found is not None:
                        updates.append(found)
                if updates:
                    sealed += self._events.bulk_write(updates, ordered=False).matched_count
                seen, after = seen + len(rows), rows[-1]["_id"]
                yield Resealed(seen, sealed, 0, tuple(left))

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
