"""What a forecast is made of: the schedules with a future, and the events that wait."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar, cast

from bson.raw_bson import RawBSONDocument

from scheduler_app.domain.action import UNKNOWN_ORIGIN
from scheduler_app.domain.forecast import (
    EVERY_CALLBACK,
    Buckets,
    ForecastChoice,
    PlannedRule,
    PlannedSchedule,
    with_common_start,
)
from scheduler_app.domain.http_action import destination_key
from scheduler_app.domain.ids import tenant_of
from scheduler_app.domain.schedule import ScheduleState
from scheduler_app.domain.states import LIVING, Kind
from scheduler_app.domain.stored_fields import fields, instant, items, optional, tenant, text
from scheduler_app.store.calendars import Calendars
from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.events.documents import stored_origin
from scheduler_app.store.indexes import BY_ACTION, BY_DUE, BY_TAG, OF_DESTINATION, PENDING
from scheduler_app.store.mongo import BY_ID, DecodedCache, Document, Mongo
from scheduler_app.store.schedules.cursors import WITHOUT_REQUEST, without_request
from scheduler_app.store.schedules.documents import READABLE, read_action
from scheduler_app.store.schedules.trigger_documents import read_calendar_use, read_jitter, read_trigger

#: Schedules with a tag whose waiting events are looked at, and schedules that are counted where others stand
#: for them.
MOST_TAGGED = 2_000
MOST_COUNTED = 100_000
_LIVING: Document = {"$in": sorted(LIVING)}
_ORIGIN: Document = {"$cond": [{"$eq": [{"$type": "$origin"}, "string"]}, "$origin", UNKNOWN_ORIGIN]}
_MILLISECOND = timedelta(milliseconds=1)


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class WaitingCount(NamedTuple):
    """How many events wait for one receiver in one bucket."""

    bucket: int
    receiver: str
    messages: bool
    number: int


class RecentOccurrence(NamedTuple):
    """An occurrence that became an event a moment ago."""

    schedule_id: str
    run_time: datetime
    due_at: datetime
    receiver: str


class WaitingChoice(NamedTuple):
    """Which events are looked at, and by which index."""

    which: Document
    hint: str


class WaitingEvent(NamedTuple):
    """One event that waits."""

    id: str
    due_at: datetime
    receiver: str
    occurs_at: datetime | None
    """The run time of an occurrence that nothing was tried for; None for anything else."""
    is_message: bool


#: What a forecast does not ask of a schedule, beside what it sends.
_PLANNED: Document = WITHOUT_REQUEST | dict.fromkeys(
    (
        *("state", "version", "revision", "revised_at", "cuts", "finishes_at", "first_revision", "zone_data"),
        *("updated_at", "partition", "owner", "lease_until", "pause", "failures_since", "purpose", "expect"),
        *("retry", "success", "timeout_seconds", "lateness", "notifies"),
    ),
    0,
)
#: Schedules that are decoded at a time; and the documents of all: those beyond are not read, since a rule may
#: have 64 KiB.
A_BATCH = 500
MOST_READ_BYTES = 32 << 20
#: Schedules that a process keeps decoded, if their documents are no larger than that: some 20 MB.
MOST_DECODED, MOST_BYTES = 20_000, 1_024


class _Reading:
    """Reads what a forecast asks of schedules; what many of them say alike is read once. Thread-safe."""

    def __init__(self, secret_box: SecretBox) -> None:
        self._secret_box = secret_box
        self._actions: dict[tuple[str, str], tuple[str, str | None]] = {}
        self._rules: dict[tuple[object, ...], PlannedRule] = {}

    def schedule(self, row: Document) -> PlannedSchedule | None:
        """What is asked of it, its rule without a calendar; None for one that cannot be read."""
        try:
            schedule_id = text(row["_id"], "_id")
            return PlannedSchedule(
                schedule_id,
                text(row.get("name"), "name"),
                tuple([text(tag, "an item of tags") for tag in items(row.get("tags") or [], "tags")]),
                self._rule(row, tenant(row.get("tenant"), "tenant", schedule_id)),
                optional(instant, row.get("next_run_at"), "next_run_at"),
                read_jitter(row),
                *self._receiver(row, schedule_id),
            )
        except Exception:  # a document edited by hand may cause any error
            return None

    def _rule(self, row: Document, of: str) -> PlannedRule:
        use, pinned = row.get("calendar"), row.get("pinned") or ""
        if row.get("checkpoint") is not None:
            return _read_rule(row, of)
        # A calendar may move an occurrence of before the start to a day after it.
        if pinned and (use is None or row.get("on_holiday") == "skip"):
            pinned = with_common_start(pinned)
            row = row | {"pinned": pinned}
        key = (
            of,
            pinned,
            None if "DTSTART" in pinned else row.get("created_at"),
            *(row.get(name) for name in ("rrule", "run_at", "timezone", "gap", "overlap")),
            *(use, row.get("on_holiday"), row.get("calendar_days"), repr(row.get("trigger"))),
        )
        known = self._rules.get(key)
        if known is None:
            known = _read_rule(row, of)
            if len(pinned) + len(row.get("rrule") or "") <= MOST_BYTES:
                _keep(self._rules, key, known)
        return known

    def _receiver(self, row: Document, schedule_id: str) -> tuple[str, str | None]:
        """The isolation key of what it sends, and the destination that it names."""
        key = tenant_of(schedule_id), repr(row.get("action"))
        known = self._actions.get(key)
        if known is None:
            action = read_action(without_request(row).get("action"), schedule_id, self._secret_box)
            known = action.isolation_key, action.destination
            if len(key[1]) <= MOST_BYTES:
                _keep(self._actions, key, known)
        return known


def _read_rule(row: Document, of: str) -> PlannedRule:
    """Without the calendar that it observes."""
    return PlannedRule(
        of,
        read_trigger(row),
        instant(row.get("created_at"), "created_at"),
        optional(fields, row.get("checkpoint"), "checkpoint"),
        read_calendar_use(row),
    )


def _keep(known: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    if len(known) >= MOST_DECODED:
        known.clear()
    known[key] = value


class Forecasts:
    def __init__(self, mongo: Mongo, secret_box: SecretBox, calendars: Calendars) -> None:
        self._schedules = mongo.collection("schedules")
        self._events = mongo.collection("events")
        self._calendars = calendars
        options = self._schedules.codec_options
        self._raw = self._schedules.with_options(options.with_options(document_class=RawBSONDocument))
        reading = _Reading(secret_box)
        # Each calendar and forecast asks for the same ones, until beats advance them or people edit them.
        self._readings = DecodedCache(reading.schedule, options, size=MOST_DECODED, most_bytes=MOST_BYTES)

    def planned(
        self, tenant: str, choice: ForecastChoice = EVERY_CALLBACK, *, most: int
    ) -> tuple[int, list[PlannedSchedule | None]]:
        """How many active schedules there are of those that are chosen, and `most` of them by chance, or all,
        or as many as `MOST_READ_BYTES` hold; None is one that is gone or cannot be read."""
        which, hint = _schedules_chosen(tenant, choice)
        which["state"] = ScheduleState.ACTIVE.value
        total = self._schedules.count_documents(which, hint=hint, limit=MOST_COUNTED)
        if total > most:
            steps: list[Document] = [
                {"$match": which},
                {"$limit": MOST_COUNTED},
                {"$project": {"_id": 1}},
                {"$sample": {"size": most}},
            ]
            drawn = [row["_id"] for row in self._schedules.aggregate(steps, hint=hint)]
            which, hint = {"_id": {"$in": drawn}}, BY_ID
        found, size = list[PlannedSchedule | None](), 0
        with self._raw.find(which | READABLE, _PLANNED, hint=hint).limit(most).batch_size(A_BATCH) as rows:
            while size < MOST_READ_BYTES and (batch := rows.to_list(A_BATCH)):
                documents = [bytes(row.raw) for row in cast("list[RawBSONDocument]", batch)]
                size += sum(map(len, documents))
                found += map(self._readings.of, documents)
        self._attach_calendars(found)
        gone = max(0, min(total, most) - len(found)) if size < MOST_READ_BYTES else 0
        return max(total, len(found)), [*found, *[None] * gone]

    def _attach_calendars(self, found: Iterable[PlannedSchedule | None]) -> None:
        """Reads those that the rules observe: they change without the schedules."""
        observing = {id(each.rule): each.rule for each in found if each and each.rule.calendar is not None}
        rules = list(observing.values())
        for rule, attached in zip(rules, self._calendars.attach(rules), strict=True):
            rule.calendar = attached.calendar

    def waiting_choice(self, tenant: str, choice: ForecastChoice) -> tuple[WaitingChoice, bool]:
        """The events that wait of those that are chosen, and whether that leaves out some: the schedules with
        a tag of which there are more than `MOST_TAGGED`."""
        which: Document = {"tenant": tenant}
        hint, more = BY_DUE, False
        if choice.destination is not None:
            which["origin"], hint = destination_key(choice.destination), OF_DESTINATION
        if choice.schedule_id is not None:
            which["schedule_id"], hint = choice.schedule_id, PENDING
        if choice.tag is not None:
            ids, more = self.owners(tenant, choice, limit=MOST_TAGGED)
            which["schedule_id"], hint = {"$in": ids}, PENDING
        return WaitingChoice(which, hint), more

    def owners(self, tenant: str, choice: ForecastChoice, *, limit: int) -> tuple[list[str], bool]:
        """The ids of the schedules that are chosen, `limit` at most, in whatever state; whether there are
        more."""
        which, hint = _schedules_chosen(tenant, choice)
        rows = self._schedules.find(which, {"_id": 1}, hint=hint).limit(limit + 1)
        ids = [row["_id"] for row in rows.batch_size(limit + 1)]
        return ids[:limit], len(ids) > limit

    def waiting(
        self, chosen: WaitingChoice, buckets: Buckets, made_before: datetime, *, limit: int
    ) -> tuple[list[WaitingCount], int]:
        """The chosen events that fall due in the buckets, without occurrences that became events since
        `made_before`; and how many were looked at, `limit` at most."""
        rows = list(
            self._events.aggregate(
                [
                    {
                        "$match": _due(buckets.start, buckets.end, chosen)
                        | {"$nor": [_made_since(made_before)]}
                    },
                    {"$limit": limit},
                    {
                        "$group": {
                            "_id": {
                                "bucket": {
                                    "$floor": {
                                        "$divide": [
                                            {"$subtract": ["$due_at", buckets.origin]},
                                            buckets.width // _MILLISECOND,
                                        ]
                                    }
                                },
                                "origin": _ORIGIN,
                                "message": {"$eq": ["$kind", "message"]},
                            },
                            "count": {"$sum": 1},
                        }
                    },
                ],
                hint=chosen.hint,
            )
        )
        found = [
            WaitingCount(
                int(row["_id"]["bucket"]), row["_id"]["origin"], bool(row["_id"]["message"]), row["count"]
            )
            for row in rows
        ]
        return found, sum(each.number for each in found)

    def each_waiting(
        self, chosen: WaitingChoice, since: datetime, until: datetime, made_before: datetime, *, limit: int
    ) -> list[WaitingEvent]:
        """As `waiting`, one by one."""
        which = _due(since, until, chosen) | {"$nor": [_made_since(made_before)]}
        fields = {"due_at": 1, "origin": 1, "run_time": 1, "kind": 1, "attempt": 1}
        found = []
        for row in self._events.find(which, fields, hint=chosen.hint).limit(limit):
            planned = row.get("kind") == Kind.SCHEDULED and row.get("attempt") == 0
            run_time = row.get("run_time") if planned else None
            found.append(
                WaitingEvent(
                    row["_id"],
                    row["due_at"],
                    stored_origin(row),
                    run_time if isinstance(run_time, datetime) else None,
                    row.get("kind") == Kind.MESSAGE,
                )
            )
        return found

    def made_since(
        self, chosen: WaitingChoice, since: datetime, buckets: Buckets, *, limit: int
    ) -> list[RecentOccurrence]:
        """Occurrences that fall due in the buckets and became events since then, `limit` at most."""
        which = _due(buckets.start, buckets.end, chosen) | _made_since(since)
        fields = {"schedule_id": 1, "run_time": 1, "due_at": 1, "origin": 1}
        rows = self._events.find(which, fields, hint=chosen.hint).limit(limit)
        return [
            RecentOccurrence(row["schedule_id"], row["run_time"], row["due_at"], stored_origin(row))
            for row in rows
            if isinstance(row.get("schedule_id"), str) and isinstance(row.get("run_time"), datetime)
        ]

    def count(self, chosen: WaitingChoice, since: datetime, until: datetime, *, most: int) -> int:
        """How many events fall due in that time; no more than `most` are counted."""
        which = _due(since, until, chosen)
        return self._events.count_documents(which, hint=chosen.hint, limit=most)


def _schedules_chosen(tenant: str, choice: ForecastChoice) -> tuple[Document, str]:
    """Those that are chosen, active or not, and the index that finds them."""
    which: Document = {"tenant": tenant}
    hint = "list_state_v1"
    if choice.destination is not None:
        which["action.destination"], hint = choice.destination, BY_ACTION
    if choice.tag is not None:
        which["tags"], hint = choice.tag, BY_TAG
    if choice.schedule_id is not None:
        which["_id"], hint = choice.schedule_id, BY_ID
    return which, hint


def _due(since: datetime, until: datetime, chosen: WaitingChoice) -> Document:
    # What is an array is found like a date, until an inspection sets its event aside.
    when = {"$gte": since, "$lt": until, "$not": {"$type": "array"}}
    # What a kill switch holds is due whenever that is off; the time that it has until then says nothing.
    return chosen.which | {"state": _LIVING, "due_at": when, "held": {"$exists": False}}


def _made_since(since: datetime) -> Document:
    return {"kind": "scheduled", "created_at": {"$gte": since}}
