"""Compares what was owed in an hour with the events that there are: a page of schedules at a time, so that
the memory that it takes does not grow with how many there are.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from scheduler_app.domain.ids import tenant_of
from scheduler_app.domain.ledger import HOUR, MOST_NAMED, Account, OutcomeCounts
from scheduler_app.domain.states import Kind, State
from scheduler_app.domain.stored_fields import Corrupt
from scheduler_app.store.ledger import History
from scheduler_app.witness.evaluator import Unjudged
from scheduler_app.witness.revisions import FindCalendar, OwedOccurrence, owed_in

#: Schedules that are looked at together.
SCHEDULES_A_PAGE: Final = 200
_CALENDARS_KEPT: Final = 200
#: The count that an event's state belongs to; all others are open.
_FINAL: Final = {
    State.COMPLETED.value: "completed",
    State.ERROR.value: "error",
    State.CANCELLED.value: "cancelled",
    State.EXPIRED.value: "expired",
    State.SKIPPED.value: "skipped",
}


@dataclass
class _Tally:
    """What is found of one tenant, as it is found."""

    counts: dict[str, int] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)
    scheduled: int = 0
    """Events with a schedule that was looked at."""

    def add(self, name: str, number: int = 1, *, owed: bool = True) -> None:
        self.counts[name] = self.counts.get(name, 0) + number
        if owed:
            self.counts["owed"] = self.counts.get("owed", 0) + number

    def account(self) -> Account:
        named = (tuple(each) for each in (self.missing, self.unexplained, self.unjudged))
        return Account(OutcomeCounts(**self.counts), (), (), ()) + Account(OutcomeCounts(), *named)


def account_of(
    history: History, hour: datetime, *, rest: Callable[[], None] = lambda: None
) -> dict[str, Account]:
    """What was owed in the hour and what became of it, by tenant. `rest` is called after each page, so that
    who reads so much leaves time to the others. Raises a STORE_FAULT."""
    tallies: dict[str, _Tally] = {}

    def tally(tenant: str) -> _Tally:
        return tallies.setdefault(tenant, _Tally())

    # A page finds the same few calendars again and again.
    find_calendar = lru_cache(maxsize=_CALENDARS_KEPT)(history.calendar)
    after = ""
    while page := history.schedules(after, limit=SCHEDULES_A_PAGE):
        after = str(page[-1]["_id"])
        _judge(history, page, hour, find_calendar, tally)
        rest()
    for tenant in history.tenants():
        _count_others(history, tenant, hour, tally(tenant))
        rest()
    return {tenant: found.account() for tenant, found in sorted(tallies.items())}


def account_of_schedules(history: History, rows: Sequence[Mapping[str, Any]], hour: datetime) -> Account:
    """The same of some schedules of one tenant, given by what the history says of them."""
    found = _Tally()
    _judge(history, rows, hour, history.calendar, lambda _: found)
    return found.account()


def _judge(
    history: History,
    page: Sequence[Mapping[str, Any]],
    hour: datetime,
    find_calendar: FindCalendar,
    tally: Callable[[str], _Tally],
) -> None:
    rows = {str(row["_id"]): row for row in page}
    ended = history.ended_revisions(rows, hour - HOUR, hour + HOUR)
    missed: dict[str, list[Mapping[str, Any]]] = {}
    for record in history.missed(rows, hour):
        missed.setdefault(record["schedule_id"], []).append(record)
    left = dict(rows)
    for own_id, events in groupby(history.events(rows, hour), key=itemgetter("schedule_id")):
        _judge_one(
            left.pop(own_id),
            ended.get(own_id, ()),
            events,
            missed.get(own_id, ()),
            hour,
            find_calendar,
            tally,
        )
    for own_id, row in left.items():
        _judge_one(row, ended.get(own_id, ()), (), missed.get(own_id, ()), hour, find_calendar, tally)


def _judge_one(
    row: Mapping[str, Any],
    ended: Sequence[Mapping[str, Any]],
    events: Iterable[Mapping[str, Any]],
    missed: Sequence[Mapping[str, Any]],
    hour: datetime,
    find_calendar: FindCalendar,
    tally: Callable[[str], _Tally],
) -> None:
    """Of one schedule only the events of its rules are kept, a second apart at least."""
    found = tally(tenant_of(str(row["_id"])))
    scheduled = []
    for event in events:
        if not _is_scheduled(event):
            found.add(_outcome(event))  # a person or a program asked for it
            continue
        found.scheduled += 1
        if not event.get("missed"):
            scheduled.append(event)
    try:
        owed = owed_in(row, ended, hour, find_calendar)
    except (Unjudged, Corrupt) as error:
        found.add("unjudged", owed=False)
        if len(found.unjudged) < MOST_NAMED:
            found.unjudged.append(f"{row['_id']}: {error}"[:200])
        for event in scheduled:
            found.add(_outcome(event))
        return
    _compare(owed, scheduled, missed, found)


def _compare(
    owed: Sequence[OwedOccurrence],
    there: Sequence[Mapping[str, Any]],
    missed: Sequence[Mapping[str, Any]],
    found: _Tally,
) -> None:
    by_id = {each.id: each for each in owed}
    present = {str(each["_id"]) for each in there}
    sent_beyond = [
        known.instant
        for each in there
        if (known := by_id.get(str(each["_id"]))) is not None
        and not known.is_owed
        and each.get("state") != State.CANCELLED.value
    ]
    for each in there:
        known = by_id.get(str(each["_id"]))
        if known is None:
            found.add("unexplained", owed=False)
            if len(found.unexplained) < MOST_NAMED:
                found.unexplained.append(str(each["_id"]))
        elif known.is_owed or each.get("state") != State.CANCELLED.value:
            found.add(_outcome(each))
    for one in owed:
        if not one.is_owed or one.id in present:
            continue
        if any(record["revision"] == one.revision and _covers(record, one.instant) for record in missed):
            found.add("expired")
        elif one.may_be_withdrawn:
            found.add("cancelled")
        elif not any(one.instant <= sent for sent in sent_beyond):
            # A new revision begins after what of the old one had been sent already.
            found.add("missing")
            if len(found.missing) < MOST_NAMED:
                found.missing.append(one.id)


def _count_others(history: History, tenant: str, hour: datetime, found: _Tally) -> None:
    """Messages, and whatever has no schedule that was looked at."""
    scheduled = 0
    for kind, state, held, count in history.counts(tenant, hour):
        if kind == Kind.MESSAGE:
            found.add(_outcome({"state": state, "held": held or None}), count)
        elif kind == Kind.SCHEDULED:
            scheduled += count
    if scheduled > found.scheduled:
        # Nothing at all knows their schedules: not even a deleted one's document is there.
        found.add("unexplained", scheduled - found.scheduled, owed=False)


def _is_scheduled(event: Mapping[str, Any]) -> bool:
    return (event.get("kind") or Kind.SCHEDULED.value) == Kind.SCHEDULED


def _outcome(event: Mapping[str, Any]) -> str:
    known = _FINAL.get(str(event.get("state")))
    if known is not None:
        return known
    return "held" if event.get("held") else "open"


def _covers(record: Mapping[str, Any], moment: datetime) -> bool:
    missed = record.get("missed") or {}
    first, last = missed.get("first"), missed.get("last")
    return isinstance(first, datetime) and isinstance(last, datetime) and first <= moment <= last
