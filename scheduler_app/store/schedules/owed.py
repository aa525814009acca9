"""Owed ranges: occurrences that edits left to beats, stored with their schedules, claimed oldest first.

The claim is apart from that of the schedule's own expansion: neither waits for the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pymongo.client_session import ClientSession

from scheduler_app.domain.lateness import Lateness
from scheduler_app.domain.owed import MAX_OWED, OwedRange
from scheduler_app.domain.queues import CALLBACKS
from scheduler_app.domain.schedule import DEFAULT_LATENESS
from scheduler_app.domain.tenants import tenant_of
from scheduler_app.store.calendars.calendars import Calendars
from scheduler_app.store.documents.delivery_fields import read_lateness
from scheduler_app.store.documents.leases import lease, unclaimed
from scheduler_app.store.faults import STORE_FAULTS
from scheduler_app.store.mongo import BY_ID, Document, Mongo, new_token, written_by_token
from scheduler_app.store.schedules.owed_documents import from_owed_document, to_owed_document


@dataclass(frozen=True, slots=True)
class ClaimedOwed:
    """A schedule's oldest owed range; None with the reason where its document can no longer be read."""

    schedule_id: str
    created_at: datetime | None
    range: OwedRange | None
    queue: str = CALLBACKS
    lateness: Lateness = DEFAULT_LATENESS
    reason: str = ""


class Owed:
    def __init__(self, mongo: Mongo, calendars: Calendars) -> None:
        self._calendars = calendars
        self._schedules = mongo.collection("schedules")
        self._majority = mongo.majority("schedules")

    def waiting(self, *, limit: int) -> list[str]:
        """Schedules with owed ranges that no beat has claimed, those furthest behind first."""
        rows = self._schedules.find(_free(), {"_id": 1}).sort("owed.next_run_at", 1).limit(limit)
        return [row["_id"] for row in rows]

    def claim(self, ids: Sequence[str], *, lease_seconds: float) -> tuple[str, list[ClaimedOwed]]:
        """Claims those that are still free. Returns the token and the oldest range of each."""
        token = new_token()
        # Claimed ranges are read back by the token.
        written_by_token(
            lambda: self._schedules.update_many(
                {**_free(), "_id": {"$in": list(ids)}},
                [{"$set": {"owed_owner": token, "owed_lease_until": lease(lease_seconds)}}],
                hint=BY_ID,
            )
        )
        which = {"_id": {"$in": list(ids)}, "owed_owner": token}
        rows = self._majority.find(which, {"created_at": 1, "owed": 1, "queue": 1, "lateness": 1})
        return token, [self._claimed(row) for row in rows]

    def _claimed(self, row: Document) -> ClaimedOwed:
        try:
            owed = from_owed_document(row["owed"][0])
            if owed.calendar is not None:
                use = self._calendars.attached_use(owed.calendar, tenant=tenant_of(row["_id"]))
                owed = replace(owed, calendar=use)
            queue, lateness = row.get("queue") or CALLBACKS, read_lateness(row.get("lateness"))
            return ClaimedOwed(row["_id"], row["created_at"], owed, queue, lateness)
        except STORE_FAULTS:
            raise
        except Exception as error:  # a document edited by hand may cause any error
            return ClaimedOwed(row["_id"], None, None, reason=f"{type(error).__name__}: {error}")

    def advance(
        self,
        schedule_id: str,
        token: str,
        remainder: OwedRange | None,
        session: ClientSession | None = None,
    ) -> bool:
        """Replaces the oldest range by `remainder`, or removes it for None, and releases the schedule.

        Events first, this second: a crash between the two expands once more, onto the same ids. False when
        the schedule was deleted meanwhile, or the claim was lost. Within the transaction of `session`, if
        given.
        """
        first = [to_owed_document(remainder)] if remainder else []
        return self._replace_oldest(schedule_id, token, first, {}, session)

    def drop(self, schedule_id: str, token: str, reason: str, now: datetime) -> bool:
        """Removes the oldest range, which cannot be expanded; the schedule says why in its `reason`."""
        said = {"reason": {"$literal": reason[:1000]}, "updated_at": now}
        return self._replace_oldest(schedule_id, token, [], said)

    def _replace_oldest(
        self,
        schedule_id: str,
        token: str,
        first: list[Document],
        said: Document,
        session: ClientSession | None = None,
    ) -> bool:
        # Edits append ranges meanwhile.
        others = {"$cond": [{"$isArray": "$owed"}, {"$slice": ["$owed", 1, MAX_OWED]}, []]}
        left: Document = {"$concatArrays": [{"$literal": first}, others]}
        result = self._schedules.update_one(
            {"_id": schedule_id, "owed_owner": token},
            [
                {"$set": {"owed": left} | said},
                {"$set": {"owed": {"$cond": [{"$eq": ["$owed", []]}, "$$REMOVE", "$owed"]}}},
                {"$unset": ["owed_owner", "owed_lease_until"]},
            ],
            session=session,
        )
        return result.matched_count == 1


def _free() -> dict[str, Any]:
    return {
        "owed": {"$exists": True},
    } | unclaimed("owed_owner", "owed_lease_until")
