"""Every query that the store issues is explained, over many events: none walks a collection or sorts."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from bson.codec_options import CodecOptions, DatetimeConversion
from pymongo import monitoring

from scheduler_app.config import Settings
from scheduler_app.domain.act import Act, Actor, ActorKind
from scheduler_app.domain.api_key import ALL_SCOPES, StoredKey
from scheduler_app.domain.audit import Change, Difference
from scheduler_app.domain.backfill import Backfill
from scheduler_app.domain.blackout import Blackout
from scheduler_app.domain.calendar_feed import CalendarFeed
from scheduler_app.domain.calendars import Calendar, NamedCalendar
from scheduler_app.domain.cause import CauseState, Tally, failing_key
from scheduler_app.domain.deletion import LEAST_DURATION, Deletion
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.event import CompletionReport, token_digest
from scheduler_app.domain.figures import FigurePart, FigureSubject
from scheduler_app.domain.forecast import EVERY_CALLBACK, Buckets, ForecastChoice
from scheduler_app.domain.heartbeat import Heartbeat, Ping, PingKind, new_heartbeat
from scheduler_app.domain.ids import TENANT, WholeId, whole_id
from scheduler_app.domain.kill_switch import KillSwitch, Scope, Target
from scheduler_app.domain.lateness import CatchUp
from scheduler_app.domain.ledger import HOUR, Account, LedgerLine, OutcomeCounts, hour_of
from scheduler_app.domain.missed import MissedRange, missed_step
from scheduler_app.domain.notification import Notifying, OwedNotification
from scheduler_app.domain.notification_rule import Telling, Told
from scheduler_app.domain.person import Person, PersonSession
from scheduler_app.domain.redrive import Redrive
from scheduler_app.domain.retry import Codes
from scheduler_app.domain.schedule import OwedRange, Pause, ScheduleState
from scheduler_app.domain.states import FINAL, LIVING, State
from scheduler_app.domain.tenant import Tenant
from scheduler_app.domain.triggers import TriggerContext, new_trigger
from scheduler_app.store import Store, paging
from scheduler_app.store.acting import acting
from scheduler_app.store.audit import AuditFilter
from scheduler_app.store.backlogs import BacklogFilter
from scheduler_app.store.causes import CauseListFilter
from scheduler_app.store.events.claims import Expiration, Postponement
from scheduler_app.store.events.completions import CompletionOutcome, ExpectedCompletion
from scheduler_app.store.events.lists import SCHEDULES_MERGED, EventListFilter
from scheduler_app.store.events.outbox import Deferral
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.store.events.overlaps import UnsentOutcome
from scheduler_app.store.events.run_counts import RunChoice
from scheduler_app.store.mongo import Document
from scheduler_app.store.paging import PageRequest, Position
from scheduler_app.store.schedules.cursors import CursorAdvance, unclaimed_active
from scheduler_app.store.schedules.last_runs import RunResult
from scheduler_app.store.tenant_exports import EXPORTED
from scheduler_app.store.waiting_work import Work
from tests.builders import event, message, notification_rule, schedule, silence
from tests.integration.store.taking import take
from tests.lent_clients import LentClients, StartedCommands

EVENTS = 200_000
SECOND = timedelta(seconds=1)
Command = dict[str, Any]
_BY_INDEX = {"IXSCAN", "DISTINCT_SCAN", "IDHACK", "COUNT_SCAN", "EXPRESS_IXSCAN", "EOF"}


class Listener(StartedCommands):
    """Keeps the commands that have a query to plan."""

    def __init__(self) -> None:
        self.commands: list[Command] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if event.command_name in ("find", "update", "delete", "aggregate", "count"):
            self.commands.append(dict(event.command))


class Called:
    """Passes calls on and remembers their names."""

    def __init__(self, target: object) -> None:
        self._target = target
        self.called_verbs: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.called_verbs.add(name)
        return getattr(self._target, name)


#: `transactions` asks mongod itself, and no collection.
_NOT_OF_DOCUMENTS = ("mongo", "secret_box", "transactions")


class Watched:
    """The store, with every door of it watched."""

    def __init__(self, store: Store) -> None:
        self.doors = {
            name: Called(door)
            for name, door in vars(store).items()
            if not name.startswith("_") and name not in _NOT_OF_DOCUMENTS
        }

    def __getattr__(self, name: str) -> Any:
        return self.doors[name]


@pytest.fixture(scope="module")
def listener(lent_clients: LentClients) -> Listener:
    return lent_clients.heard_by(Listener())


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
    store.messages.insert_many(
        [message(now + (3_600 + i) * SECOND, f"old{i}", event_name=f"n{i % 3}") for i in range(2_000)], now
    )
    for number in range(500):
        tags = ("a", "few") if number < SCHEDULES_MERGED else ("a",)
        store.schedules.insert(schedule(now, f"s{number}", tags=tags))
    listener.commands.clear()
    yield store
    store.close()


def test_every_verb_s_query_has_an_index(
    full: Store, listener: Listener, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is looked for in vain would only be looked for longer.
    monkeypatch.setattr(paging, "MAX_EXAMINED", 3_000)
    store = Watched(full)
    assert Work.FINISH not in store.waiting_work.kinds(now)
    _use_events(store, now)
    _use_cursors(store.cursors, now)
    _use_schedules(store.schedules, now)
    _use_successors(store, now)
    _use_owed(store, now)
    _use_pauses(store, now)
    _use_kill_switches(store, now)
    _use_cancel_requests(store.cancel_requests)
    assert len(store.events.last_ended("s50", after=None, until=now, limit=3)) == 3
    _use_lists(store.event_lists, now)
    _use_expanded(store.event_lists, listener, now)
    _use_figures(store.event_figures, now)
    _use_newest(store.newest_events)
    _use_messages(store.messages, now)
    _use_destinations(store.destinations, now)
    _use_idempotency(store.idempotency)
    _use_calendar_feeds(store.calendar_feeds, now)
    _use_sessions(store.sessions)
    _use_people(store, now)
    _use_quotas(store.quotas, now)
    _use_api_keys(store.api_keys, now)
    _use_tenants(store.tenants, now)
    _use_deletions(store, now)
    _use_ended_work(store.ended_work, now)
    _use_deletions_of_tags(store, full, now)
    _use_exports(store.tenant_exports)
    _use_forecasts(store.forecasts, now)
    _use_run_counting(store.run_counting, now)
    _use_search(store)
    _use_figure_counters(store.figure_counters, now)
    _use_backlogs(store.backlogs, now)
    _use_causes(store, now)
    _use_heartbeats(store, now)
    _use_notifications(store, now)
    _use_backfills(store.backfills, now)
    _use_audit(store, now)
    _use_inspections(store.inspections, now)
    _use_calendars(store, now)
    _use_missed(store, now)
    _use_history(store.history, now)
    _use_ledger(store.ledger, now)
    seen = store.partition_owners.renew("b1", lease_seconds=60)
    assert store.partition_owners.change(seen, "b1", [1], epochs=seen.epochs, lease_seconds=60)
    store.partition_owners.leave("b1")
    store.processes.report("worker")
    assert store.processes.alive()
    store.processes.leave()
    for name, door in store.doors.items():
        assert _public(type(getattr(full, name))) == door.called_verbs, f"verbs of store.{name}"
    assert len(listener.commands) > 30
    # The bounds of an index scan name dates that Python does not have.
    readable: CodecOptions[Document] = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_AUTO)
    for command in listener.commands:
        for single in _planned(command):
            plan = full.mongo.db.command("explain", single, verbosity="queryPlanner", codec_options=readable)
            stages = set(_stages(plan))
            assert not stages & {"COLLSCAN", "SORT"}, f"{stages} for {single}"
            assert stages & _BY_INDEX, f"{stages} for {single}"


def _use_events(store: Any, now: datetime) -> None:
    due = now + 20 * SECOND
    assert store.outbox.due(due, limit=10, after=now, but={"http://a.test:80", "unknown"}) == []
    assert store.outbox.due(due, limit=10, after=now, but_tenants={"default", "acme"}) == []
    assert store.outbox.due(due, limit=10, but_tenants={"acme"})
    assert store.outbox.due(due, limit=10, partitions=set(range(128)))
    assert store.outbox.due(due, limit=10, partitions=set(range(200, 257)))
    put_off = [Deferral(each.id, due, each.due_at, "no room") for each in store.outbox.due(now, limit=1)]
    assert store.outbox.put_off(put_off, due, now) == 1
    assert store.outbox.move({"callbacks": [put_off[0].id]}, due) == 1
    token, taken = take(store.outbox, due, limit=10, lease_seconds=600)
    assert store.outbox.take(taken[:1], due, now, lease_seconds=600)[1] == [], "taken already: read back"
    ids = [each.id for each in taken]
    assert store.outbox.put_back(token, now) == len(ids)
    store.outbox.put_back_abandoned(now, limit=10)
    store.outbox.sent(token)
    assert store.outbox.named_queues() == []
    store.outbox.named_queues(after="eu")
    store.events.insert([event(now)], now, "again")
    claimed, won = store.claims.claim(ids, until=due, now=now, lease_seconds=600, worker="w")
    assert store.claims.renew(ids, claimed, 10) == ids
    store.claims.renew([*ids, "gone"], claimed, 10)
    store.claims.isolate(ids[0], claimed)
    expected = ExpectedCompletion(ids[0], claimed, token_digest("shown"), 1, 60.0, None)
    assert store.completions.expect([expected]) == {ids[0]}
    awaited = store.completions.find(ids[0])
    assert store.completions.overdue(now, limit=10) == []
    assert store.completions.tell(
        awaited, CompletionOutcome(CompletionReport("failed", 1, now), State.RETRYING, "failed", due)
    )
    for scope in ("event", "attempt"):
        store.overlaps.unfinished(won[0].schedule_id, due, scope=scope, limit=100)
        store.overlaps.wake_next(won[0].schedule_id, now, scope=scope)
    store.overlaps.supersede(won[0], now)
    assert store.overlaps.superseded(["gone"]) == {}
    assert store.overlaps.end([UnsentOutcome("gone", claimed, State.SKIPPED, "skipped")], now) == 0
    store.claims.postpone([Postponement(ids[-1], claimed, due, due, "no room")], now)
    store.claims.give_back(ids[:2], claimed, now, "back")
    store.claims.claim(["gone"], until=due, now=now, lease_seconds=600, worker="w")  # all that it may ask
    store.claims.cancel_claimed(ids[2:3], claimed, now, "void")
    store.expirations.expire_claimed([Expiration(won[9].id, claimed, "late")], now)
    assert store.expirations.newest_due(won[0], now + 3600 * SECOND)
    records = [
        OutcomeRecord(each.id, claimed, State.COMPLETED, "", None, {"number": 1}, now) for each in won[3:9]
    ]
    records[0] = records[0]._replace(owed=OwedNotification(Notifying.ON_SUCCESS, now, "ops"))
    assert store.outcomes.record(records) == []
    store.outcomes.record(records[:1])  # which are written already: read back
    store.outcomes.record_late(records[:1])
    owing, _ = store.owed_notifications.oldest(limit=10)
    assert [each.event.id for each in owing] == [won[3].id]
    store.owed_notifications.remove_marks(owing)
    for outcome in (State.COMPLETED, State.ERROR):
        store.last_runs.write([RunResult("s3", now, outcome, ids[0], now)])
    store.last_runs.keep(["s3"], now)
    store.last_runs.succeeded(["s3", "s4"])
    store.last_runs.succeeding(["s3", "s4"])
    store.last_runs.newest(["s3", "s4"])
    store.last_runs.attach([schedule(now, "s3")])
    store.cancellations.cancel_past_cut("s1", 2, now, now, "cut")
    store.cancellations.cancel_these_past_cut([event(now, "s1").id], now, "cut")
    store.cancellations.look_past_cut("s1", 2, now)
    store.cancellations.cancel_all("s2", 1, now, "deleted")
    store.cancellations.cancel("old-1", now, "cancelled")
    store.events.redrive(["old-1", "old-2"], now, "redriven")
    store.events.redrive(["old-1", "old-2"], now, "redriven", due=[due, due])
    store.events.dismiss(["old-3"], now, "dismissed")
    store.recoveries.recover_messages(now + 3600 * SECOND, grace_seconds=10, limit=10)
    store.recoveries.recover_workers(now, delay_seconds=2, limit=10)
    store.events.get("x")
    store.events.any_of_schedule("s1")
    store.events.living_by_state()
    store.events.dead_letters(TENANT, most=1_000)
    store.events.oldest_due()


def _use_cursors(cursors: Any, now: datetime) -> None:
    before = now + 60 * SECOND
    ready = [each.id for each in cursors.ready_for_expansion(before, limit=10)]
    assert cursors.ready_for_expansion(before, limit=10, partitions=set(range(128)))
    assert cursors.ready_for_expansion(before, limit=10, partitions=set(range(128, 257)))
    assert cursors.ready_for_expansion(before, limit=10, since=now)
    assert not cursors.ready_for_expansion(before, limit=10, but_tenants=["acme", TENANT])
    token, won = cursors.claim_for_expansion(ready, before, lease_seconds=600)
    cursors.claim_written([schedule(now, "s400"), schedule(now, "s0")], lease_seconds=600)
    cursors.advance([CursorAdvance(won[0].id, now, None, None)], token)
    cursors.release([won[1].id], token)
    cursors.set_aside(won[2].id, token, "bent", now)
    cursors.finish_ended(now)
    cursors.claim(unclaimed_active({}), ["s401"], lease_seconds=600)
    cursors.condemn("s402", ValueError("nothing is wrong with it"))


def _use_schedules(schedules: Any, now: datetime) -> None:
    made = schedule(now, schedules.new_name())
    schedules.insert(made)
    schedules.insert_many([made])
    schedules.update(made, version=1)
    schedules.keep_revision("gone")
    schedules.revise(made.revise(now), version=1)
    schedules.delete("s450", now)
    schedules.deleted_before(now + SECOND, limit=10)
    schedules.remove("s450")
    schedules.get("s1")
    schedules.made_by("seed", "s1")
    schedules.exists("s1")
    schedules.living(["s1", "s2"])
    schedules.count_by_state(TENANT, most=1_000)
    assert schedules.count_living(TENANT, most=9) == 9
    assert schedules.count_living_of([TENANT, "zzz"], most=9) == {}
    schedules.for_delivery(["s1", "s2"])
    schedules.with_actions(["command", "celery_task"], limit=10)
    schedules.facts(["s1", "s2"])
    assert schedules.unreadable(limit=9) == {}
    for filters in (
        {},
        {"state": "active"},
        {"name": "test"},
        {"tag": "a", "name": "test", "state": "active"},
        {"last_outcome": "error"},
        {"last_outcome": "completed"},
        {"text": "Sched", "destination": "crm"},
    ):
        schedules.count(TENANT, most=1_000, **filters)
        schedules.page(TENANT, PageRequest(limit=10), order="oldest", **filters)
        for order in ("name", "next"):
            for after in (None, Position(now, "s3", "test")):
                schedules.page(TENANT, PageRequest(limit=10, after=after), order=order, **filters)
        schedules.page("default", PageRequest(limit=10), **filters)
        schedules.page("default", PageRequest(limit=10, skip=10), **filters)
        schedules.page("default", PageRequest(limit=10, after=Position(now, "s3")), **filters)


def _use_successors(store: Any, now: datetime) -> None:
    store.schedules.delete("s449", now)
    left = store.successors.predecessors(["s449", "s1"])
    assert left.keys() == {"s449"}
    made = schedule(now, "s449").succeeding(left["s449"])
    assert store.successors.replace([(made, left["s449"])], request_seeds=[None]) == [True]


def _use_owed(store: Any, now: datetime) -> None:
    # The doors' own calls are what is watched; what they work on is made beside them.
    for name in ("s401", "s402"):
        made = schedule(now, name)
        left = OwedRange(1, made.trigger, now, now + SECOND)
        assert store.schedules.revise(made.revise(now), version=1, owed=left)
    assert store.owed.waiting(limit=10, but_tenants=("default", "acme")) == []
    ids = [each.id for each in store.owed.waiting(limit=10, but_tenants=("acme",))]
    token, claimed = store.owed.claim(ids, lease_seconds=600)
    assert {each.schedule_id for each in claimed} == {"s401", "s402"}
    assert store.owed.advance("s401", token, None)
    assert store.owed.drop("s402", token, "bent", now)


def _use_pauses(store: Any, now: datetime) -> None:
    for name in ("s403", "s404"):
        made = schedule(now, name)
        paused = made.revise(now, state=ScheduleState.PAUSED, pause=Pause(until=now + SECOND))
        assert store.schedules.revise(paused, version=1)
    first, second = store.pauses.over(now + SECOND, limit=10)
    assert store.pauses.end([first.resumed_by_itself()]) == 1
    store.pauses.set_aside(second, "its rule no longer evaluates", now)


def _use_cancel_requests(requests: Any) -> None:
    requests.put("s1-1-x", "why")
    assert requests.stands("s1-1-x")
    assert requests.texts() == {"s1-1-x": "why"}
    requests.remove(["s1-1-x"])
    assert requests.texts() == {}


def _use_kill_switches(store: Any, now: datetime) -> None:
    targets = [Target(TENANT, Scope.ALL), Target(TENANT, Scope.TAG, "few")]
    targets.append(Target(TENANT, Scope.DESTINATION, "d1"))
    for target in targets:
        assert store.kill_switches.insert(KillSwitch(target, now))
        store.kill_switches.note(target, "why")
        store.kill_switches.stopped_schedules(target)
        store.kill_switches.stopped_events(target)
    assert len(store.kill_switches.of(TENANT)) == len(targets)
    assert len(store.kill_switches.everybodys().targets) == len(targets)
    assert store.kill_switches.judged_by(["s1"])["s1"] == (("a", "few"), None)
    made = event(now + 7_000 * SECOND, "s1")
    store.events.insert([made], now, "made")
    key = targets[0].key
    assert store.holding.hold([made.id], key, made.due_at, now, "held") == 1
    assert store.holding.keys() == [key]
    assert store.holding.count([key], most=10) == store.holding.release(key, now, limit=10) == 1
    for target in targets:
        assert store.kill_switches.delete(target)
    night = Blackout.of("b1", targets[0], {"cron": "0 22 * * *"}, 60 * SECOND, "skip", now, timezone="UTC")
    assert store.blackouts.put(night)
    assert len(store.blackouts.of(TENANT, now)) == len(store.blackouts.everybodys(now).all) == 1
    assert store.blackouts.corrupt(now) == store.kill_switches.corrupt() == []
    later = now + 9_000 * SECOND
    assert store.blacked_out.postpone([made.id], later, made.due_at, now, "later") == 1
    assert store.blacked_out.skip([made.id], now, later, now, "skipped") == 1
    assert store.blackouts.delete("b1")


def _use_notifications(store: Any, now: datetime) -> None:
    assert store.notification_rules.put(notification_rule(now))
    assert not store.notification_rules.put(notification_rule(now))
    assert store.notification_rules.get("ops").name == "ops"
    store.notification_rules.telling(Told.LATE)
    store.notification_rules.read({"_id": "ops"})
    assert store.notification_rules.observing(WholeId("c1")) == []
    assert len(store.notification_rules.of(TENANT)) == len(store.notification_rules.everybodys()) == 1
    assert store.silences.put(silence(now))
    [lasting] = store.silences.of(TENANT)
    [cause] = store.causes.get_many([each.id for each in store.causes.living()]).values()
    assert store.silences.lasting(now).of(cause) == lasting
    token = store.notification_rules.take_turn("ops", seconds=600)
    assert store.notification_rules.take_turn("ops", seconds=600) is None
    told = {"rule_id": "ops", "cause_id": cause.id, "message": "m"}
    changes = [Telling(**told, change=each, told_at=now) for each in ("begin", "reminder2")]
    store.tellings.insert(changes, alone=True)
    assert [each.reminders for each in store.tellings.open("ops").values()] == [2]
    assert len(store.tellings.owed("ops")) == 2
    assert store.tellings.known([each.id for each in changes]) == {each.id for each in changes}
    assert store.tellings.messages_since("ops", now - SECOND, ends=False, most=9) == (2, False)
    store.tellings.made(changes)
    assert store.tellings.owed("ops") == []
    store.tellings.close(changes[:1])
    store.tellings.forget("ops", now)
    store.notification_rules.end_turn("ops", token)
    assert store.notification_rules.reseal()[1] == {}
    assert store.silences.delete("night")
    assert store.notification_rules.delete("ops")


def _use_calendars(store: Any, now: datetime) -> None:
    made = NamedCalendar("default", "c1", Calendar.of(country="CH"), now, now, holiday_data="0000.0001")
    assert store.calendars.insert(made)
    for number in range(20):
        observing = schedule(now, f"c{number}", calendar="c1", named_calendar=made)
        store.schedules.insert(observing)
    assert store.calendars.update(made, now, version=1)
    (older,) = store.calendars.with_older_holiday_data("0000.0002", limit=10)
    assert store.calendars.renew(older, "0000.0002", now)
    (changed,) = store.calendars.changed(limit=10)
    assert store.calendars.schedules_to_recompute(changed) == store.calendars.users("c1") == 20
    ids = store.remakes.with_other_days(changed, now, limit=10)
    token, others = store.remakes.claim_with_other_days(ids, changed, now, lease_seconds=600)
    assert store.remakes.keep_with_days([others[0].id], token, changed)
    assert store.remakes.cut([others[1].revise(now)], token)
    old = store.remakes.with_older_zone_data("2999z", now, limit=10)
    token, older = store.remakes.claim_with_older_zone_data(old, "2999z", now, lease_seconds=600)
    assert not older
    store.remakes.keep_with_zone_data(["c2"], token, "2026a")
    store.calendars.note(changed, moved=0, unchanged=1)
    assert store.calendars.settle(changed)
    assert store.calendars.get("c1") is not None
    store.calendars.page("default", PageRequest(limit=10))
    store.calendars.page("default", PageRequest(limit=10, after=Position(now, "x")))
    assert store.calendars.known("c1")
    assert store.calendars.attach(others)
    assert others[0].calendar is not None
    store.calendars.attached_use(others[0].calendar, "default")
    assert store.calendars.delete("c1", now, version=None)
    assert store.calendars.deleted_before(now + SECOND, limit=10) == ["c1"]
    assert store.calendars.insert(made)
    assert store.calendars.delete("c1", now, version=None)
    store.calendars.restore("c1")
    store.calendars.remove("c1")


def _use_missed(store: Any, now: datetime) -> None:
    made = schedule(now, "s410", catch_up=CatchUp.NONE)
    start: datetime | None = now + SECOND
    # A record, one more that goes on with it, and what is left as single events.
    for back in (now + 7_200 * SECOND, now + 10_800 * SECOND, now + 10_800 * SECOND):
        assert start is not None
        of = MissedRange("s410", 1, made.recurrence(), start, made.lateness, "unknown", "callbacks")
        step = missed_step(of, back, lambda: False)
        assert step is not None
        token, _ = store.cursors.claim_written([replace(made, next_run_at=start)], lease_seconds=600)
        advance = CursorAdvance("s410", step.following, None, None)
        move = partial(store.cursors.advance_within, advance=advance, token=token)
        assert store.missed.settle(step, move, now)
        start = step.following
    assert store.missed.at("s410", now + 5 * SECOND)


def _use_newest(newest: Any) -> None:
    assert newest.states(["s1", "s2", "none-such"], frozenset(State)).keys() == {"s1", "s2"}


def _use_expanded(lists: Any, listener: Listener, now: datetime) -> None:
    assert lists.made_after(now - 60 * SECOND, ["s1", "s2"], limit=10).rows
    assert listener.commands[-1]["limit"] == 11, "one more tells that there are more"


def _use_lists(lists: Any, now: datetime) -> None:
    assert lists.dead_letter_causes(TENANT, most=1_000).rows
    lists.dead_letter_causes(TENANT, most=1_000, since=now - 60 * SECOND, until=now, tag="few")
    after = Position(now - 500 * SECOND, "old-500")
    windows = (
        PageRequest(limit=10),
        PageRequest(limit=10, skip=10),
        PageRequest(limit=10, after=after),
        PageRequest(limit=10, after=after, since=now - 3600 * SECOND, until=now),
    )
    narrowings = (EventListFilter(error="no", tag="few"), EventListFilter(status=Codes(("5xx",)), tag="a"))
    for schedule_id in (None, "s1"):
        for states in (None, LIVING, FINAL, {State.ERROR}, {State.CANCELLED}):
            which = {"schedule_id": schedule_id, "states": states}
            for window in windows:
                lists.page(TENANT, window, **which)
                lists.count_dead(TENANT, window, schedule_id=schedule_id)
            for narrowing in narrowings:
                lists.count_dead(TENANT, windows[3], schedule_id=schedule_id, narrowing=narrowing)
                for soonest_first in (False, True):
                    lists.page(TENANT, windows[3], **which, narrowing=narrowing, soonest_first=soonest_first)


def _use_figures(figures: Any, now: datetime) -> None:
    since = now - 600 * SECOND
    assert figures.newest(TENANT, since, now, most=100)
    for ids in (None, ["s1", "s2"]):
        assert figures.newest(TENANT, since, now, most=100, schedule_ids=ids)
    assert figures.of_schedule("s1", since, now, most=5)
    found = figures.last_of_each(["s1", "s2", "none"], now, most=3)
    assert [len(each) for each in found.values()] == [3, 3, 0]


def _use_api_keys(keys: Any, now: datetime) -> None:
    made = StoredKey(whole_id(TENANT, "4k2m9x0p7q1z"), "n", ALL_SCOPES, now, "0" * 64)
    assert keys.insert(made)
    assert keys.shown("4k2m9x0p7q1z") == keys.get(made.id) == made
    assert keys.of(TENANT)
    assert keys.expiring((now, ""), now, limit=5) == ([], None)
    assert keys.many([made.id]) == [made]
    assert keys.count(TENANT) == 1
    keys.used(made.id, now, "127.0.0.1", every_seconds=60)
    assert keys.renew(made, "2" * 64)
    assert keys.rotate(keys.get(made.id), "1" * 64, now, None)
    assert keys.end_overlap(keys.get(made.id))
    assert keys.delete(made.id)
    keys.delete_all(TENANT)


def _use_ended_work(ended_work: Any, now: datetime) -> None:
    for reached in (None, now - timedelta(days=2)):
        ended_work.remove_events("acme", now - timedelta(days=1), reached=reached, limit=10)
    ended_work.remove_causes("acme", now - timedelta(days=1), limit=10)
    ended_work.remove_redrives("acme", now - timedelta(days=1), limit=10)


def _use_tenants(tenants: Any, now: datetime) -> None:
    assert tenants.put(Tenant("acme", now))
    assert tenants.get("acme")
    assert tenants.all()
    assert tenants.beside_default()
    assert tenants.retentions() == {}
    assert tenants.count() == 1
    tenants.close("acme")


def _use_exports(exports: Any) -> None:
    for tenant in ("acme", TENANT):
        for collection in EXPORTED:
            lines, after = exports.page(collection, tenant, None, with_secrets=True)
            exports.page(collection, tenant, after or "m", with_secrets=True)
            assert tenant == TENANT or not lines


def _use_deletions(store: Any, now: datetime) -> None:
    for each in ("acme", "globex"):
        assert store.deletions.start(Deletion(WholeId(each), each, now, next_due_at=now))
    asked = store.deletions.at_work("tenant/acme")
    assert asked is not None
    assert store.deletions.get("acme")
    assert len(store.deletions.newest()) == 2
    token, deletion = store.deletions.claim(now, lease_seconds=60) or pytest.fail("nothing to do")
    assert store.deletions.close(deletion, token)
    assert store.deletions.remove_batch(deletion, token, now) == 0
    assert store.deletions.is_nothing_left(deletion)
    store.deletions.advance(deletion, token)
    token, deletion = store.deletions.claim(now, lease_seconds=60) or pytest.fail("nothing to do")
    assert store.deletions.finish(deletion, token, now)


def _use_deletions_of_tags(store: Any, full: Store, now: datetime) -> None:
    assert store.schedules.insert(schedule(now, "leaving-1", tags=("leaving",)))
    full.mongo.collection("schedules").update_one({"_id": "leaving-1"}, {"$unset": {"unlogged": ""}})
    asked = Deletion(WholeId("leaving"), TENANT, now, next_due_at=now, tag="leaving")
    assert store.deletions.start(asked)
    assert store.deletions.newest(TENANT) == [asked]
    assert store.deletions.has_tagged(TENANT, "leaving")
    assert store.deletions.count_tag(TENANT, "leaving", most=10).schedules == 1
    taken = [store.deletions.claim(now, lease_seconds=60) for _ in range(2)]
    token, deletion = next(each for each in taken if each is not None and each[1] == asked)
    assert store.deletions.delete_schedules(deletion, now)
    settled = now + LEAST_DURATION
    while store.deletions.remove_batch(deletion, token, settled):
        continue
    assert store.deletions.is_nothing_left(deletion)
    assert store.deletions.finish(deletion, token, settled)


def _use_sessions(sessions: Any) -> None:
    token = sessions.open("digest")
    sessions.key_of(token)
    sessions.close(token)
    sessions.close_all("digest")


def _use_people(store: Any, now: datetime) -> None:
    person = Person(WholeId("p" * 24), "ann", ALL_SCOPES, now, now)
    store.people.seen(person)
    assert store.people.of(TENANT) == [person]
    assert store.people.get(person.id) == person
    store.people.given(person.id, person.grant)
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    session = PersonSession("s", "s", person.id, "ann", person.grant, "x", now, until, "of the provider")
    sessions = store.person_sessions
    sessions.open(session, {"refresh_token": "r"})
    assert sessions.get("s") == session
    assert sessions.tokens_of("s") == {"refresh_token": "r"}
    assert sessions.begin_check(session, now, every_seconds=0)
    sessions.went_on(session, person.grant, {})
    assert sessions.let_in("secret", session, "challenge", now)
    assert sessions.take_grant("secret", now, with_challenge=True) == ("s", "challenge")
    sessions.close(replace(session, id="other"))
    assert sessions.any_of_provider(person.id, "of the provider") == session
    assert sessions.any_of_provider(None, "of the provider") == session
    assert sessions.close_of_provider("another", "of the provider") == 0
    assert sessions.close_of_provider(None, "of the provider") == 1
    assert sessions.close_all(person.id) == 0
    assert store.people.delete_all(TENANT) == [person.id]


def _use_audit(store: Any, now: datetime) -> None:
    audit, chain = store.audit, store.audit_chain
    chain.move_owed(limit=10)
    chain.move_owed(limit=10, ids=["s1"])
    assert chain.carry_edits(limit=10) == 0
    edited = Change("edited", "schedule", WholeId("s1"), Difference({"name": "a"}, {"name": "b"}), 2)
    with acting(Act(Actor(ActorKind.KEY, "ann"))):
        audit.note(edited)
        assert audit.change(edited, lambda: True)
        documents = store.doors["destinations"]._target._destinations
        audit.change_of(documents, "destination", WholeId("d9"), lambda: None)
    for window in (
        PageRequest(limit=9),
        PageRequest(limit=9, after=Position(now, "x"), since=now, until=now),
    ):
        audit.edits(window, "s1")
        audit.edits_of_schedules(window, ["s1", "s2"])
        for which in (
            AuditFilter(),
            AuditFilter("ann", "edited", "schedule", "s1"),
            AuditFilter(kind="schedule", of_installation=True),
        ):
            audit.page(TENANT, window, which)
        for by in ("ann", None):
            audit.edits_of_all(window, TENANT, by=by)
    [first, *_] = audit.edits(PageRequest(limit=9), "s1").rows
    assert audit.get(first.id, "schedule", "s1") == first
    assert chain.tenants(limit=9) == [TENANT]
    assert chain.chain(TENANT, limit=5) == 5
    assert len(chain.links(TENANT, 1, limit=4)) == 4
    assert chain.all_tenants() == [TENANT]
    chain.prune(TENANT, now, limit=9)


def _use_messages(messages: Any, now: datetime) -> None:
    made = message(now + 60 * SECOND, event_name="n1")
    assert messages.insert(made, now)
    assert messages.insert_many([made], now) == [None]
    assert messages.get(made.id)
    assert messages.get_many([made.id, "msg_gone"])
    assert messages.scheduled_for_later(TENANT, now, most=10) == 10
    assert messages.reschedule(made.id, now, now, now, "later")
    messages.remove_untouched(["msg_gone"])
    messages.unsent({TENANT}, ["n1", "n2"], made_after=now - 60 * SECOND, due_by=now, limit=9)
    after = Position(now, made.id)
    for event_name in (None, "n1"):
        for states in (None, LIVING, {State.ERROR}):
            for window in (
                PageRequest(limit=10),
                PageRequest(limit=10, after=after, since=now - SECOND, until=now + 99 * SECOND),
            ):
                for destination in (None, "billing"):
                    which = {"event_name": event_name, "destination": destination, "states": states}
                    messages.page(TENANT, window, **which)


def _use_inspections(inspections: Any, now: datetime) -> None:
    inspections.misplaced_events(limit=10)
    inspections.misplaced_schedules(limit=10)
    inspections.forgotten_events(now - 60 * SECOND, now, limit=10)
    inspections.array_fields()
    inspections.events_with_arrays(["state"], limit=10)
    ids, _ = inspections.schedules_after(None, limit=10)
    inspections.schedules_after(ids[-1], limit=10)


def _use_destinations(destinations: Any, now: datetime) -> None:
    made = Destination(id=WholeId("d1"), url="http://x/", queue="eu", created_at=now, updated_at=now)
    destinations.insert(made)
    destinations.update(replace(made, version=2), version=1)
    destinations.get("d1")
    destinations.for_delivery(["d1"])
    assert destinations.queues(limit=9) == ["eu"]
    destinations.page(TENANT, PageRequest(limit=9))
    destinations.in_use("d1")
    destinations.users("erp", limit=100)
    destinations.messages_of("d1")
    destinations.reseal()
    destinations.waiting("d1", in_flight=0)
    destinations.versions(["d1"])
    assert destinations.stoppable(limit=9) == []
    assert destinations.with_breaker(("", ""), limit=9) == ([], ("", ""))
    assert destinations.unreadable(limit=9) == {}
    assert destinations.begin_deletion("d1", version=2)
    assert destinations.give_up_deletion("d1")
    assert destinations.begin_deletion("d1")
    assert destinations.delete("d1")


def _use_calendar_feeds(feeds: Any, now: datetime) -> None:
    feed = CalendarFeed(feeds.new_id(TENANT), "x", "0" * 64, now)
    feeds.insert(feed)
    assert feeds.all(TENANT) == [feed]
    assert feeds.find(feed.id) == feed
    assert feeds.delete(feed.id)


def _use_forecasts(forecasts: Any, now: datetime) -> None:
    buckets = Buckets(now, now + 900 * SECOND, 90 * SECOND)
    for most in (100, 1):
        _, planned = forecasts.planned(TENANT, most=most)
        assert any(planned)
    chosen, more = forecasts.waiting_choice(TENANT, EVERY_CALLBACK)
    assert not more
    assert forecasts.waiting(chosen, buckets, now + SECOND, limit=10_000)
    assert forecasts.each_waiting(chosen, now, now + 90 * SECOND, now + SECOND, limit=9)
    assert forecasts.made_since(chosen, now, buckets, limit=9)
    assert forecasts.count(chosen, now, now + 90 * SECOND, most=1_000)
    for choice in (ForecastChoice("s1"), ForecastChoice(tag="few"), ForecastChoice(destination="erp")):
        forecasts.planned(TENANT, choice, most=100)
        forecasts.owners(TENANT, choice, limit=100)
        chosen, _ = forecasts.waiting_choice(TENANT, choice)
        forecasts.waiting(chosen, buckets, now + SECOND, limit=10_000)
        forecasts.each_waiting(chosen, now, now + 90 * SECOND, now + SECOND, limit=9)
        forecasts.made_since(chosen, now, buckets, limit=9)
        forecasts.count(chosen, now, now + 90 * SECOND, most=1_000)


def _use_search(store: Any) -> None:
    assert store.tags.in_order(TENANT, limit=5) == ["a", "few"]
    assert store.tags.in_order(TENANT, limit=5, prefix="f", after="a") == ["few"]
    assert store.tags.count(TENANT, "few", most=1_000) > 0
    search = store.search
    assert search.schedules_by_index(TENANT, "s7", limit=3)
    assert search.schedules_by_index(TENANT, "te", limit=3)
    for words in ("FEW", "nothing is so"):
        search.schedules(TENANT, words, limit=30, seconds=9.0)
    search.destinations(TENANT, "nothing", limit=3)
    assert search.events(TENANT, "old-1", limit=5)
    assert search.messages(TENANT, "old", limit=5)
    few = store.tags.schedules(TENANT, ["few", "a"], limit=5)
    assert search.schedules_among(TENANT, few, few[0], limit=3)
    for beginning in (few[0], f"{few[0]}-0"):
        search.events_among(TENANT, few, beginning, limit=3)


def _use_quotas(quotas: Any, now: datetime) -> None:
    assert quotas.note("schedules", "t", 1, bound_seconds=9) == quotas.look("schedules", "t")
    quotas.found("schedules", 0, 1)
    quotas.finish("schedules", "t", 1)
    assert quotas.add("day", 2, 1, now + HOUR) == (1, 1)
    assert quotas.known(["day", "schedules"]) == {"day": 1, "schedules": 2}


def _use_figure_counters(counters: Any, now: datetime) -> None:
    subject = FigureSubject(TENANT, "tag", "a")
    counters.add([(subject, HOUR, FigurePart(hour_of(now), Counter(completed=1)))])
    assert counters.read(subject, HOUR, now - HOUR, now + HOUR)
    assert counters.first(subject, HOUR, now - HOUR)


def _use_run_counting(counting: Any, now: datetime) -> None:
    buckets = Buckets(now - 900 * SECOND, now + 900 * SECOND, 90 * SECOND)
    for ids, most in ((None, 1_000), (["s1"], 1_000), ([f"s{i}" for i in range(60)], 1_000), ([], 1_000)):
        choice = RunChoice(TENANT, ids, None if ids is None else "erp")
        found = counting.read(choice, buckets, now, most=most)
        assert counting.exceeds(choice, buckets, most=0) is bool(found.counts)
        assert bool(found.counts) is (ids != [])
    counting.name(["s1", "s2"], buckets, now)


def _use_backfills(backfills: Any, now: datetime) -> None:
    made = Backfill(
        schedule_id="s1",
        number="1",
        since=now - 9 * SECOND,
        until=now,
        rest=OwedRange(1, schedule(now).trigger, now, now),
        schedule_created_at=now,
        rate_per_second=1,
        next_due_at=now,
        started_at=now,
    )
    assert backfills.start(made)
    backfills.running(TENANT, most=9)
    backfills.get("s1")
    token, found = backfills.claim(limit=9, lease_seconds=600)
    assert found
    backfills.waiting(made, most=9)
    backfills.overdue(made, now, most=9)
    backfills.ended(made, State.COMPLETED, most=9)
    backfills.there("s1", now - 99 * SECOND, now + 99 * SECOND, "1", limit=9)
    backfills.sweep(made, now, "over")
    assert backfills.advance(made, token)
    backfills.set_aside("s1", token, "over", now)
    backfills.cancel("s1", now)
    backfills.remove("s1")


def _use_backlogs(backlogs: Any, now: datetime) -> None:
    backlogs.owed(TENANT, now, limit=1_000)
    backlogs.policies(["s1"])
    backlogs.finished_since(TENANT, now, most=100)
    for which in (
        BacklogFilter(now),
        BacklogFilter(now, schedule_id="s1"),
        BacklogFilter(now, receiver="http://x:80"),
    ):
        backlogs.count(TENANT, which, most=1_000)
        ids = backlogs.page(TENANT, which, limit=10)
        backlogs.expire(ids, which, now, "late")


def _use_heartbeats(store: Any, now: datetime) -> None:
    for number in range(20):
        trigger = new_trigger({"every_seconds": 60}, TriggerContext(now))
        own_id = WholeId(f"h{number}")
        made = Heartbeat(id=own_id, trigger=trigger, secret_sha256="x", created_at=now, since=now)
        assert store.heartbeats.insert(new_heartbeat(made, now))
    later = now + 9_000 * SECOND
    found = store.heartbeats.due(later, limit=10)
    assert store.heartbeats.settle(found[0].judged(later))
    assert store.heartbeats.ping(
        found[1].pinged(Ping(later, PingKind.SUCCESS)), Ping(later, PingKind.SUCCESS), "x"
    )
    assert store.heartbeats.edit(found[2].edited(replace(found[2], note="x"), now), 1)
    assert store.heartbeats.rotate(found[3].id, "y")
    assert store.heartbeats.get(found[3].id)
    store.heartbeats.replace_corrupt(found[3])
    assert store.heartbeats.count(TENANT) == len(store.heartbeats.of(TENANT)) == 20
    assert store.heartbeats.observing("c1") == []
    assert store.causes.end(found[0].cause_key, now)
    assert store.heartbeats.delete(found[0].id)


def _use_causes(store: Any, now: datetime) -> None:
    tally = Tally(failing_key("s1-1-x", "http://x:80", 500, None), now, now)
    [made] = store.causes.touch([tally])
    store.causes.touch([tally])
    assert store.causes.change(made.id, lambda cause: cause.with_dead_letters())
    assert len(store.causes.write(store.causes.living())) == 1
    store.causes.answered({made.id: now + SECOND})
    assert store.causes.unanswered() == {}
    assert store.causes.unsettled(TENANT, limit=10)
    assert store.causes.count_open(TENANT, most=10) == 1
    assert store.causes.without_dead_letters(["none"], limit=10)
    assert store.causes.failing_after("", limit=10) is not None
    assert store.causes.newest([made.key.id])
    assert store.causes.get(made.id)
    for which in (CauseListFilter(), CauseListFilter(frozenset(CauseState), "t", "http://x:80")):
        store.causes.page(TENANT, PageRequest(limit=10), which)
    marks = store.cause_marks
    marks.keys()
    marks.count(made.key.id, most=10)
    marks.counts([made.key.id], most=10)
    marks.counts([made.key.id], most=10, among={made.key.id: ["s1"]})
    unmarked = marks.unmarked(limit=10)
    marks.mark(unmarked)
    marks.marked(made.key.id, limit=10)
    asked = Redrive(id=WholeId("r1"), cause=None, before=now, next_due_at=now, started_at=now)
    assert store.redrives.start(asked)
    assert store.redrives.running(TENANT, most=10) == 1
    claim, [redrive] = store.redrives.claim(now, limit=10, lease_seconds=60)
    assert store.redrives.advance(redrive, claim)
    assert store.redrives.stop("r1", now)
    assert store.redrives.get("r1")
    assert store.events.records(["old-1"])
    page = partial(store.event_lists.page, TENANT, PageRequest(limit=10), states={State.ERROR})
    page(narrowing=EventListFilter(cause=made.key.id))
    looks = store.cause_inspections
    looks.overdue(now, limit=10)
    looks.queued("eu", limit=10)
    looks.far_ahead(now, limit=10)
    looks.finished_with_calendar(limit=10)
    looks.late_after(["s1"])
    looks.paused_by_failures(("", ""), limit=10)
    looks.in_error(("", ""), limit=10)
    looks.ending(now, {"default"}, limit=10)
    expectations = store.expectations
    assert expectations.after(("", ""), limit=10) == ([], ("", ""))
    expectations.expecting(["s1"])
    expectations.unfinished("s3", now)
    expectations.last_success("s3", now)


def _use_idempotency(idempotency: Any) -> None:
    begun = idempotency.begin(TENANT, "me", "k", "digest")
    idempotency.begin(TENANT, "me", "k", "digest")
    idempotency.release(begun)
    idempotency.finish(begun, 200, {}, b"")
    idempotency.give_up(begun)


def _public(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


_OF_THE_SESSION = {
    *("lsid", "txnNumber", "startTransaction", "autocommit"),
    *("$db", "$clusterTime", "$readPreference", "writeConcern", "readConcern"),
}


def _use_history(history: Any, now: datetime) -> None:
    hour = hour_of(now)
    assert history.schedules("s1", limit=3)
    assert history.tagged(TENANT, "few", limit=3)
    assert history.ended_revisions(["s1", "s2"], now, now + HOUR) == {}
    assert history.calendar("gone", 1) is None
    assert history.events(["s1", "s2"], hour)
    assert history.missed(["s1", "s2"], hour) is not None
    assert history.tenants() == [TENANT]
    assert list(history.counts(TENANT, hour))


def _use_ledger(ledger: Any, now: datetime) -> None:
    hour = hour_of(now)
    line = LedgerLine(TENANT, 1, hour, 1, now, Account(OutcomeCounts(owed=1, open=1))).sealed()
    assert ledger.append(line)
    assert ledger.last(TENANT) == ledger.of_hour(TENANT, hour) == line
    assert ledger.newest_hour(TENANT) == hour
    assert ledger.lines(TENANT, hour, now + HOUR, limit=3) == ([line], False)
    assert ledger.chain(TENANT, 0, limit=3) == [line]
    assert ledger.unsettled(hour, limit=3) == [(TENANT, hour)]
    ledger.settle(TENANT, hour, 1)
    assert ledger.tenants() == [TENANT]


def _planned(command: Command) -> list[Command]:
    """The command as `explain` takes it: without the session, and one by one where it is several."""
    kept = {key: value for key, value in command.items() if key not in _OF_THE_SESSION}
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
