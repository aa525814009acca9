"""Inserts schedules, edits them by version, lists, shows and removes them. A list's filter is answered by an
index where one can; the rest is looked for in its rows.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Literal, NamedTuple, cast

from bson import ObjectId
from bson.raw_bson import RawBSONDocument
from pymongo.read_concern import ReadConcern

from scheduler_app.domain.schedule import OwedRange, Schedule, ScheduleState
from scheduler_app.domain.states import State
from scheduler_app.domain.stored_fields import MAX_WHOLE, Corrupt, whole
from scheduler_app.store.bulk_writes import GroupInsert, encoded, insert_new
from scheduler_app.store.calendars import Calendars
from scheduler_app.store.encryption import WIPE, SecretBox
from scheduler_app.store.ended_revisions import EndedRevisions
from scheduler_app.store.indexes import BY_NEXT_RUN, ENDS
from scheduler_app.store.mongo import BY_ID, DecodedCache, Document, Mongo
from scheduler_app.store.paging import (
    MAX_MS,
    JudgedValues,
    Page,
    PagedByName,
    PagedQuery,
    PageRequest,
    RowFilter,
    ascii_lower,
)
from scheduler_app.store.schedules.documents import (
    CorruptSchedule,
    absent_fields,
    read_schedule,
    read_whole_schedule,
    set_aside_corrupt,
    to_schedule_document,
)
from scheduler_app.store.schedules.last_runs import LastRuns
from scheduler_app.store.schedules.owed_lines import created_lines
from scheduler_app.store.schedules.trigger_documents import to_owed_document


class ScheduleListFilter(NamedTuple):
    """Filters of a list of schedules; all that are given must match."""

    state: str | None = None
    name: str | None = None
    """The whole name."""
    tag: str | None = None
    last_outcome: str | None = None
    destination: str | None = None
    """The id of one."""
    text: str | None = None
    """A part of the name, whatever the case of its letters."""


#: Newest or oldest first, by name, or by the next run, which active schedules alone have.
ScheduleOrder = Literal["newest", "oldest", "name", "next"]


class ScheduleListQuery(NamedTuple):
    """A query, the index that answers it, and what is looked for among what that leaves."""

    which: Document
    hint: str
    row_filter: RowFilter | None


def schedule_list_query(
    tenant: str, choice: ScheduleListFilter, order: ScheduleOrder, succeeding: JudgedValues
) -> ScheduleListQuery:
    """The tenant's schedules that are chosen. One filter is told by an index, if the index that has the
    order can. `succeeding` tells by ids whose last runs have: that is not in the schedules' documents."""
    wanted = {
        "tags": choice.tag,
        "name": choice.name,
        "last_run.outcome": choice.last_outcome,
        "state": choice.state,
    }
    given = {field: value for field, value in wanted.items() if value is not None}
    which, hint, best = _indexed(tenant, given, order)
    fits: list[Document] = [_has(field, value) for field, value in given.items() if field != best]
    if choice.state is None and "state" not in which:
        fits.append({"$ne": ["$state", ScheduleState.DELETED.value]})
    if choice.destination is not None:
        fits.append({"$eq": ["$action.destination", {"$literal": choice.destination}]})
    if choice.text is not None:
        named = {"$toLower": {"$cond": [{"$eq": [{"$type": "$name"}, "string"]}, "$name", ""]}}
        fits.append({"$gte": [{"$indexOfCP": [named, {"$literal": ascii_lower(choice.text)}]}, 0]})
    if choice.last_outcome == State.COMPLETED:
        return ScheduleListQuery(which, hint, RowFilter({"$and": fits}, "_id", succeeding))
    return ScheduleListQuery(which, hint, RowFilter({"$and": fits}) if fits else None)


def _has(field: str, value: str) -> Document:
    """An expression, true where the field has the value; that of tags has several."""
    if field == "tags":
        several = {"$cond": [{"$isArray": "$tags"}, "$tags", []]}
        return {"$in": [{"$literal": value}, several]}
    if (field, value) == ("last_run.outcome", State.COMPLETED):
        # Where no other outcome was noted, none or this one is the last.
        return {"$eq": [{"$ifNull": ["$last_run.outcome", value]}, {"$literal": value}]}
    return {"$eq": [f"${field}", {"$literal": value}]}


def _indexed(tenant: str, given: Mapping[str, str], order: ScheduleOrder) -> tuple[Document, str, str | None]:
    """What an index tells, that index, and which filter is among it."""
    if order == "next":
        # In any other state there is no next run, and nothing to look through.
        active = ScheduleState.ACTIVE.value
        state: object = active if given.get("state", active) == active else {"$in": []}
        return {"tenant": tenant, "state": state}, BY_NEXT_RUN, None
    if order == "name":
        return {"tenant": tenant}, "list_name_v1", None
    best = next((field for field in given if field in _INDEXES and _is_indexed(field, given)), None)
    which: Document = {"tenant": tenant} | ({best: given[best]} if best else {})
    return which, _INDEXES[best] if best else "list_v1", best


#: The most selective first: few schedules share a tag or a name, and most are in one state.
_INDEXES = {
    "tags": "list_tag_v1",
    "name": "list_name_v1",
    "last_run.outcome": "list_outcome_v1",
    "state": "list_state_v1",
}


def _is_indexed(field: str, given: Mapping[str, str]) -> bool:
    """Whether an index answers the filter. That of outcomes has all but success, which most schedules
    have."""
    return field != "last_run.outcome" or given[field] > State.COMPLETED


NOT_DELETED = {"$ne": ScheduleState.DELETED.value}
_LIVING = [state.value for state in ScheduleState if state is not ScheduleState.DELETED]
#: A linearizable read waits for a majority, for ever if it is told no limit.
LOOK_MS = 5_000
RAISED = {"$add": ["$version", 1]}


class ScheduleFacts(NamedTuple):
    """What every change of a schedule that its waiting events have to obey changes, as it is stored."""

    version: object
    revision: object
    state: object


class DeletedSchedule(NamedTuple):
    """What is left to know of a schedule that was deleted."""

    revision: int
    """Its last one."""
    name: str
    """Empty where its document has none that can be read."""


class Schedules:
    def __init__(self, mongo: Mongo, secret_box: SecretBox, calendars: Calendars) -> None:
        self._calendars = calendars
        self._schedules = mongo.collection("schedules")
        self._majority = mongo.majority("schedules")
        self._linearizable = self._schedules.with_options(read_concern=ReadConcern("linearizable"))
        self._secret_box = secret_box
        self._last_runs = LastRuns(mongo)
        self._ended = EndedRevisions(mongo)
        self._group_insert = GroupInsert(self._schedules)
        options = self._majority.codec_options
        self._raw = self._majority.with_options(options.with_options(document_class=RawBSONDocument))
        self._readings = DecodedCache(partial(read_schedule, secret_box=secret_box), options)

    # -- people's edits ----------------------------------------------------------------------------------

    @staticmethod
    def new_name() -> str:
        """A fresh name for a schedule, 24 hex digits, rising with time."""
        return str(ObjectId())

    def insert(self, schedule: Schedule, *, request_seed: str | None = None) -> bool:
        """False when some document has the id, a deleted schedule's included. `request_seed` tells which
        request made the schedule (see `made_by`)."""
        (document,) = self._new_documents([schedule], [request_seed])
        return self._group_insert.insert(document)

    def insert_many(
        self, schedules: Sequence[Schedule], *, request_seeds: Sequence[str] | None = None
    ) -> set[int]:
        """Inserts in bulk; returns the positions of those whose id some document has."""
        if not schedules:
            return set()
        documents = self._new_documents(schedules, request_seeds or [None] * len(schedules))
        return insert_new(self._schedules, [encoded(each, self._schedules) for each in documents])

    def _new_documents(
        self, schedules: Sequence[Schedule], request_seeds: Sequence[str | None]
    ) -> Iterator[Document]:
        lines = created_lines(schedules)
        for schedule, line, request_seed in zip(schedules, lines, request_seeds, strict=True):
            document = to_schedule_document(schedule, self._secret_box)
            document["unlogged"] = [line]
            if request_seed is not None:
                document["seed"] = request_seed
            yield document

    def made_by(self, request_seed: str, schedule_id: str) -> "Schedule | None":
        """The schedule, if the request of that `request_seed` has made it; None also when somebody has
        deleted it since."""
        row = self._majority.find_one({"_id": schedule_id, "seed": request_seed, "state": NOT_DELETED})
        found = read_schedule(row, self._secret_box) if row else None
        return self._calendars.attach([found])[0] if isinstance(found, Schedule) else None

    def update(self, schedule: Schedule, *, version: int) -> bool:
        """Writes an edit that leaves the trigger alone, made of the schedule as it stood at `version`.

        False when another edit came first. The cursor is left alone: a beat may have moved it meanwhile.
        """
        document = to_schedule_document(schedule, self._secret_box)
        kept = {key: value for key, value in document.items() if key not in _CURSOR}
        change: Document = {"$set": kept}
        if gone := absent_fields(schedule, document).difference(_CURSOR):
            change["$unset"] = dict.fromkeys(sorted(gone), "")
        return self._write(schedule.id, version, schedule.revision, change)

    def keep_revision(self, schedule_id: str) -> None:
        """Records the present revision, which is about to end: see `EndedRevisions`."""
        self._ended.keep([schedule_id])

    def revise(self, schedule: Schedule, *, version: int, owed: OwedRange | None = None) -> bool:
        """Writes an edit that begins a new revision (`Schedule.revise`), in one write with its cut and with
        the range `owed` that it leaves to beats; `keep_revision` comes before.

        It clears `owner`: a beat that is expanding the schedule as it was is refused when it comes to
        advance it.
        """
        document = to_schedule_document(schedule, self._secret_box)
        gone = absent_fields(schedule, document) | {"owner", "lease_until"}
        change: Document = {"$set": document, "$unset": dict.fromkeys(sorted(gone), "")}
        if owed is not None:
            # Appended and not set: a beat that expands an older range at this moment is not disturbed.
            change["$push"] = {"owed": to_owed_document(owed)}
        return self._write(schedule.id, version, schedule.revision - 1, change)

    def _write(self, schedule_id: str, version: int, revision: int, change: Document) -> bool:
        change["$set"].pop("_id")
        which = {"_id": schedule_id, "version": version, "revision": revision, "state": NOT_DELETED}
        return self._schedules.update_one(which, change).matched_count == 1

    def delete(
        self, schedule_id: str, now: datetime, *, version: int | None = None
    ) -> DeletedSchedule | None:
        """None when there is no such schedule, or not at `version`. The document stays until its last event
        is gone, its secrets do not: nothing of it is sent any more (`Schedule.is_cancelled_by_edit`)."""
        which: Document = {"_id": schedule_id, "state": NOT_DELETED}
        if version is not None:
            which["version"] = version
        row = self._schedules.find_one_and_update(which, deletion_stages(now), {"revision": 1, "name": 1})
        return DeletedSchedule(_last_revision(row), _name(row)) if row else None

    # -- retention ---------------------------------------------------------------------------------------

    def deleted_before(self, moment: datetime, *, limit: int) -> list[str]:
        which = {"state": ScheduleState.DELETED.value, "deleted_at": {"$lt": moment}}
        rows = self._schedules.find(which, {"_id": 1}, sort=[("deleted_at", 1)], limit=limit, hint=ENDS)
        return [row["_id"] for row in rows]

    def remove(self, schedule_id: str) -> None:
        self._schedules.delete_one({"_id": schedule_id, "state": ScheduleState.DELETED.value})

    # -- look --------------------------------------------------------------------------------------------

    def get(self, schedule_id: str, *, linearizable: bool = False) -> Schedule | CorruptSchedule | None:
        """None when there is none of that id or it was deleted. `linearizable`: as it is at this
        moment, which costs the primary a question to the other members."""
        collection = self._linearizable if linearizable else self._majority
        row = collection.find_one({"_id": schedule_id, "state": NOT_DELETED}, max_time_ms=LOOK_MS)
        return self._calendars.attach([read_whole_schedule(row, self._secret_box)])[0] if row else None

    def exists(self, schedule_id: str) -> bool:
        """Whether there is such a schedule, deleted ones included: their history stays readable."""
        return self._schedules.find_one({"_id": schedule_id}, {"_id": 1}) is not None

    def living(self, ids: Sequence[str]) -> set[str]:
        """Those of the ids of which there is a schedule, deleted ones aside."""
        which = {"_id": {"$in": list(ids)}, "state": NOT_DELETED}
        return {row["_id"] for row in self._majority.find(which, {"_id": 1}, hint=BY_ID)} if ids else set()

    def for_delivery(self, ids: Sequence[str]) -> dict[str, Schedule | CorruptSchedule]:
        """Schedules by id, deleted ones included; read after the claim of their events, never before.

        They come without their cursors, which a delivery has no use for: expansion moves those time and
        again, and what has not changed but for them need not be decoded again. An active one that cannot be
        read is set aside.
        """
        found: dict[str, Schedule | CorruptSchedule] = {}
        rows = self._raw.find({"_id": {"$in": list(ids)}}, _CURSORS_LEFT_OUT)
        for row in cast("Iterable[RawBSONDocument]", rows):
            reading = self._readings.of(bytes(row.raw))
            if isinstance(reading, CorruptSchedule) and row.get("state") == ScheduleState.ACTIVE.value:
                set_aside_corrupt(self._schedules, row, reading)
            found[reading.schedule_id if isinstance(reading, CorruptSchedule) else reading.id] = reading
        return found

    def with_actions(self, kinds: Collection[str], *, limit: int) -> list[Schedule | CorruptSchedule]:
        """Returns the active and paused schedules of all tenants with actions of these kinds, which are not
        http, by kind and id."""
        which: Document = {
            "action.type": {"$in": sorted(kinds), "$lt": "http"},
            "action.destination": None,
            "state": {"$in": [ScheduleState.ACTIVE.value, ScheduleState.PAUSED.value]},
        }
        order = [("action.destination", 1), ("action.type", 1), ("_id", 1)]
        # Without a hint: the first worker of a release asks before the index is there.
        rows = self._schedules.find(which, sort=order, limit=limit)
        return [read_whole_schedule(row, self._secret_box) for row in rows]

    def unreadable(self, *, limit: int) -> dict[str, str]:
        """Of the newest `limit` of all tenants, those that cannot be read, with the reasons."""
        rows = self._schedules.find({"state": NOT_DELETED}, sort=[("_id", -1)], limit=limit, hint=BY_ID)
        found = [read_schedule(row, self._secret_box) for row in rows]
        return {each.schedule_id: each.reason for each in found if isinstance(each, CorruptSchedule)}

    def facts(self, ids: Collection[str]) -> dict[str, ScheduleFacts | None]:
        """Tells by id whether a schedule has changed since it was read; None for one that is gone."""
        rows = self._majority.find({"_id": {"$in": list(ids)}}, _FACTS, hint=BY_ID)
        found = {
            row["_id"]: ScheduleFacts(*(row.get(name) for name in ScheduleFacts._fields)) for row in rows
        }
        return {own_id: found.get(own_id) for own_id in ids}

    def count_by_state(self, tenant: str, *, most: int) -> dict[str, int]:
        """How many schedules the tenant has in each state but deleted, by index alone; no more than `most`
        of each are counted."""
        return {
            state: self._schedules.count_documents(
                {"tenant": tenant, "state": state}, hint="list_state_v1", limit=most
            )
            for state in _LIVING
        }

    def count_living(self, tenant: str, *, most: int) -> int:
        """How many schedules the tenant has, deleted ones aside, by index alone; no more than `most` are
        counted."""
        which = {"tenant": tenant, "state": {"$in": _LIVING}}
        return self._schedules.count_documents(which, hint="list_state_v1", limit=most)

    def count_living_of(self, tenants: Collection[str], *, most: int) -> dict[str, int]:
        """The same of several tenants, in one question. No more than `most` schedules are counted, tenant by
        tenant: those that it is not enough for are left out."""
        which = {"tenant": {"$in": sorted(tenants)}, "state": {"$in": _LIVING}}
        stages: list[Document] = [
            {"$match": which},
            {"$sort": {"tenant": 1, "state": 1}},
            {"$limit": most},
            {"$group": {"_id": "$tenant", "count": {"$sum": 1}}},
        ]
        counts = {row["_id"]: row["count"] for row in self._schedules.aggregate(stages, hint="list_state_v1")}
        # They are counted in the order of their names: of the last one there may be more.
        last = None if sum(counts.values()) < most else max(counts)
        return {name: counts.get(name, 0) for name in tenants if last is None or name < last}

    def page(
        self,
        tenant: str,
        window: PageRequest,
        *,
        order: ScheduleOrder = "newest",
        **choice: str | None,
    ) -> Page[Schedule | CorruptSchedule]:
        """The tenant's schedules that match the `Choice`; the window's times are creation times, and next
        runs in the order of these. By name there is no window of time."""
        asked = schedule_list_query(tenant, ScheduleListFilter(**choice), order, self._last_runs.succeeding)
        kind = PagedByName if order == "name" else PagedQuery
        moment = "next_run_at" if order == "next" else "created_at"
        query = kind(self._schedules, moment, *asked, ascending=order in ("oldest", "next"))
        found = query.page(window)
        rows = self._calendars.attach([read_whole_schedule(row, self._secret_box) for row in found.rows])
        return Page(rows, found.next)

    def count(self, tenant: str, *, most: int, **choice: str | None) -> tuple[int, bool]:
        """How many `page` would find, and whether there may be more: no more than `most` are looked at."""
        asked = schedule_list_query(
            tenant, ScheduleListFilter(**choice), "newest", self._last_runs.succeeding
        )
        if asked.row_filter and asked.row_filter.known:
            return PagedQuery(self._schedules, "created_at", *asked).count(PageRequest(limit=most))
        fit = {"$cond": [asked.row_filter.matches, 1, 0]} if asked.row_filter else 1
        counted: list[Document] = [
            {"$match": asked.which},
            {"$limit": most + 1},
            {"$group": {"_id": None, "seen": {"$sum": 1}, "fit": {"$sum": fit}}},
        ]
        rows = self._schedules.aggregate(counted, hint=asked.hint, maxTimeMS=MAX_MS)
        row = next(iter(rows), {"seen": 0, "fit": 0})
        return min(row["fit"], most), row["seen"] > most


def deletion_stages(now: datetime) -> list[Document]:
    """The update that deletes a schedule, whatever is wrong with its document."""
    gone = [
        *("next_run_at", "finishes_at", "owner", "lease_until"),
        *("owed", "owed_owner", "owed_lease_until"),
    ]
    # A version that is not a number cannot rise.
    raised = {"$cond": [{"$isNumber": "$version"}, RAISED, "$version"]}
    deleted: Document = {"state": ScheduleState.DELETED.value, "deleted_at": now, "updated_at": now}
    return [{"$set": deleted}, {"$unset": gone}, *WIPE, {"$set": {"version": raised}}]


def _last_revision(row: Document) -> int:
    """The last revision of a deleted schedule. Where it cannot be read, no successor's events have to be
    spared."""
    try:
        return whole(row.get("revision"), "revision")
    except Corrupt:
        return MAX_WHOLE


def _name(row: Document) -> str:
    """Empty where it cannot be read."""
    name = row.get("name")
    return name if isinstance(name, str) else ""


_FACTS = dict.fromkeys(ScheduleFacts._fields, 1)
_CURSORS_LEFT_OUT = dict.fromkeys(
    (
        "last_run",
        "unlogged",
        "next_run_at",
        "finishes_at",
        "checkpoint",
        "cut_pending",
        "owner",
        "lease_until",
        "owed",
        "owed_owner",
        "owed_lease_until",
    ),
    0,
)
#: Fields that expansion advances, and that an edit of anything but the trigger leaves alone.
_CURSOR = (
    "next_run_at",
    "finishes_at",
    "cut_pending",
    "checkpoint",
    "state",
    "reason",
    "revised_at",
    "zone_data",
    "calendar_days",
)
