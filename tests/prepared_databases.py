"""Databases that have their collections and indexes already, lent to one test after another.

Making and dropping some fifty indexes takes longer than most tests of the store. A database that comes back
is emptied when it is lent again, and only after `RESTING` others: what a test's last thread still writes is
gone by then. One whose collections or indexes a test has changed is dropped, and so is each collection that a
test has made. A list where there should be none changes an index, too: it keeps that when its document is
gone, and queries that took their order from it sort. To find these, and those with documents, takes one
command each: two for every collection would take longer than many a test.
"""

import secrets
from collections import deque
from typing import Any

from pymongo import MongoClient

from scheduler_app.config import Settings
from scheduler_app.store import Store

#: How many databases wait before one of them is lent again.
RESTING = 12
#: With many more events than these it takes longer to empty a database than to make one.
MOST_EVENTS = 4_000
_Schema = dict[str, Any]
#: Fields that hold lists in sound documents: their indexes are the same whether they have met one or not.
_LISTS = frozenset({"tags", "owed.next_run_at", "notifies.destination", "unlogged._id"})
_VIEWS = ("archived_events", "system.views")


def _its_name_if_any_document(collection: str) -> list[_Schema]:
    """The stages that give a collection's name, or nothing where it is empty."""
    return [{"$limit": 1}, {"$project": {"_id": {"$literal": collection}}}]


class PreparedDatabases:
    """Those of one mongod; for one thread."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._client = MongoClient[dict[str, Any]](uri)
        self._resting: deque[str] = deque()
        self._schema: _Schema = {}

    def take(self) -> str:
        """The name of a database with all indexes and no document."""
        while len(self._resting) > RESTING:
            name = self._resting.popleft()
            found = self._schema_of(name)
            small = self._client[name]["events"].estimated_document_count() <= MOST_EVENTS
            if small and not self._changed(found):
                self._empty(name, found)
                return name
            self._client.drop_database(name)
        return self._made()

    def give_back(self, name: str) -> None:
        self._resting.append(name)

    def changed(self, name: str) -> list[str]:
        """The collections of a database that are no longer as they were made."""
        return self._changed(self._schema_of(name))

    def close(self) -> None:
        self._client.close()

    def _made(self) -> str:
        name = f"test_{secrets.token_hex(6)}"
        store = Store(Settings(mongo_uri=self._uri, mongo_database=name))
        store.prepare()
        store.close()
        self._schema = self._schema or self._schema_of(name)
        return name

    def _changed(self, found: _Schema) -> list[str]:
        return [each for each, wanted in self._schema.items() if found.get(each) != wanted]

    def _schema_of(self, name: str) -> _Schema:
        catalog = self._client.admin.aggregate([{"$listCatalog": {}}, {"$match": {"db": name}}])
        return {found["name"]: _definition(found) for found in catalog}

    def _empty(self, name: str, found: _Schema) -> None:
        database = self._client[name]
        for collection in found.keys() - self._schema.keys():
            database.drop_collection(collection)
        first, *others = self._schema.keys() - set(_VIEWS)
        filled = database[first].aggregate(
            [
                *_its_name_if_any_document(first),
                *(
                    {"$unionWith": {"coll": each, "pipeline": _its_name_if_any_document(each)}}
                    for each in others
                ),
            ]
        )
        for each in filled:
            database[each["_id"]].delete_many({})
            # How mongod has found other documents says nothing of how it is to look for the next ones.
            database.command("planCacheClear", each["_id"])


def _definition(entry: _Schema) -> _Schema:
    """What a test could change of a collection or a view."""
    if entry["type"] != "collection":
        return {each: entry[each] for each in ("type", "viewOn", "pipeline")}
    options = {name: value for name, value in entry["md"]["options"].items() if name != "uuid"}
    # By their names: processes build indexes in an order that is drawn each time.
    indexes = {
        each["spec"]["name"]: (each["spec"], each["multikey"] and not _LISTS & each["spec"]["key"].keys())
        for each in entry["md"]["indexes"]
    }
    return {"options": options, "indexes": indexes}
