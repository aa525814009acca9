"""Which tenants have events."""

from collections.abc import Iterator

from scheduler_app.store.collection import Documents


def tenants_with_events(events: Documents) -> Iterator[str]:
    """The tenants that have events, by one step in the index for each."""
    after: str | None = ""
    while after is not None:
        # The index's own keys, in its order: a document whose tenant is an array does not stop this.
        above = events.find({"tenant": {"$gt": after}}, hint="list_v1", return_key=True, limit=1)
        after = next((key["tenant"] for key in above), None)
        if after is not None:
            yield after
