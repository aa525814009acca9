"""Events that ended and whose notification is still to be made: each has a mark, `notify`, since its end."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pymongo import UpdateOne

from scheduler_app.domain.field_types import Corrupt
from scheduler_app.domain.notification import Notifying, OwedNotification
from scheduler_app.store.documents.delivery_fields import read_notifies
from scheduler_app.store.events.fields import read_owed
from scheduler_app.store.events.record import EventRecord, to_record
from scheduler_app.store.indexes import OWED_NOTIFICATIONS
from scheduler_app.store.mongo import Document, Mongo
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)


class Owing(NamedTuple):
    """An event whose notification is still to be made."""

    event: EventRecord
    owed: OwedNotification
    redriven: bool
    """It was sent again after an earlier end, which may have been told of."""
    mark: Mapping[str, Any]
    """The mark as it is stored."""
    own: Mapping[Notifying, str]
    """The destinations that a message itself names; none for the event of a schedule."""


class OwedNotifications:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")
        self._majority = mongo.majority("events")

    def oldest(self, *, limit: int) -> tuple[list[Owing], int]:
        """Returns up to `limit` events, those that ended first, and how many of the index were looked at. A
        corrupt mark is removed, with an error in the log."""
        rows = list(
            self._majority.find({"notify.since": {"$exists": True}}, hint=OWED_NOTIFICATIONS)
            .sort("notify.since", 1)
            .limit(limit)
            .batch_size(limit)
        )
        found: list[Owing] = []
        for row in rows:
            try:
                found.append(_owing(row))
            except Corrupt as error:
                self._discard(row, error)
        return found, len(rows)

    def made(self, those: Sequence[Owing]) -> None:
        """Removes their marks: their notifications are made. A mark of a later end stays."""
        if those:
            self._events.bulk_write(
                [
                    UpdateOne({"_id": each.event.id, "notify": each.mark}, {"$unset": {"notify": ""}})
                    for each in those
                ],
                ordered=False,
            )

    def _discard(self, row: Document, error: Corrupt) -> None:
        self._events.update_one({"_id": {"$eq": row["_id"]}}, {"$unset": {"notify": ""}})
        log.error(
            "notify.corrupt",
            message="The notification that an event owes is corrupt and was removed; it is not sent",
            event_id=str(row["_id"])[:200],
            reason=str(error),
        )


def _owing(row: Document) -> Owing:
    """Raises Corrupt."""
    return Owing(
        event=to_record(row),
        owed=read_owed(row["notify"], "notify"),
        redriven=row.get("redrive") is not None,
        mark=row["notify"],
        own=read_notifies(row.get("notifies")),
    )
