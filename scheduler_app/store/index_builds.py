"""Makes the indexes, with the view of finished events, by whichever process comes first, and drops those that
have been replaced. `store/indexes.py` defines them.
"""

import random
from collections.abc import Callable
from functools import partial

from pymongo import ASCENDING, IndexModel
from pymongo.collection import Collection
from pymongo.errors import NetworkTimeout, OperationFailure

from scheduler_app.store.faults import Unavailable, raising_store_faults
from scheduler_app.store.indexes import (
    OF_COLLECTIONS,
    REPLACED,
    UNUSED_COLLECTIONS,
    ExpiryIndex,
    expiry_indexes,
)
from scheduler_app.store.mongo import Document, Mongo

#: The same index exists with other options, or another process is making it this very moment.
LOST_RACE_CODES = {85, 86, 68, 276, 117}
NAMESPACE_EXISTS = 48
INDEX_NOT_FOUND = 27


class IndexBuildGoesOn(Unavailable):
    """MongoDB builds indexes for longer than a command may take, and goes on: nothing uses the collection's
    new indexes until then. Its message says which ones, and how far they are where MONGO_URI's user may know.
    """


def ensure_indexes(mongo: Mongo, *, retention_days: int, message_retention_days: int) -> None:
    """Makes what is missing. Several processes may call it at once: losing that race is success.

    Raises a STORE_FAULT; IndexBuildGoesOn among them means to ask again later.
    """
    expiring = expiry_indexes(retention_days=retention_days, message_retention_days=message_retention_days)
    steps: list[Callable[[], None]] = [
        *(partial(_create, mongo.collection(name), models) for name, models in OF_COLLECTIONS.items()),
        *(partial(_ensure_expiry, mongo, each) for each in expiring),
        partial(_ensure_archive_view, mongo),
    ]
    # Processes that start together begin at different places. In one order they would all ask for the same
    # index, and mongod would try it again for each of them, for four times the work.
    first = random.randrange(len(steps))  # noqa: S311
    for step in steps[first:] + steps[:first]:
        step()


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


def drop_replaced(mongo: Mongo) -> None:
    """Drops replaced indexes, whose replacements exist, and collections that nothing uses any more. A process
    of a release that asks for one by name would be refused: there must be none. Raises a STORE_FAULT."""
    for unused in UNUSED_COLLECTIONS:
        with raising_store_faults():
            mongo.db.drop_collection(unused)
    for name, replaced in REPLACED.items():
        collection = mongo.collection(name)
        with raising_store_faults():
            there = collection.index_information()
        for index in there.keys() & set(replaced):
            try:
                collection.drop_index(index)
            except OperationFailure as error:
                if error.code != INDEX_NOT_FOUND:
                    raise


def _ensure_expiry(mongo: Mongo, index: ExpiryIndex) -> None:
    collection = mongo.collection(index.collection)
    only: Document = {"partialFilterExpression": index.only} if index.only else {}
    model = IndexModel([(index.field, ASCENDING)], name=index.name, expireAfterSeconds=index.seconds, **only)
    _create(collection, [model])
    if collection.index_information()[index.name].get("expireAfterSeconds") != index.seconds:
        kept = {"name": index.name, "expireAfterSeconds": index.seconds}
        mongo.command("collMod", index.collection, index=kept)


def _ensure_archive_view(mongo: Mongo) -> None:
    """The seed's `archived_events`, for people who look into the database."""
    from scheduler_app.domain.states import FINAL

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
