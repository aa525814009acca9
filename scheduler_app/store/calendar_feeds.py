"""Calendar feeds and the hashes of their tokens."""

from dataclasses import dataclass

from bson import ObjectId

from scheduler_app.domain.calendar_feed import CalendarFeed
from scheduler_app.domain.field_types import Corrupt, instant, optional, text, version
from scheduler_app.domain.field_types import tenant as check_tenant
from scheduler_app.domain.tenants import tenant_of, whole_id
from scheduler_app.store.mongo import Document, Mongo

DOCUMENT_VERSION = 1
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

    @staticmethod
    def new_id(*, tenant: str) -> str:
        """A fresh id of a tenant's, 24 hex digits."""
        return whole_id(tenant, str(ObjectId()))

    def insert(self, feed: CalendarFeed) -> None:
        """Its id must be a fresh one."""
        row: Document = {
            "_id": feed.id,
            "v": DOCUMENT_VERSION,
            "tenant": feed.tenant,
            "name": feed.name,
            "secret_sha256": feed.secret_sha256,
            "created_at": feed.created_at,
        }
        self._feeds.insert_many([row | ({"tag": feed.tag} if feed.tag is not None else {})])

    def all(self, *, tenant: str) -> list[CalendarFeed | CorruptFeed]:
        """A tenant's feeds, newest first; at most `MAX_FEEDS` of them."""
        rows = self._majority.find({"tenant": tenant}, hint="list_v1").sort("created_at", -1)
        return [_read(row) for row in rows.limit(MAX_FEEDS)]

    def find(self, feed_id: str) -> CalendarFeed | None:
        """The feed of that id, whoever's it is: for a token, which names its feed. None if there is none,
        or where its document is corrupt."""
        row = self._majority.find_one({"_id": feed_id})
        found = _read(row) if row else None
        return found if isinstance(found, CalendarFeed) else None

    def delete(self, feed_id: str, *, tenant: str) -> bool:
        """False when the tenant has none of that id."""
        if tenant_of(feed_id) != tenant:
            return False
        return self._feeds.delete_one({"_id": feed_id}).deleted_count == 1


def _read(row: Document) -> CalendarFeed | CorruptFeed:
    feed_id = str(row["_id"])
    try:
        version(row.get("v"), DOCUMENT_VERSION)
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
