"""Calendars in MongoDB: their documents, their edits by version, and their lookup for the schedules that
observe them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Final, TypeVar

from scheduler_app.domain.calendars import (
    MAX_DATES,
    WEEKDAYS,
    Calendar,
    CalendarUse,
    NamedCalendar,
    NamedDate,
    RemakeCounts,
)
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.forecast import PlannedRule
from scheduler_app.domain.ids import WholeId, name_of, tenant_of, whole_id
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.stored_fields import (
    Corrupt,
    fields,
    flag,
    instant,
    items,
    one_of,
    optional,
    tenant,
    text,
    version,
    whole,
)
from scheduler_app.store.audit import AuditedDocuments, audited
from scheduler_app.store.bulk_writes import insert_new
from scheduler_app.store.encryption import why_unreadable
from scheduler_app.store.ended_revisions import EndedRevisions
from scheduler_app.store.mongo import CorruptReports, Document, Mongo
from scheduler_app.store.paging import Page, PagedQuery, PageRequest

DOCUMENT_VERSION: Final = 1


def days_document(calendar: Calendar) -> Document:
    """What people give, all of it: an absent part is null, so that an edit takes away what was there."""
    return {
        "dates": [{"date": each.date.isoformat(), "name": each.name} for each in calendar.dates],
        "country": calendar.country,
        "subdivision": calendar.subdivision,
        "exchange": calendar.exchange,
        "weekend": [WEEKDAYS[day] for day in calendar.weekend],
        "categories": list(calendar.categories) or None,
        "working_weekends": calendar.working_weekends or None,
    }


def to_calendar_document(named: NamedCalendar) -> Document:
    """The document of a new calendar."""
    return {
        "_id": named.id,
        "v": DOCUMENT_VERSION,
        "tenant": named.tenant,
        "name": named.name,
        **days_document(named.calendar),
        "version": named.version,
        "days_version": named.days_version,
        "holiday_data": named.holiday_data,
        "created_at": named.created_at,
        "updated_at": named.updated_at,
    }


def from_calendar_document(row: Mapping[str, Any]) -> NamedCalendar:
    """Raises Corrupt for a document edited by hand, and Newer for a newer release's."""
    version(row.get("v"), DOCUMENT_VERSION)
    get = row.get
    weekend = [
        WEEKDAYS.index(one_of(each, "an item of weekend", WEEKDAYS))
        for each in items(get("weekend"), "weekend")
    ]
    dates = items(get("dates"), "dates")
    if len(dates) > MAX_DATES:
        raise Corrupt(f"dates has {len(dates)} items, not {MAX_DATES} at most")
    try:
        calendar = Calendar.of(
            dates=tuple([_date(each) for each in dates]),
            country=optional(text, get("country"), "country"),
            subdivision=optional(text, get("subdivision"), "subdivision"),
            exchange=optional(text, get("exchange"), "exchange"),
            weekend=tuple(weekend),
            categories=tuple(
                [text(each, "an item of categories") for each in items(get("categories") or [], "categories")]
            ),
            working_weekends=bool(optional(flag, get("working_weekends"), "working_weekends")),
        )
    except InvalidField as error:
        raise Corrupt(f"{error.field}: {error.message}") from None
    return NamedCalendar(
        tenant=tenant(get("tenant"), "tenant", text(row["_id"], "_id")),
        name=text(get("name"), "name"),
        calendar=calendar,
        created_at=instant(get("created_at"), "created_at"),
        updated_at=instant(get("updated_at"), "updated_at"),
        version=whole(get("version"), "version", least=1),
        days_version=whole(get("days_version"), "days_version", least=1),
        holiday_data=optional(text, get("holiday_data"), "holiday_data"),
        changed_at=optional(instant, get("changed_at"), "changed_at"),
        deleted_at=optional(instant, get("deleted_at"), "deleted_at"),
        remade=RemakeCounts(
            moved=whole(get("moved") or 0, "moved"), unchanged=whole(get("unchanged") or 0, "unchanged")
        ),
    )


def _date(value: Any) -> NamedDate:
    row = fields(value, "an item of dates")
    written = text(row.get("date"), "dates.date")
    try:
        return NamedDate(date.fromisoformat(written), text(row.get("name"), "dates.name"))
    except ValueError:
        raise Corrupt(f"dates.date is {written[:40]!r}, not a date such as 2027-01-02") from None


Observer = TypeVar("Observer")

#: Calendars that a process remembers; with all dates they may have, some 300 KB each.
KEPT: Final = 200
#: Users of a calendar that are counted.
MOST_COUNTED: Final = 100_000
NOT_DELETED: Document = {"deleted_at": {"$exists": False}}
#: What changes whenever something of a calendar that its observers depend on does.
_STAMP = ("version", "days_version", "deleted_at")


@dataclass(frozen=True, slots=True)
class CorruptCalendar:
    """A stored calendar that can no longer be read, and why."""

    name: str
    reason: str


class Calendars:
    """A schedule's document has its calendar's name; the calendar itself is attached when it is read."""

    def __init__(self, mongo: Mongo) -> None:
        self._calendars = mongo.collection("calendars")
        self._majority = mongo.majority("calendars")
        self._schedules = mongo.majority("schedules")
        self.audited = AuditedDocuments(mongo, self._calendars, "calendar")
        self._ended = EndedRevisions(mongo)
        self._reports = CorruptReports(
            "calendar.corrupt", "A calendar cannot be read; its schedules are not looked at", "calendar"
        )
        self._kept: dict[str, tuple[object, NamedCalendar | CorruptCalendar]] = {}

    # -- people's edits ------------------------------------------------------------------------------------

    def get(self, calendar_id: WholeId) -> NamedCalendar | CorruptCalendar | None:
        """The calendar as it is stored; None when there is none, or it was deleted."""
        row = self._majority.find_one({"_id": calendar_id} | NOT_DELETED)
        return _read_calendar(row) if row else None

    @audited("created")
    def insert(self, named: NamedCalendar) -> NamedCalendar | None:
        """The calendar as it is stored now; None when there is one of that name. In the place of a deleted
        one it goes on with that one's versions, so that whoever observed the old days is looked at."""
        exists = insert_new(self._calendars, [to_calendar_document(named)])
        return self._succeed(named) if exists else named

    def _succeed(self, named: NamedCalendar) -> NamedCalendar | None:
        there = self._calendars.find_one(_deleted(named.id), dict.fromkeys(_STAMP, 1))
        if there is None:
            return None
        version, days_version = (
            there[each] + 1 if isinstance(there.get(each), int) else 1 for each in ("version", "days_version")
        )
        self._ended.keep_calendar(named.id)
        made = replace(named, version=version, days_version=days_version, changed_at=named.updated_at)
        document = to_calendar_document(made) | {"changed_at": made.changed_at}
        same = {name: there.get(name) for name in _STAMP} | {"_id": made.id}
        written = self._calendars.update_one(same, [{"$replaceWith": {"$literal": document}}])
        return made if written.matched_count else None

    @audited()
    def update(self, named: NamedCalendar, now: datetime, *, version: int) -> bool:
        """Writes new days over those of `version`, and tells beats to look at the schedules; False when
        somebody was quicker."""
        change = {
            **{name: {"$literal": value} for name, value in days_document(named.calendar).items()},
            "version": {"$add": ["$version", 1]},
            "updated_at": now,
        }
        return self._change(named, {"version": version}, change, now)

    def renew(self, named: NamedCalendar, holiday_data: str, now: datetime) -> bool:
        """Notes that its days come of newer holiday data, and tells beats to look at the schedules."""
        older = {"holiday_data": {"$lt": holiday_data}}
        return self._change(replace(named, holiday_data=holiday_data), older, {}, now)

    def _change(self, named: NamedCalendar, which: Document, change: Document, now: datetime) -> bool:
        days = {
            "holiday_data": named.holiday_data,
            "days_version": {"$add": ["$days_version", 1]},
            "changed_at": now,
            "moved": 0,
            "unchanged": 0,
        }
        self._ended.keep_calendar(named.id)
        found = {"_id": named.id} | which
        return self._calendars.update_one(found, [{"$set": change | days}]).matched_count == 1

    @audited("deleted")
    def delete(self, calendar_id: WholeId, now: datetime, *, version: int | None) -> bool:
        """False when there is none, or not at `version`. The document stays for a while: a request that has
        read the calendar may write its schedule after this."""
        which: Document = {"_id": calendar_id} | NOT_DELETED
        if version is not None:
            which["version"] = version
        return self._calendars.update_one(which, {"$set": {"deleted_at": now}}).matched_count == 1

    def users(self, calendar_id: WholeId) -> int:
        """How many schedules observe it, deleted ones aside; at most `MOST_COUNTED` are counted."""
        which: Document = {"tenant": tenant_of(calendar_id), "calendar": name_of(calendar_id)}
        living = which | {"state": {"$ne": ScheduleState.DELETED.value}}
        return self._schedules.count_documents(living, hint="calendar_v1", limit=MOST_COUNTED)

    def schedules_to_recompute(self, named: NamedCalendar) -> int:
        """How many active schedules have not been looked at since its days changed; counted as `users`."""
        if named.changed_at is None:
            return 0
        return self._schedules.count_documents(
            computed_with_other_days(named), hint="calendar_v1", limit=MOST_COUNTED
        )

    def page(self, tenant: str, window: PageRequest) -> Page[NamedCalendar | CorruptCalendar]:
        """Calendars, newest first."""
        found = PagedQuery(self._majority, "created_at", {"tenant": tenant} | NOT_DELETED, "list_v1").page(
            window
        )
        return Page([_read_calendar(row) for row in found.rows], found.next)

    # -- for beats -----------------------------------------------------------------------------------------

    def changed(self, *, limit: int) -> list[NamedCalendar]:
        """Calendars whose schedules are to be looked at, the longest changed first; corrupt ones wait."""
        rows = self._majority.find({"changed_at": {"$exists": True}}, hint="changed_v1")
        return self._sound(_read_calendar(row) for row in rows.sort("changed_at", 1).limit(limit))

    def with_older_holiday_data(self, holiday_data: str, *, limit: int) -> list[NamedCalendar]:
        """Calendars whose days come of older holiday data."""
        rows = self._majority.find({"holiday_data": {"$lt": holiday_data}}, hint="holiday_data_v1")
        return self._sound(_read_calendar(row) for row in rows.limit(limit))

    def _sound(self, found: Iterable[NamedCalendar | CorruptCalendar]) -> list[NamedCalendar]:
        """Those that can be read. The others are reported, once each."""
        sound = []
        for each in found:
            if isinstance(each, CorruptCalendar):
                self._reports.report(each.name, each.reason)
            else:
                sound.append(each)
        return sound

    def deleted_before(self, moment: datetime, *, limit: int) -> list[WholeId]:
        """Calendars that were deleted before then."""
        rows = self._majority.find({"deleted_at": {"$lt": moment}}, {"_id": 1}, hint="deleted_v1")
        return [WholeId(str(row["_id"])) for row in rows.limit(limit)]

    def remove(self, calendar_id: WholeId) -> None:
        """Removes a deleted calendar for good."""
        self._calendars.delete_one(_deleted(calendar_id))

    @audited("restored")
    def restore(self, calendar_id: WholeId) -> None:
        """Takes its deletion back."""
        self._calendars.update_one(_deleted(calendar_id), {"$unset": {"deleted_at": ""}})

    def note(self, named: NamedCalendar, *, moved: int, unchanged: int) -> None:
        """Counts schedules that were looked at since the change that `named` knows of."""
        self._calendars.update_one(_known_version(named), {"$inc": {"moved": moved, "unchanged": unchanged}})

    def settle(self, named: NamedCalendar) -> bool:
        """No schedule is left to be looked at; False when it has changed again."""
        result = self._calendars.update_one(_known_version(named), {"$unset": {"changed_at": ""}})
        return result.modified_count == 1

    # -- for readers of schedules --------------------------------------------------------------------------

    def attach(self, found: Sequence[Observer]) -> list[Observer]:
        """The same, with the calendars of those that are schedules, or their rules, and observe one: one
        question for all of them, and none where there is none."""
        wanted = {
            whole_id(each.tenant, each.calendar.name)
            for each in found
            if isinstance(each, Schedule | PlannedRule) and each.calendar is not None
        }
        if not wanted:
            return list(found)
        known = self._known(wanted)

        def attached(each: Any) -> Any:
            if not isinstance(each, Schedule | PlannedRule) or each.calendar is None:
                return each
            calendar = known.get(whole_id(each.tenant, each.calendar.name))
            return replace(each, calendar=_with_calendar(each.calendar, calendar))

        return [attached(each) for each in found]

    def attached_use(self, use: CalendarUse, tenant: str) -> CalendarUse:
        """The same with its calendar, which is the tenant's."""
        return _with_calendar(use, self.known(whole_id(tenant, use.name)))

    def known(self, calendar_id: WholeId) -> NamedCalendar | CorruptCalendar | None:
        """As `get`, but what this process has read at the version in force is not read again."""
        found = self._known([calendar_id]).get(calendar_id)
        return None if isinstance(found, NamedCalendar) and found.deleted_at is not None else found

    def _known(self, wanted: Collection[WholeId]) -> Mapping[str, NamedCalendar | CorruptCalendar]:
        """Calendars by id. Their versions are asked for; what this process has read at that version is not
        read again."""
        rows = self._majority.find({"_id": {"$in": list(wanted)}}, dict.fromkeys(_STAMP, 1))
        found, stale = {}, []
        for row in rows:
            stamp, kept = _stamp(row), self._kept.get(row["_id"])
            if kept is not None and kept[0] == stamp:
                found[row["_id"]] = kept[1]
            else:
                stale.append(row["_id"])
        for row in self._majority.find({"_id": {"$in": stale}}) if stale else ():
            read = _read_calendar(row)
            if len(self._kept) >= KEPT:
                self._kept.clear()
            self._kept[row["_id"]] = _stamp(row), read
            found[row["_id"]] = read
        return found


def computed_with_other_days(named: NamedCalendar) -> Document:
    """The active schedules whose future was computed with other days than it has."""
    return {
        "tenant": named.tenant,
        "calendar": named.name,
        "state": ScheduleState.ACTIVE.value,
        "calendar_days": {"$ne": named.days_version},
    }


def _deleted(calendar_id: WholeId) -> Document:
    return {"_id": calendar_id, "deleted_at": {"$exists": True}}


def _stamp(row: Mapping[str, Any]) -> tuple[object, ...]:
    return tuple(row.get(name) for name in _STAMP)


def _known_version(named: NamedCalendar) -> Document:
    return {"_id": named.id, "days_version": named.days_version}


def _with_calendar(use: CalendarUse, found: NamedCalendar | CorruptCalendar | None) -> CalendarUse:
    if isinstance(found, NamedCalendar):
        return replace(use, known=found)
    if found is None:
        return replace(use, problem=f"there is no calendar {use.name}: make it, or take another")
    return replace(use, problem=f"the stored calendar {use.name} cannot be read: {found.reason}")


def _read_calendar(row: Document) -> NamedCalendar | CorruptCalendar:
    try:
        return from_calendar_document(row)
    except Exception as error:  # a document edited by hand may cause any error
        reason = why_unreadable(error)[0]
    name = row.get("name")
    return CorruptCalendar(name if isinstance(name, str) else str(row["_id"]), reason[:300])
