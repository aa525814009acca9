"""Which documents go with a tag: the schedules that have it, what hangs on them, what is of the tag alone.

A schedule's document goes last, because what hangs on it is found by it. What other things say of the tag
stays: rules of notifications, silences, kill switches, blackouts and the lines of the audit.
"""

import re
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple

from pymongo.client_session import ClientSession

from scheduler_app.domain.deletion import LEAST_DURATION
from scheduler_app.domain.ids import OF_NOTIFICATION, message_event_id, name_of, whole_id
from scheduler_app.domain.schedule import ScheduleState
from scheduler_app.store.indexes import BY_TAG, OF_TENANT
from scheduler_app.store.ledger import OF_SCHEDULE
from scheduler_app.store.mongo import BY_ID, Document, Mongo
from scheduler_app.store.schedules.schedules import NOT_DELETED, deletion_stages
from scheduler_app.store.tenant_documents import UNHELD, id_range

#: Schedules that are deleted by one write.
SCHEDULES_A_WRITE: Final = 500
#: Schedules at which a look begins. Each is some conditions of the questions that follow.
SCHEDULES_A_LOOK: Final = 100


class RemovalBatch(NamedTuple):
    """Some documents of a collection, and the schedules on which they hang, if any."""

    collection: str
    ids: list[Any]
    owners: list[str]


class TagCounts(NamedTuple):
    """What has a tag, deleted schedules included; no more than was asked for are counted of anything."""

    schedules: int
    with_other_tags: int
    events: int
    heartbeats: int


class TaggedDocuments:
    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._schedules = mongo.collection("schedules")
        self._events = mongo.collection("events")
        self._causes = mongo.collection("causes")

    def count(self, tenant: str, tag: str, *, most: int) -> TagCounts:
        """Raises a STORE_FAULT."""
        found = self._schedules.find({"tenant": tenant, "tags": tag}, {"tags": 1}, hint=BY_TAG).limit(most)
        rows = list(found.batch_size(SCHEDULES_A_WRITE))
        events = 0
        for first in range(0, len(rows), SCHEDULES_A_WRITE):
            theirs = {"schedule_id": {"$in": [row["_id"] for row in rows[first : first + SCHEDULES_A_WRITE]]}}
            events += self._events.count_documents(theirs, hint="schedule_v1", limit=most - events)
            if events >= most:
                break
        return TagCounts(
            len(rows),
            sum(len(row["tags"]) > 1 for row in rows),
            events,
            self._mongo.collection("heartbeats").count_documents(
                {"tenant": tenant, "tags": tag}, hint="list_v1", limit=most
            ),
        )

    def delete_schedules(self, tenant: str, tag: str, now: datetime) -> bool:
        """Deletes some of the schedules, as a person does, so that nothing of them is sent any more; whether
        all are. Raises a STORE_FAULT."""
        which: Document = {"tenant": tenant, "tags": tag, "state": NOT_DELETED}
        found = self._schedules.find(which, {"_id": 1}, hint=BY_TAG).limit(SCHEDULES_A_WRITE)
        if ids := [row["_id"] for row in found]:
            self._schedules.update_many(which | {"_id": {"$in": ids}}, deletion_stages(now), hint=BY_ID)
        return len(ids) < SCHEDULES_A_WRITE

    def batch(self, tenant: str, tag: str, now: datetime, *, limit: int) -> RemovalBatch | None:
        """Some that are to be removed, of one collection; None where there is nothing but what waits: events
        that workers hold, and schedules that were deleted just now. Raises a STORE_FAULT."""
        settled = _of_tag(tenant, tag) | {
            "deleted_at": {"$lte": now - LEAST_DURATION},
            # A beat moves the lines of the audit that a document still has.
            "unlogged": {"$exists": False},
        }
        found = self._schedules.find(settled, {"_id": 1}, hint=BY_TAG).limit(SCHEDULES_A_LOOK)
        owners = [row["_id"] for row in found]
        if owners:
            for collection, which, hint in _hanging(tenant, owners):
                if ids := self._ids(collection, which, hint, limit):
                    return RemovalBatch(collection, ids, owners)
            held = self._events.find({"schedule_id": {"$in": owners}}, {"schedule_id": 1}, hint="schedule_v1")
            busy = {row["schedule_id"] for row in held}
            free = [each for each in owners if each not in busy]
            # A notification does not say in a field whose it is: all wait for one that a worker holds.
            if free and not self._ids("events", {"$and": _notifications_of(tenant, owners)}, BY_ID, 1):
                return RemovalBatch("schedules", free, free)
        for collection, which, hint in _of_tag_alone(tenant, tag):
            if ids := self._ids(collection, which, hint, limit):
                return RemovalBatch(collection, ids, [])
        return None

    def remove(self, tenant: str, tag: str, batch: RemovalBatch, session: ClientSession) -> int:
        """Removes a batch; returns how many there were. None of them where one of its schedules has been made
        anew: then some may be that one's."""
        if batch.owners:
            still = _of_tag(tenant, tag) | {"_id": {"$in": batch.owners}}
            if self._schedules.count_documents(still, hint=BY_ID, session=session) < len(batch.owners):
                return 0
        if batch.collection == "schedules":
            named = {"tenant": tenant, "schedules.names": {"$in": batch.ids}}
            gone = {"schedules.names": {"$in": batch.ids}, "failing": {"id": {"$in": batch.ids}}}
            self._causes.update_many(named, {"$pull": gone}, hint="list_v1", session=session)
        documents = self._mongo.collection(batch.collection)
        which = {"_id": {"$in": batch.ids}}
        return documents.delete_many(which, hint=BY_ID, session=session).deleted_count

    def any_of(self, tenant: str, tag: str) -> bool:
        """Whether there is anything. Raises a STORE_FAULT."""
        wanted = [("schedules", {"tenant": tenant, "tags": tag}, BY_TAG), *_of_tag_alone(tenant, tag)]
        return any(self._ids(collection, which, hint, 1) for collection, which, hint in wanted)

    def forget(self, tenant: str, tag: str, session: ClientSession) -> None:
        """Takes the tag out of failures that others have, too."""
        which = {"tenant": tenant, "tags.names": tag}
        self._causes.update_many(which, {"$pull": {"tags.names": tag}}, hint="list_v1", session=session)

    def _ids(self, collection: str, which: Document, hint: str, limit: int) -> list[Any]:
        rows = self._mongo.collection(collection).find(which, {"_id": 1}, hint=hint).limit(limit)
        return [row["_id"] for row in rows.batch_size(limit)]


def _of_tag(tenant: str, tag: str) -> Document:
    return {"tenant": tenant, "tags": tag, "state": ScheduleState.DELETED.value}


def _hanging(tenant: str, owners: Collection[str]) -> Iterator[tuple[str, Document, str]]:
    """What hangs on these schedules: collections, conditions and indexes. What makes events goes first."""
    owned = {"$in": list(owners)}
    yield "backfills", {"_id": owned}, BY_ID
    yield "redrives", {"tenant": tenant, "schedule_id": owned}, OF_TENANT
    yield "events", {"schedule_id": owned} | UNHELD, "schedule_v1"
    yield "events", {"$and": [*_notifications_of(tenant, owners), UNHELD]}, BY_ID
    yield "ended_revisions", {"schedule_id": owned}, OF_SCHEDULE


def _of_tag_alone(tenant: str, tag: str) -> Iterator[tuple[str, Document, str]]:
    """What is of the tag, and of no schedule: collections, conditions and indexes."""
    yield "heartbeats", {"tenant": tenant, "tags": tag}, "list_v1"
    yield "calendar_feeds", {"tenant": tenant, "tag": tag}, "list_v1"
    yield "redrives", {"tenant": tenant, "tag": tag}, OF_TENANT
    figures = id_range(whole_id(tenant, f"tag/{tag}/"))
    yield "figures", {"_id": figures, "subject": f"tag/{tag}"}, BY_ID
    # Failures of its schedules, which are gone, and of nothing else.
    alone = {"tags.names": tag, "schedules.names": [], "schedules.others": {"$exists": False}}
    yield "causes", {"tenant": tenant} | alone, "list_v1"


#: The rest of an event's id after that of its schedule; of one that is too long, its beginning and a hash.
_REST: Final = r"(?:\d+|manual|backfill[^-]*)-[^-]*(?:-[0-9a-f]{32})?"


def _notifications_of(tenant: str, owners: Collection[str]) -> list[Document]:
    """The conditions of messages that tell of these schedules and of their events (`notification_id`). The
    first one is found by the index, which a pattern with alternatives is not."""
    beginnings = [f"^{re.escape(message_event_id(tenant, name_of(each)))}-" for each in owners]
    whole = [rf"{each[:-1]}(?:-{_REST})?{OF_NOTIFICATION}$" for each in beginnings]
    return [{"_id": {"$in": list(map(re.compile, patterns))}} for patterns in (beginnings, whole)]
