"""Backfill: each past occurrence once, at its rate, behind the living, and nothing after a cancel."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain import backfill as bounds
from scheduler_app.domain.action import Lane
from scheduler_app.domain.backfill import (
    MAX_OCCURRENCES,
    MAX_RUNNING,
    Backfill,
    BackfillOverlap,
    BackfillState,
)
from scheduler_app.domain.errors import Conflict, InvalidField
from scheduler_app.domain.ids import TENANT, is_backfill, schedule_of
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.states import Kind, State
from scheduler_app.store import Store
from scheduler_app.store.events.outbox import DueEvent
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.usecases.duties.backfills import (
    BACKFILLS_A_PAGE,
    BackfillDuty,
    BackfillProgress,
    BackfillRequest,
    BackfillService,
)
from scheduler_app.usecases.duties.dispatch_selection import lane_of
from scheduler_app.usecases.duties.expansion import Expansion
from scheduler_app.usecases.questions.explanation import explain_schedule
from tests.builders import event, schedule
from tests.corruption import BACKFILLS, MISSING, corruptions
from tests.integration.conftest import NOON

SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=each) for each in (1, 60, 3_600, 86_400))
MINUTELY = "DTSTART:20260201T000000Z\nRRULE:FREQ=MINUTELY"
#: As beats make them ahead by default.
AHEAD_SECONDS = 5
Ask = Callable[..., BackfillProgress]


@pytest.fixture
def made(store: Store) -> Schedule:
    """A minutely schedule that is younger than its rule."""
    found = schedule(NOON, rrule=MINUTELY)
    store.schedules.insert(found)
    return found


def asking(since: datetime, until: datetime = NOON, **changes: Any) -> BackfillRequest:
    given: dict[str, Any] = {"rate_per_second": 100.0, "overlap": BackfillOverlap.ALLOW, "only_missing": True}
    return BackfillRequest(since, until, **given | changes)


def backfilled(store: Store, *states: State) -> list[dict[str, Any]]:
    which: dict[str, Any] = {"kind": Kind.BACKFILL.value}
    if states:
        which["state"] = {"$in": list(states)}
    return list(store.mongo.collection("events").find(which).sort("run_time", 1))


def serve(store: Store, now: datetime) -> None:
    """Workers complete what is due."""
    due = {"kind": "backfill", "due_at": {"$lte": now}}
    change = {"$set": {"state": "completed", "archived_at": now, "was_due": "$due_at"}}
    store.mongo.collection("events").update_many(due, [change, {"$unset": "due_at"}])


def work(store: Store, now: datetime, seconds: int, *, served: bool = False) -> None:
    """Three beats' ticks, and workers that are quick."""
    beats = [BackfillDuty(store, ahead_seconds=AHEAD_SECONDS) for _ in range(3)]
    for second in range(seconds):
        for beat in beats:
            beat.work_page(now + second * SECOND)
        if served:
            serve(store, now + second * SECOND)


def test_each_missing_occurrence_becomes_one_event_at_the_rate(store: Store, made: Schedule) -> None:
    service = BackfillService(store)
    started = service.start(made, asking(NOON - DAY), NOON)
    assert started.backfill.occurrences == 1_441
    work(store, NOON, 20, served=True)
    rows = backfilled(store)
    assert [row["run_time"] for row in rows] == [NOON - DAY + i * MINUTE for i in range(1_441)]
    assert all(is_backfill(row["_id"]) and schedule_of(row["_id"]) == "s1" for row in rows)
    per_second = Counter(((row.get("due_at") or row["was_due"]) - NOON) // SECOND for row in rows)
    assert max(per_second.values()) <= 100
    assert max(per_second) == 14
    assert service.progress("s1").backfill.state is BackfillState.MADE
    with pytest.raises(InvalidField):
        service.plan(made, asking(NOON, NOON + MINUTE), NOON)


@pytest.mark.long
def test_a_month_of_a_minutely_rule_at_a_hundred_a_second(store: Store) -> None:
    made = schedule(NOON, rrule="DTSTART:20260101T000000Z\nRRULE:FREQ=MINUTELY")
    store.schedules.insert(made)
    since = NOON - 31 * DAY
    assert BackfillService(store).start(made, asking(since), NOON).backfill.occurrences == 44_641
    expansion, beat = (
        Expansion(store, timeframe_seconds=600),
        BackfillDuty(store, ahead_seconds=AHEAD_SECONDS),
    )
    for second in range(500):
        now = NOON + second * SECOND
        expansion.expand_page(now)
        beat.work_page(now)
        serve(store, now)
    rows = backfilled(store)
    assert [row["run_time"] for row in rows] == [since + i * MINUTE for i in range(44_641)]
    living = store.mongo.collection("events").find({"kind": "scheduled"})
    assert all(row["due_at"] == row["run_time"] > NOON for row in living)


def test_only_a_part_waits_at_a_time_and_no_more_is_made_while_it_is_not_served(
    store: Store, made: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    BackfillService(store).start(made, asking(NOON - DAY, rate_per_second=2.0), NOON)
    work(store, NOON, 1)
    assert len(backfilled(store)) == AHEAD_SECONDS * 2
    # An outage of a minute: afterwards no more come at once than would have in the seconds ahead.
    work(store, NOON, 60)
    assert len(backfilled(store)) == AHEAD_SECONDS * 2
    # What its receiver fails takes up no place, up to a bound.
    store.mongo.collection("events").update_many({"kind": "backfill"}, {"$set": {"state": "retrying"}})
    monkeypatch.setattr("scheduler_app.domain.backfill.MAX_WAITING", 15)
    work(store, NOON + 60 * SECOND, 3)
    assert len(backfilled(store)) == bounds.MAX_WAITING == 15


def test_what_has_an_event_that_waits_succeeded_or_failed_is_not_missing(
    store: Store, made: Schedule
) -> None:
    states = [State.READY_QUEUE, State.COMPLETED, State.ERROR, State.CANCELLED, State.EXPIRED, State.SKIPPED]
    for number, state in enumerate(states, 1):
        there = event(NOON - number * MINUTE)
        store.events.insert([there], NOON, "made")
        store.mongo.collection("events").update_one({"_id": there.id}, {"$set": {"state": state.value}})
    service, asked = BackfillService(store), asking(NOON - 9 * MINUTE, NOON - MINUTE)
    assert (service.plan(made, asked, NOON).backfill.occurrences, service.plan(made, asked, NOON).there) == (
        9,
        3,
    )
    service.start(made, asked, NOON)
    work(store, NOON, 2)
    assert [row["run_time"] for row in backfilled(store)] == [NOON - i * MINUTE for i in (9, 8, 7, 6, 5, 4)]
    found = service.progress("s1").backfill
    assert (found.made, found.left_out) == (6, 3)
    # And once more, when it is asked for: under other ids.
    service.start(made, replace(asked, only_missing=False), NOON)
    work(store, NOON, 2)
    assert len(backfilled(store)) == 6 + 9


def test_a_beat_that_dies_between_its_two_writes_doubles_nothing(
    store: Store, made: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    BackfillService(store).start(made, asking(NOON - HOUR), NOON)
    beat = BackfillDuty(store, ahead_seconds=AHEAD_SECONDS)
    with monkeypatch.context() as patch:
        patch.setattr(store.backfills, "advance", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            beat.work_page(NOON)
    assert len(backfilled(store)) == 61
    store.mongo.collection("backfills").update_many({}, {"$unset": {"owner": "", "lease_until": ""}})
    work(store, NOON + 40 * SECOND, 2)
    assert len(backfilled(store)) == 61
    found = BackfillService(store).progress("s1")
    assert (found.backfill.state, found.backfill.made, found.waiting) == (
        BackfillState.MADE,
        61,
        61,
    )


def test_a_cancel_leaves_nothing_waiting(store: Store, made: Schedule) -> None:
    service = BackfillService(store)
    service.start(made, asking(NOON - DAY), NOON)
    beat = BackfillDuty(store, ahead_seconds=AHEAD_SECONDS)
    beat.work_page(NOON)
    first = backfilled(store)[0]["_id"]
    now = NOON + SECOND
    token, _ = store.claims.claim([first], until=now, now=now, lease_seconds=600, worker="w")
    service.cancel("s1", now)
    assert [row["_id"] for row in backfilled(store, State.READY_QUEUE, State.RUNNING)] == [first]
    # What a worker held comes back, and is withdrawn.
    again = OutcomeRecord(
        first, token, State.RETRYING, "again", now + MINUTE, {"number": 1, "error": "no"}, now
    )
    assert store.outcomes.record([again]) == []
    beat.work_page(now + SECOND)
    assert backfilled(store, *(State.READY_QUEUE, State.RETRYING, State.RUNNING)) == []
    assert backfilled(store)[-1]["status"][-1]["message"] == "Withdrawn: the backfill was cancelled"
    work(store, now + 70 * SECOND, 2)
    assert store.backfills.running(TENANT, most=9) == 0
    assert service.progress("s1").backfill.state is BackfillState.CANCELLED


def test_a_beat_that_made_events_of_a_cancelled_one_withdraws_them(
    store: Store, made: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, insert = BackfillService(store), store.events.insert
    service.start(made, asking(NOON - HOUR), NOON)

    def cancelled_first(*arguments: Any) -> int:
        service.cancel("s1", NOON)
        return insert(*arguments)

    monkeypatch.setattr(store.events, "insert", cancelled_first)
    BackfillDuty(store, ahead_seconds=AHEAD_SECONDS).work_page(NOON)
    assert {row["state"] for row in backfilled(store)} == {"cancelled"}


def test_its_events_come_after_what_falls_due_by_itself(store: Store, made: Schedule) -> None:
    BackfillService(store).start(made, asking(NOON - HOUR), NOON)
    work(store, NOON, 1)
    row = backfilled(store)[0]
    assert lane_of(DueEvent(row["due_at"], row["_id"]), NOON) is Lane.LATE
    assert lane_of(DueEvent(NOON, event(NOON).id), NOON) is Lane.FRESH
    named = event(NOON, "my-backfill-1")
    assert lane_of(DueEvent(NOON, named.id), NOON) is Lane.FRESH


def test_queued_ones_are_made_one_after_the_other(store: Store, made: Schedule) -> None:
    BackfillService(store).start(made, asking(NOON - HOUR, overlap=BackfillOverlap.QUEUE), NOON)
    for number in range(3):
        work(store, NOON + number * MINUTE, 3)
        rows = backfilled(store)
        assert len(rows) == number + 1
        store.cancellations.cancel(rows[-1]["_id"], NOON, "over")


def test_its_bounds_are_refusals(store: Store, made: Schedule) -> None:
    service = BackfillService(store)
    each_second = schedule(NOON, "s", rrule="DTSTART:20200101T000000Z\nRRULE:FREQ=SECONDLY")
    with pytest.raises(InvalidField, match=str(MAX_OCCURRENCES)):
        service.plan(each_second, asking(NOON - 30 * DAY), NOON)
    service.start(made, asking(NOON - HOUR), NOON)
    with pytest.raises(Conflict, match="at work"):
        service.start(made, asking(NOON - HOUR), NOON)
    behind = replace(schedule(NOON - HOUR, "behind", rrule=MINUTELY))
    with pytest.raises(Conflict, match="still making"):
        service.plan(behind, asking(NOON - DAY), NOON)
    for number in range(MAX_RUNNING - 1):
        other = schedule(NOON, f"other{number}", rrule=MINUTELY)
        store.schedules.insert(other)
        service.start(other, asking(NOON - HOUR), NOON)
    last = schedule(NOON, "last", rrule=MINUTELY)
    with pytest.raises(Conflict, match=f"{MAX_RUNNING} backfills"):
        service.start(last, asking(NOON - HOUR), NOON)


def test_one_that_cannot_be_read_ends_and_harms_only_itself(store: Store) -> None:
    """Each field of its document is bent; those that can be read nevertheless go on."""
    bent = {f"bad-{number}": each for number, each in enumerate(corruptions(BACKFILLS))}
    documents = store.mongo.collection("backfills")
    for name in (*bent, "healthy"):
        found = schedule(NOON, name, rrule=MINUTELY)
        store.schedules.insert(found)
        planned = BackfillService(store).plan(found, asking(NOON - 4 * MINUTE), NOON)
        assert store.backfills.start(planned.backfill)
        if name in bent:
            documents.update_one({"_id": name}, bent[name].update())
    beat = BackfillDuty(store, ahead_seconds=AHEAD_SECONDS)
    for second in range(2 * len(bent) // BACKFILLS_A_PAGE):
        beat.work_page(NOON + second * SECOND)
    rows = {row["_id"]: row for row in documents.find({})}
    assert rows["healthy"]["state"] == "made"
    harmless = {"origin", "reason", "sweeping", "ended_at"}
    for name, corruption in bent.items():
        row = rows[name]
        assert "active" not in row, (name, corruption)
        if row["state"] == "error":
            assert row["reason"], (name, corruption)
        else:
            assert row["state"] in ("made", "cancelled"), (name, corruption, row)
            assert corruption.field in harmless or corruption.value in (None, MISSING), (name, corruption)
    assert {row["run_time"] for row in backfilled(store) if row["schedule_id"] == "healthy"} == {
        NOON - number * MINUTE for number in range(5)
    }


def test_the_first_ones_keep_back_no_other(store: Store, made: Schedule) -> None:
    number = 2 * BACKFILLS_A_PAGE
    planned = BackfillService(store).plan(made, asking(NOON - HOUR), NOON).backfill
    for each in range(number):
        assert store.backfills.start(replace(planned, schedule_id=f"s{each:02d}"))
    claimed = set[str]()
    for _ in range(200):
        token, found = store.backfills.claim(limit=BACKFILLS_A_PAGE, lease_seconds=60)
        for backfill in found:
            assert isinstance(backfill, Backfill)
            claimed.add(backfill.schedule_id)
            assert store.backfills.advance(backfill, token)
    assert len(claimed) == number


def test_a_deleted_schedule_ends_its_backfill(store: Store, made: Schedule) -> None:
    service = BackfillService(store)
    service.start(made, asking(NOON - DAY), NOON)
    store.schedules.delete("s1", NOON)
    work(store, NOON, 2)
    assert backfilled(store, State.READY_QUEUE) == []
    assert service.progress("s1").backfill.reason == "The schedule was deleted."


def test_why_tells_of_the_backfill(store: Store, made: Schedule) -> None:
    at = NOON - MINUTE
    old = event(at)
    store.events.insert([old], NOON, "made")
    change = {"$set": {"state": "expired", "archived_at": NOON}, "$unset": {"due_at": ""}}
    store.mongo.collection("events").update_one({"_id": old.id}, change)
    assert not explain_schedule(store, "s1", at, NOON)[1].fires
    BackfillService(store).start(made, asking(at, at), NOON)
    work(store, NOON, 1)
    _, told, found = explain_schedule(store, "s1", at, NOON)
    assert found is not None
    assert (found.kind, told.fires) == (Kind.BACKFILL, True)
