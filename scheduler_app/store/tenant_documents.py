"""Which documents belong to a tenant, in every collection that there is.

A document says whose it is by its field `tenant`, and its id by its beginning. A new collection needs no line
here: it has an index that begins with `tenant`, or ids that begin with the tenant's name and a colon.
"""

from typing import Any, Final

from pymongo.client_session import ClientSession

from scheduler_app.domain.ids import SEPARATOR
from scheduler_app.domain.person import session_key
from scheduler_app.domain.states import State
from scheduler_app.store.faults import raising_store_faults
from scheduler_app.store.mongo import BY_ID, Document, Mongo, lease_over, limit_command

#: What they hold belongs to the installation. (So do deletions of tenants; those of tags are a tenant's.)
OF_INSTALLATION: Final = frozenset(("tenants", "nodes", "partitions", "outbox"))
#: Whose documents have no field `tenant`, and what follows its name in their ids.
_WITHOUT_FIELD: Final = {"idempotency": "/", "cancel_requests": SEPARATOR}
#: What beats make events of goes first, and last what is needed to find other things.
_FIRST: Final = ("schedules", "heartbeats", "backfills", "redrives", "events")
_LAST: Final = ("sessions", "api_keys", "people")


class TenantDocuments:
    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._indexes: dict[str, str | None] = {}

    def collections(self) -> list[str]:
        """Those that hold something of tenants, in the order in which it is removed. Raises a STORE_FAULT."""
        with raising_store_faults(), limit_command(self._mongo.client):
            there = set(self._mongo.db.list_collection_names(filter={"type": "collection"}))
        there = {each for each in there if not each.startswith("system.")} - OF_INSTALLATION
        between = sorted(there - {*_FIRST, *_LAST})
        return [each for each in (*_FIRST, *between, *_LAST) if each in there]

    def ids(self, collection: str, tenant: str, *, limit: int) -> list[Any]:
        """The ids of some of a tenant's documents, without events that a worker holds. Raises a
        STORE_FAULT."""
        which, hint = self._of(collection, tenant)
        if collection == "events":
            which |= UNHELD
        rows = self._mongo.collection(collection).find(which, {"_id": 1}, hint=hint).limit(limit)
        return [row["_id"] for row in rows.batch_size(limit)]

    def remove(self, collection: str, tenant: str, ids: list[Any], session: ClientSession) -> int:
        """Removes those of these that are the tenant's; returns how many there were."""
        which, _ = self._of(collection, tenant)
        which["_id"] = {"$in": ids}
        documents = self._mongo.collection(collection)
        return documents.delete_many(which, hint=BY_ID, session=session).deleted_count

    def any_of(self, tenant: str) -> bool:
        """Whether there is anything of it, events that a worker holds included. Raises a STORE_FAULT."""
        return any(
            self._mongo.collection(name).find_one(which, {"_id": 1}, hint=hint) is not None
            for name in self.collections()
            for which, hint in [self._of(name, tenant)]
        )

    def _of(self, collection: str, tenant: str) -> tuple[Document, str]:
        """The condition of a tenant's documents, and the index that finds them."""
        if collection == "sessions":
            keys = self._mongo.collection("api_keys").find({"tenant": tenant}, {"_id": 1})
            people = self._mongo.collection("people").find({"tenant": tenant}, {"_id": 1})
            theirs = [row["_id"] for row in keys] + [session_key(row["_id"]) for row in people]
            return {"key": {"$in": theirs}}, "key_v1"
        if collection in _WITHOUT_FIELD:
            return {"_id": id_range(f"{tenant}{_WITHOUT_FIELD[collection]}")}, BY_ID
        if (index := self.index_of(collection)) is not None:
            return {"tenant": tenant}, index
        return {"tenant": tenant, "_id": id_range(f"{tenant}{SEPARATOR}")}, BY_ID

    def index_of(self, collection: str) -> str | None:
        """An index of all documents of the collection that begins with their tenants, if it has one."""
        if collection not in self._indexes:
            indexes = self._mongo.collection(collection).index_information()
            whole = (
                name
                for name, index in sorted(indexes.items())
                if index["key"][0][0] == "tenant" and "partialFilterExpression" not in index
            )
            self._indexes[collection] = next(whole, None)
        return self._indexes[collection]


def id_range(text: str) -> Document:
    """The condition of ids that begin so. The text ends with the character that sets apart what follows."""
    return {"$gte": text, "$lt": text[:-1] + chr(ord(text[-1]) + 1)}


#: A worker that holds an event records its outcome, and what follows from it, until its lease is over.
UNHELD: Final[Document] = {
    "$or": [
        {"state": {"$ne": State.RUNNING.value}},
        {"completion.awaiting": True},
        *lease_over("lease_until")["$or"],
    ]
}
