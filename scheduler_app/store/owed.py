"""Owed ranges: what edits left to beats, in the schedules' documents. Beats claim them, oldest first.

The claim is apart from that of the schedule's own expansion: neither waits for the other.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pymongo.errors import AutoReconnect

from scheduler_app.domain.owed import MAX_OWED, OwedRange
from scheduler_app.store.calendars import Calendars
from scheduler_app.store.faults import STORE_FAULTS
from scheduler_app.store.field_types import text
from scheduler_app.store.mongo import BY_ID, Document, Mongo, new_token
from scheduler_app.store.schedule_documents import from_owed_document, to_owed_document


@dataclass(frozen=True, slots=True)
class ClaimedOwed:
    """A schedule's oldest owed range; None with the reason where its document can no longer be read."""

    schedule_id: str
    created_at: datetime | None
    range: OwedRange | None
    reason: str = ""


class Owed:
    def __init__(self, mongo: Mongo, calendars: Calendars) -> None:
        self._calendars = calendars
        self._schedules = mongo.collection("schedules")
        self._settled = mongo.majority("schedules")

    def waiting(self, *, limit: int) -> list[str]:
        """Schedules that owe something and that no beat has, those first that are furthest behind."""
        rows = self._schedules.find(_free(), {"_id": 1}).sort("owed.next_run_at", 1).limit(limit)
        return [row["_id"] for row in rows]

    def claim(self, ids: Sequence[str], *, lease_seconds: float) -> tuple[str, list[ClaimedOwed]]:
        """Claims those that are still free. Returns the token and the oldest range of each."""
        token = new_token()
        # What was won is read by the token: `update_many` is not retryable after a broken connection.
        with suppress(AutoReconnect):
            lease = {"$add": ["$$NOW", int(lease_seconds * 1000)]}
            self._schedules.update_many(
                {**_free(), "_id": {"$in": list(ids)}},
                [{"$set": {"owed_owner": token, "owed_lease_until": lease}}],
                hint=BY_ID,
            )
        which = {"_id": {"$in": list(ids)}, "owed_owner": token}
        rows = self._settled.find(which, {"created_at": 1, "owed": 1, "tenant": 1})
        return token, [self._claimed(row) for row in rows]

    def _claimed(self, row: Document) -> ClaimedOwed:
        try:
            owed = from_owed_document(row["owed"][0])
            if owed.calendar is not None:
                tenant = text(row.get("tenant"), "tenant")
                owed = replace(owed, calendar=self._calendars.attached_use(owed.calendar, tenant))
            return ClaimedOwed(row["_id"], row["created_at"], owed)
        except STORE_FAULTS:
            raise
        except Exception as error:  # somebody bent the document by hand: any error may come of it
            return ClaimedOwed(row["_id"], None, None, f"{type(error).__name__}: {error}")

    def advance(self, schedule_id: str, token: str, remainder: OwedRange | None) -> bool:
        """Puts `remainder` in the place of the oldest range, None for nothing, and lets go of the schedule.

        Events first, this second: a crash between the two expands once more, onto the same ids. False when
        the schedule was deleted meanwhile, or the claim was lost.
        """
        first = [to_owed_document(remainder)] if remainder else []
        return self._replace_oldest(schedule_id, token, first, {})

    def drop(self, schedule_id: str, token: str, reason: str, now: datetime) -> bool:
        """Removes the oldest range, which cannot be expanded; the schedule says why in its `reason`."""
        said = {"reason": {"$literal": reason[:1000]}, "updated_at": now}
        return self._replace_oldest(schedule_id, token, [], said)

    def _replace_oldest(self, schedule_id: str, token: str, first: list[Document], said: Document) -> bool:
        # Edits add theirs at the end meanwhile.
        others = {"$cond": [{"$isArray": "$owed"}, {"$slice": ["$owed", 1, MAX_OWED]}, []]}
        left: Document = {"$concatArrays": [{"$literal": first}, others]}
        result = self._schedules.update_one(
            {"_id": schedule_id, "owed_owner": token},
            [
                {"$set": {"owed": left} | said},
                {"$set": {"owed": {"$cond": [{"$eq": ["$owed", []]}, "$$REMOVE", "$owed"]}}},
                {"$unset": ["owed_owner", "owed_lease_until"]},
            ],
        )
        return result.matched_count == 1


def _free() -> dict[str, Any]:
    return {
        "owed": {"$exists": True},
        "$or": [{"owed_owner": {"$exists": False}}, {"$expr": {"$lte": ["$owed_lease_until", "$$NOW"]}}],
    }
