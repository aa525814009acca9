"""What the witness reads (schedules with their ended revisions, and the events of an hour), and the lines
that it writes. It reads small pages by an index, so that nobody waits for it.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from pymongo import ASCENDING, DESCENDING

from scheduler_app.domain.ledger import COUNTED, HOUR, Account, LedgerLine, counts_from
from scheduler_app.domain.states import Kind
from scheduler_app.domain.stored_fields import fields, instant, items, text, version, whole
from scheduler_app.store.bulk_writes import insert_new
from scheduler_app.store.ended_revisions import TIMING
from scheduler_app.store.mongo import BY_ID, Document, Mongo

DOCUMENT_VERSION: Final = 1
OF_SCHEDULE: Final = "schedule_v1"
BY_NUMBER: Final = "number_v1"
BY_HOUR: Final = "hour_v1"
UNSETTLED: Final = "unsettled_v1"
#: Events are counted in parts of an hour, so that no command takes long.
_PART: Final = timedelta(minutes=5)
_SEEN: Final = dict.fromkeys(
    ("schedule_id", "revision", "run_time", "kind", "state", "held", "missed", "tenant"), 1
)


class History:
    """What the witness judges: read with read concern majority, of which a failover takes nothing back."""

    def __init__(self, mongo: Mongo) -> None:
        self._schedules = mongo.majority("schedules")
        self._ended = mongo.majority("ended_revisions")
        self._calendars = mongo.majority("calendars")
        self._ended_calendars = mongo.majority("ended_calendars")
        self._events = mongo.majority("events")

    def schedules(self, after: str, *, limit: int) -> list[Document]:
        """What says when schedules fire, of those with ids after `after`, in the order of their ids."""
        return list(
            self._schedules.find({"_id": {"$gt": after}}, TIMING, hint=BY_ID, sort=[("_id", 1)], limit=limit)
        )

    def tagged(self, tenant: str, tag: str, *, limit: int) -> list[Document]:
        """The same of a tenant's schedules with a tag."""
        which = {"tenant": tenant, "tags": tag}
        return list(self._schedules.find(which, TIMING, hint="list_tag_v1", limit=limit))

    def ended_revisions(
        self, ids: Collection[str], since: datetime, before: datetime
    ) -> dict[str, list[Document]]:
        """The ended revisions of these schedules that ended at `since` or later and began before `before`,
        the oldest first: a schedule that is edited all the time has any number of later ones."""
        which = {
            "schedule_id": {"$in": list(ids)},
            "ended_at": {"$gte": since},
            "revised_at": {"$lt": before},
        }
        found: dict[str, list[Document]] = {}
        for row in self._ended.find(which, hint=OF_SCHEDULE, sort=[("schedule_id", 1), ("revision", 1)]):
            found.setdefault(row["schedule_id"], []).append(row)
        return found

    def calendar(self, calendar_id: str, days_version: int) -> Document | None:
        """A calendar with the days that it had under that number."""
        known = self._calendars.find_one({"_id": calendar_id}, hint=BY_ID)
        if known is not None and known.get("days_version") == days_version:
            return known
        return self._ended_calendars.find_one({"_id": f"{calendar_id}/{days_version}"}, hint=BY_ID)

    def events(self, ids: Collection[str], hour: datetime) -> Iterable[Document]:
        """The events of these schedules whose run time lies in the hour, those of one schedule side by side.
        They are read as they are asked for: two hundred schedules may have hundreds of thousands."""
        which = {"schedule_id": {"$in": list(ids)}, "run_time": {"$gte": hour, "$lt": hour + HOUR}}
        order = [("schedule_id", ASCENDING), ("run_time", DESCENDING), ("_id", DESCENDING)]
        return self._events.find(which, _SEEN, hint="schedule_v1", sort=order)

    def missed(self, ids: Collection[str], hour: datetime) -> list[Document]:
        """The records of missed ranges of these schedules that touch the hour."""
        which = {
            "schedule_id": {"$in": list(ids)},
            "run_time": {"$gte": hour},
            "missed.first": {"$lt": hour + HOUR},
        }
        return list(
            self._events.find(which, {"missed": 1, "revision": 1, "schedule_id": 1}, hint="missed_v1")
        )

    def tenants(self) -> list[str]:
        """All tenants that have events, by the index alone."""
        return sorted(each for each in self._events.distinct("tenant") if isinstance(each, str))

    def counts(self, tenant: str, hour: datetime) -> Iterable[tuple[str, str, bool, int]]:
        """How many events of a tenant have a run time in the hour, by kind, state and whether they are
        held."""
        part = hour
        while part < hour + HOUR:
            rows = self._events.aggregate(
                [
                    {"$match": {"tenant": tenant, "run_time": {"$gte": part, "$lt": part + _PART}}},
                    {
                        "$group": {
                            "_id": {"kind": "$kind", "state": "$state", "held": {"$gt": ["$held", None]}},
                            "count": {"$sum": 1},
                        }
                    },
                ],
                hint="list_v1",
            )
            for row in rows:
                own = row["_id"]
                kind = own.get("kind") or Kind.SCHEDULED.value
                yield str(kind), str(own.get("state")), bool(own["held"]), row["count"]
            part += _PART


class Ledger:
    """Lines are inserted, and never changed. Unique indexes hold two witnesses apart: a number and the turn
    of an hour are written once."""

    def __init__(self, mongo: Mongo) -> None:
        self._lines = mongo.collection("ledger")
        self._majority = mongo.majority("ledger")

    def last(self, tenant: str) -> LedgerLine | None:
        """The newest line of a tenant. Raises Corrupt."""
        row = self._majority.find_one({"tenant": tenant}, sort=[("number", DESCENDING)], hint=BY_NUMBER)
        return _read(row) if row else None

    def newest_hour(self, tenant: str) -> datetime | None:
        """The newest hour that a line of the tenant tells of."""
        row = self._majority.find_one(
            {"tenant": tenant}, {"hour": 1}, sort=[("hour", DESCENDING)], hint=BY_HOUR
        )
        return row["hour"] if row else None

    def of_hour(self, tenant: str, hour: datetime) -> LedgerLine | None:
        """The last line of an hour. Raises Corrupt."""
        which = {"tenant": tenant, "hour": hour}
        row = self._majority.find_one(which, sort=[("turn", DESCENDING)], hint=BY_HOUR)
        return _read(row) if row else None

    def append(self, line: LedgerLine) -> bool:
        """Writes a sealed line; False where another witness has written its number, or its turn. Raises a
        STORE_FAULT."""
        return not insert_new(self._lines, [_document(line)])

    def lines(
        self, tenant: str, since: datetime, until: datetime, *, limit: int
    ) -> tuple[list[LedgerLine], bool]:
        """The lines of the hours from `since` up to `until`, in the order of hour and turn, and whether there
        are more. Raises Corrupt."""
        which = {"tenant": tenant, "hour": {"$gte": since, "$lt": until}}
        order = [("hour", ASCENDING), ("turn", ASCENDING)]
        rows = list(self._majority.find(which, sort=order, hint=BY_HOUR, limit=limit + 1))
        return [_read(row) for row in rows[:limit]], len(rows) > limit

    def chain(self, tenant: str, after: int, *, limit: int) -> list[LedgerLine]:
        """The lines of a tenant after the number `after`, in their order. Raises Corrupt."""
        which = {"tenant": tenant, "number": {"$gt": after}}
        rows = self._majority.find(which, sort=[("number", ASCENDING)], hint=BY_NUMBER, limit=limit)
        return [_read(row) for row in rows]

    def unsettled(self, since: datetime, *, limit: int) -> list[tuple[str, datetime]]:
        """Tenants and hours from `since` on with lines that tell of events that had not ended, or of others
        that were missing; the oldest first. A later line of the hour may have settled it."""
        rows = self._majority.find(
            {"unsettled": True, "hour": {"$gte": since}},
            {"tenant": 1, "hour": 1},
            sort=[("hour", ASCENDING)],
            hint=UNSETTLED,
            limit=limit,
        )
        return list(dict.fromkeys((row["tenant"], row["hour"]) for row in rows))

    def settle(self, tenant: str, hour: datetime, turn: int) -> None:
        """Notes that lines of an hour up to that turn need no further look, because a later line tells of the
        rest. It is no part of what a line says."""
        which = {"tenant": tenant, "hour": hour, "turn": {"$lte": turn}, "unsettled": True}
        self._lines.update_many(which, {"$unset": {"unsettled": ""}}, hint=BY_HOUR)

    def tenants(self) -> list[str]:
        """All tenants that have lines."""
        return sorted(each for each in self._majority.distinct("tenant") if isinstance(each, str))


def _document(line: LedgerLine) -> Document:
    counts = line.account.counts
    unsettled = bool(counts.open or counts.held or counts.missing)
    return {
        "_id": f"{line.tenant}/{line.number}",
        "v": DOCUMENT_VERSION,
        "tenant": line.tenant,
        "number": line.number,
        "hour": line.hour,
        "turn": line.turn,
        "written_at": line.written_at,
        "counts": counts.as_dict(),
        "missing": list(line.account.missing),
        "unexplained": list(line.account.unexplained),
        "unjudged": list(line.account.unjudged),
        "previous": line.previous,
        "hash": line.hash,
    } | ({"unsettled": True} if unsettled else {})


def _read(row: Mapping[str, Any]) -> LedgerLine:
    version(row.get("v"), DOCUMENT_VERSION)
    counts = fields(row.get("counts"), "counts")
    return LedgerLine(
        tenant=text(row.get("tenant"), "tenant"),
        number=whole(row.get("number"), "number", least=1),
        hour=instant(row.get("hour"), "hour"),
        turn=whole(row.get("turn"), "turn", least=1),
        written_at=instant(row.get("written_at"), "written_at"),
        account=Account(
            counts_from({name: whole(counts.get(name) or 0, f"counts.{name}") for name in COUNTED}),
            _ids(row, "missing"),
            _ids(row, "unexplained"),
            _ids(row, "unjudged"),
        ),
        previous=text(row.get("previous"), "previous"),
        hash=text(row.get("hash"), "hash"),
    )


def _ids(row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(text(each, f"an item of {name}") for each in items(row.get(name) or [], name))
