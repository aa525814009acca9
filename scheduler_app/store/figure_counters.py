"""The figures that workers count, for each minute and hour: documents that are added to, and removed by their
age.

Each is `{_id, v, tenant, subject, seconds, at, expires_at, outcomes: {state: count}, lag: {steps, total,
most}, duration: …}`; its id is the tenant's, and orders the parts of one subject by their time.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from pymongo import UpdateOne

from scheduler_app.domain.figures import KEPT, STEPS, FigurePart, FigureSubject, Measured
from scheduler_app.domain.ids import compact, whole_id
from scheduler_app.store.mongo import BY_ID, Document, Mongo
from scheduler_app.store.paging import MAX_MS

DOCUMENT_VERSION = 1


class FigureCounters:
    def __init__(self, mongo: Mongo) -> None:
        self._figures = mongo.collection("figures")

    def add(self, counted: Iterable[tuple[FigureSubject, timedelta, FigurePart]]) -> None:
        """Adds what was counted to the documents of its minutes or hours. Raises a STORE_FAULT: then some of
        it may have been added."""
        writes = [UpdateOne(*_addition(*each), upsert=True) for each in counted]
        if writes:
            self._figures.bulk_write(writes, ordered=False)

    def read(
        self, subject: FigureSubject, width: timedelta, since: datetime, until: datetime
    ) -> list[FigurePart]:
        """The minutes or hours of a subject from `since` to `until` (exclusive), in their order; those
        without anything are left out."""
        which = _between(subject, width, since, until)
        rows = self._figures.find(which, sort=[("_id", 1)], hint=BY_ID, max_time_ms=MAX_MS)
        return [part for row in rows if (part := _part(row)) is not None]

    def first(self, subject: FigureSubject, width: timedelta, since: datetime) -> datetime | None:
        """When the first part after `since` began that has anything: figures may be kept since a while
        only."""
        which = _between(subject, width, since, None)
        row = self._figures.find_one(which, {"at": 1}, sort=[("_id", 1)], hint=BY_ID)
        at = None if row is None else row.get("at")
        return at if isinstance(at, datetime) else None


def _between(subject: FigureSubject, width: timedelta, since: datetime, until: datetime | None) -> Document:
    ids = {"$gte": _id(subject, width, since), "$lt": _id(subject, width, until)}
    # A tag may be called as another one's ids are.
    return {"_id": ids, "tenant": subject.tenant, "subject": _named(subject)}


def _named(subject: FigureSubject) -> str:
    return f"{subject.kind}/{subject.name}"


def _id(subject: FigureSubject, width: timedelta, at: datetime | None) -> str:
    """Without `at` the end of the subject's ids: its times follow an @, and A is the next character."""
    named = f"{_named(subject)}/{int(width.total_seconds())}"
    return whole_id(subject.tenant, f"{named}@{compact(at)}" if at is not None else f"{named}A")


def _addition(subject: FigureSubject, width: timedelta, part: FigurePart) -> tuple[Document, Document]:
    added: dict[str, Any] = {f"outcomes.{state}": count for state, count in part.outcomes.items()}
    most: dict[str, Any] = {}
    for name, measured in (("lag", part.lag), ("duration", part.duration)):
        added |= {f"{name}.steps.{step}": count for step, count in measured.steps.items()}
        added[f"{name}.total"] = measured.total
        most[f"{name}.most"] = measured.most
    fixed = {
        "v": DOCUMENT_VERSION,
        "tenant": subject.tenant,
        "subject": _named(subject),
        "seconds": int(width.total_seconds()),
        "at": part.at,
        "expires_at": part.at + KEPT[width],
    }
    return {"_id": _id(subject, width, part.at)}, {"$setOnInsert": fixed, "$inc": added, "$max": most}


def _part(row: Document) -> FigurePart | None:
    """None for a document that no figure can be made of."""
    at, outcomes = row.get("at"), row.get("outcomes")
    if row.get("v") != DOCUMENT_VERSION or not isinstance(at, datetime) or not isinstance(outcomes, dict):
        return None
    counts = Counter({str(state): count for state, count in outcomes.items() if isinstance(count, int)})
    return FigurePart(at, counts, _measured(row.get("lag")), _measured(row.get("duration")))


def _measured(value: object) -> Measured:
    row = value if isinstance(value, dict) else {}
    steps = row.get("steps")
    numbers = {
        int(step): count
        for step, count in (steps if isinstance(steps, dict) else {}).items()
        if str(step).isdecimal() and int(step) <= len(STEPS) and isinstance(count, int)
    }
    return Measured(Counter(numbers), _number(row.get("total")), _number(row.get("most")))


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
