"""Makes the indexes of `indexes`, and the view of finished events; whichever process comes first does it."""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from pymongo import ASCENDING, IndexModel
from pymongo.collection import Collection
from pymongo.errors import NetworkTimeout, OperationFailure

from scheduler_app.store.faults import Unavailable, told_apart
from scheduler_app.store.idempotency import KEPT_SECONDS
from scheduler_app.store.indexes import (
    BACKFILLS,
    CALENDAR_FEEDS,
    CALENDARS,
    DAY_SECONDS,
    DESTINATIONS,
    EDITS,
    EVENTS,
    IDEMPOTENCY,
    OUTBOX,
    REPLACED,
    SCHEDULES,
    SESSIONS,
    UNUSED_COLLECTIONS,
)
from scheduler_app.store.mongo import Document, Mongo

#: The same index exists with other options, or another process is making it this very moment.
LOST_RACE_CODES = {85, 86, 68, 276, 117}
NAMESPACE_EXISTS = 48
INDEX_NOT_FOUND = 27
NODE_TTL_SECONDS = 60

_OF_COLLECTIONS = {
    "schedules": SCHEDULES,
    "events": EVENTS,
    "calendars": CALENDARS,
    "outbox": OUTBOX,
    "destinations": DESTINATIONS,
    "idempotency": IDEMPOTENCY,
    "calendar_feeds": CALENDAR_FEEDS,
    "backfills": BACKFILLS,
    "sessions": SESSIONS,
    "edits": EDITS,
}


class IndexBuildGoesOn(Unavailable):
    """MongoDB builds indexes for longer than a command may take, and goes on: nothing uses the collection's
    new indexes until then. Its message says which ones, and how far they are where MONGO_URI's user may know.
    """


def ensure_indexes(mongo: Mongo, *, retention_days: int, message_retention_days: int) -> None:
    """Makes what is missing. Several processes may call it at once: losing that race is success.

    Raises a STORE_FAULT; IndexBuildGoesOn among them means to ask again later.
    """
    events = partial(_ensure_ttl, mongo, "events", "archived_at")
    steps: list[Callable[[], None]] = [
        *(partial(_create, mongo.collection(name), models) for name, models in _OF_COLLECTIONS.items()),
        # Messages have no schedule, and a retention of their own.
        partial(
            events,
            "retention_v2",
            retention_days * DAY_SECONDS,
            partialFilterExpression={"archived_at": {"$exists": True}, "schedule_id": {"$exists": True}},
        ),
        partial(
            events,
            "message_retention_v1",
            message_retention_days * DAY_SECONDS,
            partialFilterExpression={"archived_at": {"$exists": True}, "kind": "message"},
        ),
        partial(_ensure_ttl, mongo, "edits", "at", "retention_v1", retention_days * DAY_SECONDS),
        partial(_ensure_ttl, mongo, "idempotency", "created_at", "kept_v1", KEPT_SECONDS),
        partial(_ensure_ttl, mongo, "sessions", "expires_at", "expired_v1", 0),
        partial(_ensure_ttl, mongo, "nodes", "seen_at", "alive_v1", NODE_TTL_SECONDS),
        partial(_ensure_archive_view, mongo),
    ]
    # Processes that start together begin at different places. In one order they would all ask for the same
    # index, and mongod would try it again for each of them, for four times the work.
    first = random.randrange(len(steps))  # noqa: S311
    for step in steps[first:] + steps[:first]:
        step()
    _drop_replaced(mongo)


def _create(collection: Collection[Document], models: list[IndexModel]) -> None:
    try:
        collection.create_indexes(models)
    except OperationFailure as error:
        if error.code not in LOST_RACE_CODES:
            raise
    except NetworkTimeout:
        # mongod continues a build whose client has left; a second request for the same index waits for it.
        if names := index_builds(collection):
            raise IndexBuildGoesOn(
                f"MongoDB builds {', '.join(names)} of {collection.name}{_progress(collection)}"
            ) from None
        raise


def index_builds(collection: Collection[Document]) -> list[str]:
    """The indexes that MongoDB is still building, by name: `index_information` lists them like the others."""
    found: list[str] = collection.database.command("collStats", collection.name).get("indexBuilds", [])
    return found


def _progress(collection: Collection[Document]) -> str:
    """How far the builds are, if the user may see what others do in MongoDB (the privilege `inprog`)."""
    which = {
        "ns": collection.full_name,
        "command.createIndexes": {"$exists": True},
        "progress.total": {"$gt": 0},
    }
    try:
        with collection.database.client.admin.aggregate(
            [{"$currentOp": {"allUsers": True}}, {"$match": which}]
        ) as found:
            shares = [each["progress"]["done"] / each["progress"]["total"] for each in found]
    except OperationFailure:
        return ""
    return f", {min(shares):.0%} of this step" if shares else ""


def _drop_replaced(mongo: Mongo) -> None:
    """Drops replaced indexes, after their replacements exist, and collections that nothing uses any more."""
    for unused in UNUSED_COLLECTIONS:
        with told_apart():
            mongo.db.drop_collection(unused)
    for name, replaced in REPLACED.items():
        collection = mongo.collection(name)
        for index in replaced:
            try:
                collection.drop_index(index)
            except OperationFailure as error:
                if error.code != INDEX_NOT_FOUND:
                    raise


def _ensure_ttl(mongo: Mongo, name: str, field: str, index: str, seconds: int, **options: Any) -> None:
    collection = mongo.collection(name)
    _create(
        collection,
        [IndexModel([(field, ASCENDING)], name=index, expireAfterSeconds=seconds, **options)],
    )
    if collection.index_information()[index].get("expireAfterSeconds") != seconds:
        mongo.command("collMod", name, index={"name": index, "expireAfterSeconds": seconds})


def _ensure_archive_view(mongo: Mongo) -> None:
    """The seed's `archived_events`, for people who look into the database."""
    from scheduler_app.domain.event import FINAL

    try:
        mongo.command(
            "create",
            "archived_events",
            viewOn="events",
            pipeline=[{"$match": {"state": {"$in": sorted(FINAL)}}}],
        )
    except OperationFailure as error:
        if error.code != NAMESPACE_EXISTS:
            raise
