"""Lines of the audit that are written into a schedule's own document with what they tell of: making one costs
no second write by them, and a beat writes many at once. Beats move them within seconds
(`AuditChain.move_owed`)."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from scheduler_app.domain.audit import Change, Difference
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store.audit_lines import DOCUMENT_VERSION, new_line_documents
from scheduler_app.store.mongo import Document


def created_lines(schedules: Iterable[Schedule]) -> Iterator[Document]:
    """Those of new schedules."""
    return new_line_documents(
        Change("created", "schedule", WholeId(each.id), Difference(after={"name": each.name}), each.version)
        for each in schedules
    )


def with_line_of_beat(what: str, after: Document, now: datetime) -> Document:
    """The expression of the lines in a schedule's document with one more, of what a beat does by itself; it
    fails on no document."""
    revision = {"$convert": {"input": "$revision", "to": "string", "onError": "", "onNull": ""}}
    line: Document = {
        "_id": {"$concat": [{"$toString": "$_id"}, "/", revision, f"/{what}/{now:%Y%m%dT%H%M%S.%f}"]},
        "v": {"$literal": DOCUMENT_VERSION},
        "tenant": "$tenant",
        "at": now,
        "what": what,
        "kind": "schedule",
        "resource": {"$concat": ["schedule/", {"$toString": "$_id"}]},
        "by": {"kind": "scheduler", "installation": True},
        "before": {"state": "$state"},
        "after": {"$literal": after},
        "unchained": True,
    }
    return {"$concatArrays": [{"$cond": [{"$isArray": "$unlogged"}, "$unlogged", []]}, [line]]}
