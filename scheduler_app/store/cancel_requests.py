"""Requests to cancel events that workers hold. Only the worker knows whether the event's request began."""

from collections.abc import Collection

from scheduler_app.domain.field_types import Corrupt, text
from scheduler_app.domain.tenants import tenant_of
from scheduler_app.store.documents.leases import lease, lease_over
from scheduler_app.store.mongo import BY_ID, Document, Mongo

#: How long a request stands if the process that made it dies.
STANDS_SECONDS = 30.0
#: How many are obeyed at once.
MAX_REQUESTS = 1_000


class CancelRequests:
    def __init__(self, mongo: Mongo) -> None:
        self._requests = mongo.collection("cancel_requests")

    def put(self, event_id: str, message: str, *, tenant: str) -> bool:
        """Asks the worker that holds the tenant's event to cancel it; `message` is for its history. False for
        an event of another tenant."""
        if tenant_of(event_id) != tenant:
            return False
        asked: Document = {"v": 1, "text": message, "until": lease(STANDS_SECONDS)}
        self._requests.update_one({"_id": event_id}, [{"$set": asked}], upsert=True)
        return True

    def stands(self, event_id: str, *, tenant: str) -> bool:
        """Whether the tenant asks for it and no worker has refused it."""
        if tenant_of(event_id) != tenant:
            return False
        return self._requests.find_one({"_id": event_id}, {"_id": 1}) is not None

    def texts(self) -> dict[str, str]:
        """What is asked for: the events' ids and the messages, `MAX_REQUESTS` of them at most. Those of
        processes that died are left out."""
        found: dict[str, str] = {}
        standing = {"$nor": [lease_over("until")]}
        for row in self._requests.find(standing, limit=MAX_REQUESTS, hint=BY_ID):
            try:
                found[row["_id"]] = text(row.get("text"), "text")
            except Corrupt:
                continue  # its process gives it up after a moment
        return found

    def remove(self, event_ids: Collection[str]) -> None:
        """Removes these, and those whose processes died."""
        gone: list[Document] = [{"_id": {"$in": list(event_ids)}}, lease_over("until")]
        self._requests.delete_many({"$or": gone}, hint=BY_ID)
