"""Access by tokens of which only hashes are stored: sessions of browsers that signed in with an API key, and
calendar feeds. No token and no key can be read from the database.
"""

import hashlib
import secrets
from dataclasses import dataclass

from bson import ObjectId
from pymongo import DESCENDING

from scheduler_app.domain.calendar_feed import CalendarFeed
from scheduler_app.domain.ids import WholeId, whole_id
from scheduler_app.domain.stored_fields import Corrupt, instant, optional, text, version
from scheduler_app.domain.stored_fields import tenant as check_tenant
from scheduler_app.store.audit import AuditedDocuments, audited
from scheduler_app.store.mongo import Document, Mongo, lease

SESSION_VERSION = 1
BY_KEY = "key_v1"
#: Sessions that one key may have at a time: beyond that, the oldest end.
MAX_SESSIONS = 100


class Sessions:
    def __init__(self, mongo: Mongo, seconds: float) -> None:
        """A session ends after `seconds`, however busy it is."""
        self._sessions = mongo.collection("sessions")
        self._seconds = seconds

    def open(self, key: str, stored_sha256: str | None = None) -> str:
        """Begins a session of one of API_KEYS, by its digest, or of a stored key, by its id and its digest;
        returns its token, which is stored nowhere."""
        token = secrets.token_urlsafe(32)
        begun: Document = {
            "v": SESSION_VERSION,
            "key": key,
            "created_at": "$$NOW",
            "expires_at": lease(self._seconds),
        }
        # An update, because only an update can write mongod's own time.
        if stored_sha256 is not None:
            begun["stored_sha256"] = stored_sha256
        self._sessions.update_one({"_id": _digest(token)}, [{"$set": begun}], upsert=True)
        self._end_oldest(key)
        return token

    def key_of(self, token: str) -> tuple[str, str | None] | None:
        """What `open` was told of the key that the session belongs to; None if the session is over."""
        which = {"_id": _digest(token), "$expr": {"$gt": ["$expires_at", "$$NOW"]}}
        row = self._sessions.find_one(which, {"key": 1, "stored_sha256": 1}, hint="_id_")
        return (row["key"], row.get("stored_sha256")) if row else None

    def close(self, token: str) -> bool:
        """Ends one session; False where it has ended already."""
        return self._sessions.delete_one({"_id": _digest(token)}).deleted_count == 1

    def close_all(self, key: str) -> int:
        """Ends every session of a key; returns how many there were."""
        return self._sessions.delete_many({"key": key}, hint=BY_KEY).deleted_count

    def _end_oldest(self, key: str) -> None:
        newest_first = [("created_at", DESCENDING)]
        rows = self._sessions.find({"key": key}, {"_id": 1}, sort=newest_first, hint=BY_KEY)
        if beyond := [row["_id"] for row in rows.skip(MAX_SESSIONS).limit(MAX_SESSIONS)]:
            self._sessions.delete_many({"_id": {"$in": beyond}})


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


FEED_VERSION = 1
#: For each tenant: lists are not paged.
MAX_FEEDS = 200


@dataclass(frozen=True, slots=True)
class CorruptFeed:
    """A stored feed that can no longer be read, and why; its token opens nothing."""

    id: str
    reason: str


class CalendarFeeds:
    """A feed never changes: it is made, and deleted."""

    def __init__(self, mongo: Mongo) -> None:
        self._feeds = mongo.collection("calendar_feeds")
        self._majority = mongo.majority("calendar_feeds")
        self.audited = AuditedDocuments(mongo, self._feeds, "calendar feed")

    @staticmethod
    def new_id(tenant: str) -> WholeId:
        """A fresh id of a tenant's, 24 hex digits."""
        return whole_id(tenant, str(ObjectId()))

    @audited()
    def insert(self, feed: CalendarFeed) -> None:
        """Its id must be a fresh one."""
        row: Document = {
            "_id": feed.id,
            "v": FEED_VERSION,
            "tenant": feed.tenant,
            "name": feed.name,
            "secret_sha256": feed.secret_sha256,
            "created_at": feed.created_at,
        }
        self._feeds.insert_many([row | ({"tag": feed.tag} if feed.tag is not None else {})])

    def all(self, tenant: str) -> list[CalendarFeed | CorruptFeed]:
        """A tenant's feeds, newest first; at most `MAX_FEEDS` of them."""
        rows = self._majority.find({"tenant": tenant}, hint="list_v1").sort("created_at", -1)
        return [_read_feed(row) for row in rows.limit(MAX_FEEDS)]

    def find(self, feed_id: str) -> CalendarFeed | None:
        """The feed of that id, whoever's it is: for a token, which names its feed. None if there is none,
        or where its document is corrupt."""
        row = self._majority.find_one({"_id": feed_id})
        found = _read_feed(row) if row else None
        return found if isinstance(found, CalendarFeed) else None

    @audited()
    def delete(self, feed_id: str) -> bool:
        """False when there is none of that id."""
        return self._feeds.delete_one({"_id": feed_id}).deleted_count == 1


def _read_feed(row: Document) -> CalendarFeed | CorruptFeed:
    feed_id = str(row["_id"])
    try:
        version(row.get("v"), FEED_VERSION)
        check_tenant(row.get("tenant"), "tenant", feed_id)
        return CalendarFeed(
            id=feed_id,
            name=text(row.get("name"), "name"),
            secret_sha256=text(row.get("secret_sha256"), "secret_sha256"),
            created_at=instant(row.get("created_at"), "created_at"),
            tag=optional(text, row.get("tag"), "tag"),
        )
    except Corrupt as error:
        return CorruptFeed(feed_id, str(error))
