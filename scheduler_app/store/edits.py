"""The log of people's edits of schedules: bounded for each schedule, and removed after the retention."""

from collections.abc import Collection
from datetime import UTC, datetime

from bson import ObjectId
from pymongo import DESCENDING

from scheduler_app.domain.ids import tenant_of
from scheduler_app.domain.schedule import EditedTimes, EditRecord
from scheduler_app.domain.stored_fields import (
    Corrupt,
    fields,
    flag,
    instant,
    items,
    optional,
    text,
    version,
    whole,
)
from scheduler_app.domain.stored_fields import tenant as check_tenant
from scheduler_app.store.mongo import Document, Mongo
from scheduler_app.store.paging import Page, PagedQuery, PageRequest, RowFilter

DOCUMENT_VERSION = 1
BY_SCHEDULE = "schedule_v1"
OF_ALL = "list_v1"
#: Edits of one schedule that are kept; beyond them, the oldest go.
MOST_KEPT = 200
#: How many of the oldest are removed at a time.
MOST_DROPPED = 200


class Edits:
    """Written once for each edit, and for nothing else."""

    def __init__(self, mongo: Mongo) -> None:
        self._edits = mongo.collection("edits")

    @staticmethod
    def new_id() -> str:
        """24 hex digits, rising with time."""
        return str(ObjectId())

    def add(self, edit: EditRecord) -> None:
        """Its id must be a fresh one. Raises a STORE_FAULT."""
        row: Document = {
            "_id": edit.id,
            "v": DOCUMENT_VERSION,
            "tenant": tenant_of(edit.schedule_id),
            "schedule_id": edit.schedule_id,
            "at": edit.at,
            "what": edit.what,
            "version": edit.version,
            "by": edit.by,
            "note": edit.note,
            "before": dict(edit.before),
            "after": dict(edit.after),
            "secrets_changed": edit.secrets_changed,
        }
        if edit.times is not None:
            row["times"] = {
                "added": list(edit.times.added),
                "removed": list(edit.times.removed),
                "added_count": edit.times.added_count,
                "removed_count": edit.times.removed_count,
                "until": edit.times.until,
            }
        self._edits.insert_many([row])
        newest_first = [("at", DESCENDING), ("_id", DESCENDING)]
        which = {"schedule_id": edit.schedule_id}
        rows = self._edits.find(which, {"_id": 1}, sort=newest_first, hint=BY_SCHEDULE)
        if beyond := [row["_id"] for row in rows.skip(MOST_KEPT).limit(MOST_DROPPED)]:
            self._edits.delete_many({"_id": {"$in": beyond}})

    def page(self, window: PageRequest, schedule_id: str) -> Page[EditRecord]:
        """The edits of a schedule, newest first."""
        found = PagedQuery(self._edits, "at", {"schedule_id": schedule_id}, BY_SCHEDULE, None).page(window)
        return Page(list(map(_read, found.rows)), found.next)

    def of_schedules(self, window: PageRequest, schedule_ids: Collection[str]) -> Page[EditRecord]:
        """The edits of several schedules, newest first; mongod merges at most 200 of them in this order."""
        which: Document = {"schedule_id": {"$in": list(schedule_ids)}}
        found = PagedQuery(self._edits, "at", which, BY_SCHEDULE, None, merged=True).page(window)
        return Page(list(map(_read, found.rows)), found.next)

    def of_all(self, window: PageRequest, tenant: str, *, by: str | None = None) -> Page[EditRecord]:
        """The edits of all schedules of a tenant, newest first; those by the key of this name, if it is
        given."""
        made_by = None if by is None else RowFilter({"$eq": ["$by", {"$literal": by}]})
        found = PagedQuery(self._edits, "at", {"tenant": tenant}, OF_ALL, made_by).page(window)
        return Page(list(map(_read, found.rows)), found.next)

    def get(self, edit_id: str, schedule_id: str) -> EditRecord | None:
        """One edit of a schedule; None if there is none of that id."""
        row = self._edits.find_one({"_id": edit_id})
        found = _read(row) if row else None
        return found if found and found.schedule_id == schedule_id else None


def _read(row: Document) -> EditRecord:
    edit_id = str(row["_id"])
    owner, at = row.get("schedule_id"), row.get("at")
    owner = owner if isinstance(owner, str) else ""
    try:
        version(row.get("v"), DOCUMENT_VERSION)
        check_tenant(row.get("tenant"), "tenant", owner)
        return EditRecord(
            id=edit_id,
            schedule_id=text(row.get("schedule_id"), "schedule_id"),
            at=instant(at, "at"),
            what=text(row.get("what"), "what"),
            version=whole(row.get("version"), "version"),
            by=text(row.get("by"), "by"),
            note=text(row.get("note"), "note"),
            before=fields(row.get("before"), "before"),
            after=fields(row.get("after"), "after"),
            secrets_changed=flag(row.get("secrets_changed"), "secrets_changed"),
            times=_read_times(row["times"]) if "times" in row else None,
        )
    except Corrupt as error:
        moment = at if isinstance(at, datetime) else datetime.fromtimestamp(0, UTC)
        return EditRecord(edit_id, owner, moment, "unknown", 0, "", "", {}, {}, corrupt=str(error))


def _read_times(value: object) -> EditedTimes:
    stored = fields(value, "times")
    added, removed = (
        tuple(instant(each, f"times.{name}") for each in items(stored.get(name), f"times.{name}"))
        for name in ("added", "removed")
    )
    return EditedTimes(
        added,
        removed,
        whole(stored.get("added_count"), "times.added_count"),
        whole(stored.get("removed_count"), "times.removed_count"),
        optional(instant, stored.get("until"), "times.until"),
    )
