"""Every query that the store issues is explained, over many events: none walks a collection or sorts."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from pymongo import monitoring

from scheduler_app.config import Settings
from scheduler_app.domain.event import FINAL, LIVING, State
from scheduler_app.store import Events, Nodes, Schedules, Store
from scheduler_app.store.event_lists import EventLists
from scheduler_app.store.idempotency import Idempotency
from scheduler_app.store.listing import Position, Window
from scheduler_app.store.outcomes import Outcomes, Record
from scheduler_app.store.schedules import Advance
from tests.builders import event, schedule

EVENTS = 200_000
SECOND = timedelta(seconds=1)
Command = dict[str, Any]


class Listener(monitoring.CommandListener):
    """Keeps the commands that have a query to plan."""

    def __init__(self) -> None:
        self.commands: list[Command] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if event.command_name in ("find", "update", "delete", "aggregate", "count"):
            self.commands.append(dict(event.command))

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None: ...

    def failed(self, event: monitoring.CommandFailedEvent) -> None: ...


class Called:
    """Passes calls on and remembers their names."""

    def __init__(self, target: object) -> None:
        self._target = target
        self.names: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.names.add(name)
        return getattr(self._target, name)


@pytest.fixture(scope="module")
def listener() -> Listener:
    made = Listener()
    monitoring.register(made)
    return made


@pytest.fixture
def full(settings: Settings, listener: Listener, now: datetime) -> Iterator[Store]:
    """A store whose connection is listened to, with many finished events and some of every other kind."""
    store = Store(settings)
    store.prepare()
    documents = [
        {
            "_id": f"old-{number}",
            "tenant": "default",
            "schedule_id": f"s{number % 100}",
            "run_time": now - number * SECOND,
            "archived_at": now,
            "state": "error" if number % 50 == 0 else "completed",
        }
        for number in range(EVENTS)
    ]
    store.mongo.collection("events").insert_many(documents, ordered=False)
    store.events.insert([event(now + i * SECOND, f"s{i % 100}") for i in range(5_000)], now, "made")
    for number in range(500):
        store.schedules.insert(schedule(now, f"s{number}", tags=("a",)))
    listener.commands.clear()
    yield store
    store.close()


def test_every_verb_s_query_has_an_index(full: Store, listener: Listener, now: datetime) -> None:
    events, schedules, nodes = Called(full.events), Called(full.schedules), Called(full.nodes)
    lists, idempotency = Called(full.event_lists), Called(full.idempotency)
    outcomes = Called(full.outcomes)
    _use_events(events, outcomes, now)
    _use_schedules(schedules, now)
    _use_lists(lists, now)
    _use_idempotency(idempotency)
    nodes.report("worker")
    assert nodes.alive()
    nodes.leave()
    assert _public(Events) == events.names
    assert _public(Schedules) == schedules.names
    assert _public(Outcomes) == outcomes.names
    assert _public(Nodes) == nodes.names
    assert _public(EventLists) == lists.names
    assert _public(Idempotency) == idempotency.names
    assert len(listener.commands) > 30
    for command in listener.commands:
        for single in _planned(command):
            stages = set(_stages(full.mongo.db.command("explain", single, verbosity="queryPlanner")))
            assert not stages & {"COLLSCAN", "SORT"}, f"{stages} for {single}"
            assert stages & {"IXSCAN", "IDHACK", "COUNT_SCAN", "EXPRESS_IXSCAN", "EOF"}, (
                f"{stages} for {single}"
            )


def _use_events(events: Any, outcomes: Any, now: datetime) -> None:
    due = now + 20 * SECOND
    token, taken = events.take_for_dispatch(due, limit=10, lease_seconds=2)
    ids = [each.id for each in taken]
    events.take_for_dispatch(due, limit=10, lease_seconds=2, ids=ids)
    events.mark_dispatched(ids, token, now)
    events.insert([event(now)], now, "again")
    claimed, won = events.claim(ids, until=due, now=now, lease_seconds=5, worker="w")
    events.extend(ids, claimed, 10)
    events.give_back(ids[:2], claimed, now, "back")
    events.void(ids[2:3], claimed, now, "void")
    records = [Record(each.id, claimed, State.COMPLETED, "", None, {"number": 1}, now) for each in won[3:9]]
    assert outcomes.record(records) == []
    outcomes.record_late(records[:1])
    events.cancel_past_cut("s1", 2, now, now, "cut")
    events.look_past_cut("s1", 2, now)
    events.cancel_all("s2", now, "deleted")
    events.cancel("old-1", now, "cancelled")
    events.redrive(["old-1", "old-2"], now, "redriven")
    events.recover_messages(now + 3600 * SECOND, grace_seconds=10, limit=10)
    events.recover_workers(now, delay_seconds=2, limit=10)
    events.get("x")
    events.any_of_schedule("s1")
    events.living_by_state()
    events.oldest_due()


def _use_schedules(schedules: Any, now: datetime) -> None:
    made = schedule(now, schedules.new_id())
    schedules.insert(made)
    schedules.insert_many([made])
    schedules.update(made, version=1)
    schedules.revise(made.revise(now), version=1)
    token, won = schedules.claim_for_expansion(now + 60 * SECOND, limit=10, lease_seconds=30)
    schedules.claim_these(["s400"], lease_seconds=30)
    schedules.advance([Advance(won[0].id, now, None, None)], token)
    schedules.release([won[1].id], token)
    schedules.set_aside(won[2].id, token, "bent", now)
    schedules.finish_ended(now)
    schedules.with_older_zone_data("2999z", limit=10)
    schedules.keep_with_zone_data(made, "2026a")
    schedules.delete("s450", now)
    schedules.deleted_before(now + SECOND, limit=10)
    schedules.remove("s450")
    schedules.get("s1")
    schedules.exists("s1")
    schedules.for_delivery(["s1", "s2"])
    for filters in ({}, {"state": "active"}, {"name": "test"}, {"tag": "a"}):
        schedules.page(Window(limit=10), tenant="default", **filters)
        schedules.page(Window(limit=10, skip=10), tenant="default", **filters)
        schedules.page(Window(limit=10, after=Position(now, "s3")), tenant="default", **filters)


def _use_lists(lists: Any, now: datetime) -> None:
    after = Position(now - 500 * SECOND, "old-500")
    for schedule_id in (None, "s1"):
        for states in (None, LIVING, FINAL, {State.ERROR}, {State.CANCELLED}):
            for window in (
                Window(limit=10),
                Window(limit=10, skip=10),
                Window(limit=10, after=after),
                Window(limit=10, after=after, since=now - 3600 * SECOND, until=now),
            ):
                lists.page(window, tenant="default", schedule_id=schedule_id, states=states)


def _use_idempotency(idempotency: Any) -> None:
    begun = idempotency.begin("me", "k", "digest")
    idempotency.begin("me", "k", "digest")
    idempotency.finish(begun, 200, {}, b"")
    idempotency.give_up(begun)


def _public(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


def _planned(command: Command) -> list[Command]:
    """The command as `explain` takes it: without the session, and one by one where it is several."""
    kept = {
        key: value
        for key, value in command.items()
        if key
        not in ("lsid", "txnNumber", "$db", "$clusterTime", "$readPreference", "writeConcern", "readConcern")
    }
    for several in ("updates", "deletes"):
        if several in kept:
            return [{**kept, several: [single]} for single in kept[several]]
    return [kept]


def _stages(plan: Any) -> Iterator[str]:
    if isinstance(plan, dict):
        for key, value in plan.items():
            if key == "stage":
                yield value
            # What the planner weighed and dropped does not count.
            if key != "rejectedPlans":
                yield from _stages(value)
    elif isinstance(plan, list):
        for each in plan:
            yield from _stages(each)
