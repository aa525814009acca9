"""Leases: until when a claim holds, written and judged by mongod's own clock and by no other."""

from typing import Any

from scheduler_app.store.collection import Document

#: Leases are minutes; a clock of mongod's that is put back by less than this ends none.
LONGEST_LEASE_MS = 86_400_000


def lease(seconds: float) -> dict[str, Any]:
    """The expression of a lease that ends `seconds` after mongod makes the write."""
    return {"$add": ["$$NOW", int(seconds * 1000)]}


def lease_over(field: str, jumped_ahead_seconds: float = 0.0) -> Document:
    """The condition of a lease that is over.

    A lease that is no date counts as over, and so does one that ends later than any that is ever given: it
    would hold its document for ever. `jumped_ahead_seconds` is by how much mongod's clock has jumped ahead
    since the lease was written: the lease holds so much longer.
    """
    beyond = {"$add": ["$$NOW", LONGEST_LEASE_MS]}
    now = {"$subtract": ["$$NOW", int(jumped_ahead_seconds * 1000)]} if jumped_ahead_seconds else "$$NOW"
    return {"$or": [{"$expr": {"$lte": [f"${field}", now]}}, {"$expr": {"$gt": [f"${field}", beyond]}}]}


def unclaimed(owner: str, lease_until: str) -> Document:
    """The condition of a document that is not claimed, or whose claim is over. `owner` and `lease_until`
    are the names of the claim's fields."""
    return {"$or": [{owner: {"$exists": False}}, *lease_over(lease_until)["$or"]]}
