"""What rules of notifications have told of causes: one document for each rule, cause and change."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from pymongo import UpdateOne

from scheduler_app.domain.ids import WholeId, tenant_of
from scheduler_app.domain.notification_rule import BEGIN, END, REMINDER, Telling
from scheduler_app.domain.stored_fields import Corrupt, instant, optional, text, version, whole
from scheduler_app.store.bulk_writes import insert_new
from scheduler_app.store.indexes import TELLINGS_OF_RULE, TELLINGS_OPEN, TELLINGS_OWED
from scheduler_app.store.mongo import BY_ID, Document, Mongo
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

DOCUMENT_VERSION = 1
#: Of one rule: as many causes may be open.
MAX_READ: Final = 10_000
#: What is told of no more is kept for so long.
_KEPT: Final = timedelta(days=30)


class Tellings:
    def __init__(self, mongo: Mongo) -> None:
        self._tellings = mongo.collection("tellings")

    def open(self, rule_id: WholeId) -> dict[str, Telling]:
        """The beginnings that a rule has told of and whose ends it has not, by cause."""
        rows = self._tellings.find({"rule": rule_id, "open": True}, hint=TELLINGS_OPEN).limit(MAX_READ)
        return {each.cause_id: each for each in self._sound(rows)}

    def owed(self, rule_id: WholeId) -> list[Telling]:
        """Those whose messages may not be made yet, in the order of their time."""
        which = {"rule": rule_id, "owed": True}
        rows = self._tellings.find(which, hint=TELLINGS_OWED).limit(MAX_READ)
        return sorted(self._sound(rows), key=lambda each: (each.told_at, each.id))

    def known(self, ids: Collection[str]) -> set[str]:
        """Those of these that are there."""
        return {
            row["_id"] for row in self._tellings.find({"_id": {"$in": list(ids)}}, {"_id": 1}, hint=BY_ID)
        }

    def messages_since(self, rule_id: WholeId, since: datetime, *, ends: bool, most: int) -> tuple[int, bool]:
        """How many changes a rule has told of by a message of their own, `most` at most, and whether it has
        sent one for all that were left over."""
        which = {"rule": rule_id, "is_end": ends, "told_at": {"$gt": since}}
        alone = self._tellings.count_documents(which | {"alone": True}, hint=TELLINGS_OF_RULE, limit=most)
        shared = self._tellings.count_documents(which | {"alone": False}, hint=TELLINGS_OF_RULE, limit=1)
        return alone, shared > 0

    def insert(self, tellings: Sequence[Telling], *, alone: bool) -> None:
        """Notes that these changes are told. One that is known stays as it is; a reminder is counted, and an
        end closes the beginning."""
        if not tellings:
            return
        insert_new(self._tellings, [_document(each, alone=alone) for each in tellings])
        after = [_counting(each) for each in tellings if each.change.startswith(REMINDER)]
        if after:
            self._tellings.bulk_write(after, ordered=False)
        self.close([each for each in tellings if each.change == END])

    def close(self, tellings: Sequence[Telling]) -> None:
        """Tells of these causes no more."""
        if tellings:
            self._tellings.bulk_write([_closing(each) for each in tellings], ordered=False)

    def made(self, tellings: Sequence[Telling]) -> None:
        """Their messages are stored."""
        if tellings:
            ids = [each.id for each in tellings]
            self._tellings.update_many({"_id": {"$in": ids}}, {"$unset": {"owed": ""}}, hint=BY_ID)

    def forget(self, rule_id: WholeId, now: datetime) -> None:
        """Tells no more of a rule that is gone."""
        gone = {"$set": {"expires_at": now}, "$unset": {"open": "", "owed": ""}}
        self._tellings.update_many({"rule": rule_id}, gone, hint=TELLINGS_OF_RULE)

    def _sound(self, rows: Any) -> list[Telling]:
        found = []
        for row in rows:
            try:
                found.append(_read(row))
            except Corrupt as error:
                log.error(
                    "telling.corrupt",
                    message="What was told of a cause cannot be read; it is left out",
                    telling_id=str(row.get("_id"))[:300],
                    reason=str(error),
                )
        return found


def _begin_id(telling: Telling) -> str:
    return f"{telling.rule_id}/{BEGIN}/{telling.cause_id}"


def _counting(telling: Telling) -> UpdateOne:
    number = int(telling.change.removeprefix(REMINDER))
    return UpdateOne({"_id": _begin_id(telling)}, {"$max": {"reminders": number}})


def _closing(telling: Telling) -> UpdateOne:
    gone = {"$set": {"expires_at": telling.told_at + _KEPT}, "$unset": {"open": ""}}
    return UpdateOne({"_id": _begin_id(telling)}, gone)


def _document(telling: Telling, *, alone: bool) -> Document:
    begins = telling.change == BEGIN
    return {
        "_id": telling.id,
        "v": DOCUMENT_VERSION,
        "tenant": tenant_of(telling.rule_id),
        "rule": telling.rule_id,
        "cause": telling.cause_id,
        "change": telling.change,
        "told_at": telling.told_at,
        "message": telling.message,
        "is_end": telling.change == END,
        "alone": alone,
        "owed": True,
        **({"open": True} if begins else {"expires_at": telling.told_at + _KEPT}),
    }


def _read(row: Document) -> Telling:
    """Raises Corrupt."""
    get = row.get
    version(get("v"), DOCUMENT_VERSION)
    return Telling(
        rule_id=WholeId(text(get("rule"), "rule")),
        cause_id=text(get("cause"), "cause"),
        change=text(get("change"), "change"),
        told_at=instant(get("told_at"), "told_at"),
        message=text(get("message"), "message"),
        reminders=optional(whole, get("reminders"), "reminders") or 0,
    )
