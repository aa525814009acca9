"""One look tells beats which of their duties have something to do."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from pymongo.errors import AutoReconnect, OperationFailure

from scheduler_app.beat import duties
from scheduler_app.beat.duties import WaitingWorkView
from scheduler_app.domain.audit import Change
from scheduler_app.domain.ids import TENANT, WholeId
from scheduler_app.domain.kill_switch import Scope, Target
from scheduler_app.domain.schedule import Pause, ScheduleState
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.waiting_work import Work
from scheduler_app.usecases.duties.audit import AuditDuty
from scheduler_app.usecases.duties.pauses import Resumption
from scheduler_app.usecases.stops import HeldEvents
from tests.builders import event, schedule

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
Plant = Callable[[Store, datetime], None]


def finished(store: Store, now: datetime) -> None:
    store.schedules.insert(schedule(now, rrule="DTSTART:20000101T000000Z\nRRULE:FREQ=DAILY"))
    store.mongo.collection("schedules").update_one({}, {"$set": {"finishes_at": now}})


def behind(store: Store, now: datetime) -> None:
    store.schedules.insert(schedule(now - MINUTE / 2))


def paused(store: Store, now: datetime) -> None:
    active = schedule(now - MINUTE)
    store.schedules.insert(active.revise(now - MINUTE, state=ScheduleState.PAUSED, pause=Pause(until=now)))


def held(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    key = Target(TENANT, Scope.ALL).key
    assert store.holding.hold([made.id], key, now, now, "held") == 1


def owing(store: Store, now: datetime) -> None:
    store.events.insert([event(now)], now, "made")
    store.mongo.collection("events").update_one(
        {}, {"$set": {"notify": {"since": now, "when": "on_failure"}, "state": State.ERROR.value}}
    )


def routed(store: Store, now: datetime) -> None:
    store.events.insert([event(now, queue="eu")], now, "made")


def awaited(store: Store, now: datetime) -> None:
    store.events.insert([event(now)], now, "made")
    store.mongo.collection("events").update_one(
        {}, {"$set": {"completion": {"awaiting": True}, "state": State.RUNNING.value}}
    )


def owed(store: Store, now: datetime) -> None:
    store.schedules.insert(schedule(now))
    store.mongo.collection("schedules").update_one({}, {"$set": {"owed": [{"next_run_at": now}]}})


def backfilled(store: Store, now: datetime) -> None:
    store.mongo.collection("backfills").insert_one({"_id": "b1", "active": True})


def redriven(store: Store, now: datetime) -> None:
    store.mongo.collection("redrives").insert_one({"_id": "r1", "active": True})


def deleted(store: Store, now: datetime) -> None:
    store.mongo.collection("deletions").insert_one({"_id": "d1", "active": True})


def silent(store: Store, now: datetime) -> None:
    store.mongo.collection("heartbeats").insert_one({"_id": "h1", "look_at": now - MINUTE / 2})


def in_state(store: Store, due_at: datetime, state: State, number: int = 1) -> None:
    """Events of that state, whose lease is over where they have one."""
    store.events.insert([event(due_at, f"s{each}") for each in range(number)], due_at, "made")
    change = {"state": state.value, "lease_until": due_at, "owner": "token"}
    store.mongo.collection("events").update_many({}, {"$set": change})


def lease_over(store: Store, now: datetime) -> None:
    in_state(store, now - MINUTE / 2, State.RUNNING)


def unclaimed(store: Store, now: datetime) -> None:
    in_state(store, now - MINUTE / 2, State.WORKER_QUEUE)


def unsent(store: Store, now: datetime) -> None:
    store.mongo.collection("outbox").insert_one({"_id": "token", "ids": ["e1"], "until": now - MINUTE})


def failing(store: Store, now: datetime) -> None:
    store.mongo.collection("causes").insert_one({"_id": "c1", "key": "k1", "kind": "failing", "living": True})


def noted(store: Store, now: datetime) -> None:
    store.audit.note(Change("edited", "schedule", WholeId("s1")))


def created(store: Store, now: datetime) -> None:
    store.mongo.collection("schedules").insert_one({"_id": "s1", "unlogged": [{"_id": "l1"}]})


def chain(store: Store, now: datetime) -> None:
    """Does what there is to do for the audit: whatever makes a schedule brings a line."""
    AuditDuty(store, 400).move_page(now)
    AuditDuty(store, 400).chain_page(now)


def other_days(store: Store, now: datetime) -> None:
    store.mongo.collection("calendars").insert_one({"_id": "c1", "changed_at": now})


PLANTS: dict[Work, Plant] = {
    Work.CALENDARS: other_days,
    Work.AUDIT: noted,
    Work.OWED_LINES: created,
    Work.EXPAND: behind,
    Work.FINISH: finished,
    Work.RESUME: paused,
    Work.HELD: held,
    Work.NOTIFY: owing,
    Work.ROUTED: routed,
    Work.OWED: owed,
    Work.BACKFILL: backfilled,
    Work.REDRIVE: redriven,
    Work.DELETIONS: deleted,
    Work.HEARTBEATS: silent,
    Work.TIME_OUT: awaited,
    Work.LEASE_OVER: lease_over,
    Work.UNCLAIMED: unclaimed,
    Work.UNSENT: unsent,
    Work.CAUSES: failing,
}
#: Work that has a time, before which there is nothing to do.
TIMED = (
    Work.EXPAND,
    Work.FINISH,
    Work.RESUME,
    Work.TIME_OUT,
    Work.LEASE_OVER,
    Work.UNCLAIMED,
    Work.HEARTBEATS,
)


def test_every_kind_has_a_case_here() -> None:
    assert set(PLANTS) == set(Work)


@pytest.mark.parametrize("kind", Work)
def test_each_kind_of_work_is_seen_when_it_is_there_and_no_other(
    store: Store, now: datetime, kind: Work
) -> None:
    assert store.waiting_work.kinds(now) == set()
    PLANTS[kind](store, now)
    if kind not in (Work.AUDIT, Work.OWED_LINES):
        chain(store, now)
    assert store.waiting_work.kinds(now) == {kind}
    assert store.waiting_work.kinds(now - MINUTE) == (set() if kind in TIMED else {kind})


@pytest.mark.parametrize("state", [State.RUNNING, State.WORKER_QUEUE])
def test_what_was_due_a_moment_ago_is_not_read(store: Store, now: datetime, state: State) -> None:
    in_state(store, now - SECOND, state, 2_000)
    # Another beat's ordinary page of the outbox.
    soon = datetime.now(UTC) + MINUTE
    over = [{"_id": f"c{each}", "key": f"k{each}", "tenant": TENANT} for each in range(500)]
    stalled = [
        {"_id": f"s{each}", "key": f"s{each}", "kind": "stalled", "living": True} for each in range(500)
    ]
    store.mongo.collection("causes").insert_many([*over, *stalled])
    store.mongo.collection("outbox").insert_one({"_id": "token", "ids": [], "until": soon})
    db = store.mongo.db
    db.command("profile", 2)
    try:
        assert store.waiting_work.kinds(now) == set()
    finally:
        db.command("profile", 0)
    (look,) = db.system.profile.find({"command.aggregate": "events"})
    db.drop_collection("system.profile")
    assert look["docsExamined"] <= 1, "the page of the outbox"
    assert look["keysExamined"] < 50


def test_a_cause_that_is_over_is_seen_while_its_dead_letters_may_be_left(store: Store, now: datetime) -> None:
    store.mongo.collection("causes").insert_one({"_id": "c1", "key": "k1", "tenant": TENANT, "dead": True})
    assert store.waiting_work.kinds(now) == {Work.CAUSES}


@pytest.mark.parametrize("bent", ["text", 7, [], [{"next_run_at": "soon"}], {"next_run_at": None}])
def test_what_somebody_bent_is_seen_too(store: Store, now: datetime, bent: object) -> None:
    owed(store, now)
    store.mongo.collection("schedules").update_one({}, {"$set": {"owed": bent}})
    chain(store, now)
    assert store.waiting_work.kinds(now) == {Work.OWED}


def test_several_kinds_are_seen_together(store: Store, now: datetime) -> None:
    for plant in (paused, routed, backfilled):
        plant(store, now)
    chain(store, now)
    assert store.waiting_work.kinds(now) == {Work.RESUME, Work.ROUTED, Work.BACKFILL}


def test_work_that_was_done_is_seen_no_more(store: Store, now: datetime) -> None:
    for plant in (paused, held):
        plant(store, now)
    Resumption(store).resume_page(now)
    HeldEvents(store).release_page(now)
    chain(store, now)
    assert store.waiting_work.kinds(now) == set()


def test_one_look_serves_all_duties_of_a_tick(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[datetime] = []

    def kinds(at: datetime, **_: object) -> frozenset[Work]:
        looks.append(at)
        return frozenset({Work.HELD})

    monkeypatch.setattr(store.waiting_work, "kinds", kinds)
    view = WaitingWorkView(store, lambda at: at)
    assert [kind for kind in Work if view.has(kind, now)] == [Work.HELD]
    assert looks == [now]


def test_schedules_are_looked_for_as_far_ahead_as_they_are_expanded(store: Store, now: datetime) -> None:
    behind(store, now)
    assert not WaitingWorkView(store, lambda at: at).has(Work.EXPAND, now - MINUTE)
    assert WaitingWorkView(store, lambda at: at + MINUTE).has(Work.EXPAND, now - MINUTE)


def test_work_that_can_wait_is_asked_for_in_every_other_tick(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = 0.0
    monkeypatch.setattr(duties, "monotonic", lambda: seconds)
    view = WaitingWorkView(store, lambda at: at)

    def tick() -> set[Work]:
        nonlocal seconds
        seconds += 1.0
        return {kind for kind in Work if view.has(kind, now)}

    assert tick() == set()
    backfilled(store, now)
    held(store, now)
    chain(store, now)
    assert tick() == {Work.HELD}
    assert tick() == {Work.HELD, Work.BACKFILL}
    store.mongo.collection("backfills").delete_many({})
    HeldEvents(store).release_page(now)
    assert tick() == {Work.BACKFILL}, "what was there at the last look is looked for"
    assert tick() == set()


def test_causes_are_tended_now_and_then_also_where_none_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, known = 0.0, False
    monkeypatch.setattr(duties, "monotonic", lambda: seconds)
    wanted = duties._or_every(5.0, lambda now: known)
    assert [wanted(datetime.now(UTC)) for _ in range(2)] == [True, False]
    known = True
    assert wanted(datetime.now(UTC))
    known, seconds = False, 4.9
    assert not wanted(datetime.now(UTC))
    seconds = 5.0
    assert wanted(datetime.now(UTC))


@pytest.mark.parametrize(
    "fault", [AutoReconnect("no server"), OperationFailure("rejected", code=2)], ids=["away", "rejected"]
)
def test_each_duty_looks_for_itself_when_the_look_fails(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def kinds(at: datetime, **_: object) -> frozenset[Work]:
        raise fault

    monkeypatch.setattr(store.waiting_work, "kinds", kinds)
    view = WaitingWorkView(store, lambda at: at)
    assert all(view.has(kind, now) for kind in Work)
