"""Documents as they stand in MongoDB, for tests of what the store's records do not show."""

from typing import Any

from scheduler_app.store import Store


def event_document(store: Store, event_id: str) -> dict[str, Any]:
    found = store.mongo.collection("events").find_one({"_id": event_id})
    assert found is not None, f"there is no event {event_id}"
    return found
