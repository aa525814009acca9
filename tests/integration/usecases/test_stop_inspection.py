"""What does not go on is a cause while it lasts: schedules that are paused by failures, set aside or
finished, open breakers, kill switches."""

import secrets
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
import redis

from scheduler_app.broker.redis.flow_control import RedisLimiter
from scheduler_app.domain.cause import Cause, CauseKind
from scheduler_app.domain.cause_match import CauseMatch
from scheduler_app.domain.destination import Breaker, Destination
from scheduler_app.domain.flow_control import FinishedRequest, FlowRequest, ReceiverAnswer
from scheduler_app.domain.ids import TENANT, WholeId
from scheduler_app.domain.kill_switch import KillSwitch, Scope, Target
from scheduler_app.domain.notification_rule import Told
from scheduler_app.domain.schedule import PAUSED_BY_FAILURES, Pause, Schedule, ScheduleState
from scheduler_app.store import Store
from scheduler_app.store.causes import CauseListFilter, from_document
from scheduler_app.store.paging import PageRequest
from scheduler_app.usecases.duties import stop_inspection
from scheduler_app.usecases.duties.cause_inspection import CauseInspection
from scheduler_app.usecases.duties.expansion import Expansion
from tests.builders import notification_rule, schedule

SECOND = timedelta(seconds=1)


@pytest.fixture
def limiter(redis_url: str) -> Iterator[RedisLimiter]:
    prefix = f"test-{secrets.token_hex(6)}:"
    client = redis.Redis.from_url(redis_url)
    client.set(f"{prefix}flow:began", "1")
    with closing(RedisLimiter(client, prefix)) as made:
        yield made


class Look:
    def __init__(self, store: Store, limiter: RedisLimiter) -> None:
        self.store = store
        self.inspection = CauseInspection(store, lambda: (), lambda queues: (), limiter)

    def at(self, now: datetime, kind: CauseKind) -> list[Cause]:
        self.inspection.inspect(now)
        rows = self.store.mongo.collection("causes").find({"living": True, "kind": kind.value})
        return sorted(map(from_document, rows), key=lambda cause: cause.key.subject)


@pytest.fixture
def look(store: Store, limiter: RedisLimiter) -> Look:
    return Look(store, limiter)


def paused(store: Store, schedule_id: str, now: datetime, pause: Pause) -> Schedule:
    made = schedule(now, schedule_id, tags=("nightly",))
    stopped = replace(made.revise(now, state=ScheduleState.PAUSED), pause=pause)
    store.schedules.insert(stopped)
    return stopped


def test_a_schedule_that_its_failures_have_paused_is_told_until_it_is_resumed(
    store: Store, look: Look, now: datetime
) -> None:
    paused(store, "s1", now, Pause())
    stopped = paused(store, "s2", now, Pause(PAUSED_BY_FAILURES, "3 events in a row ended in error"))
    [cause] = look.at(now + SECOND, CauseKind.PAUSED_BY_FAILURES)
    assert (cause.key.subject, cause.since) == ("s2", stopped.revised_at)
    assert (cause.schedules.names, cause.tags.names) == (("s2",), ("nightly",))
    assert cause.error == "was paused by its failures: 3 events in a row ended in error"
    assert look.at(now + 2 * SECOND, CauseKind.PAUSED_BY_FAILURES)[0].writes == cause.writes
    resumed = replace(stopped.revise(now + 3 * SECOND, state=ScheduleState.ACTIVE), version=2)
    assert store.schedules.revise(resumed, version=1)
    assert look.at(now + 3 * SECOND, CauseKind.PAUSED_BY_FAILURES) == []


def test_a_schedule_that_is_set_aside_is_told_until_it_is_mended_and_the_status_counts_it(
    store: Store, look: Look, now: datetime
) -> None:
    made = schedule(now, "s1")
    store.schedules.insert(replace(made, state=ScheduleState.ERROR, reason="no such zone", next_run_at=None))
    [cause] = look.at(now + SECOND, CauseKind.SET_ASIDE)
    assert (cause.key.subject, cause.error) == ("s1", "makes no events any more: no such zone")
    assert store.causes.unsettled(TENANT, limit=10) == []
    assert store.schedules.revise(replace(made.revise(now + SECOND), version=2), version=1)
    assert look.at(now + 2 * SECOND, CauseKind.SET_ASIDE) == []


def test_many_that_are_paused_or_set_aside_take_turns(
    store: Store, look: Look, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop_inspection, "SCHEDULES_A_LOOK", 2)
    ids = ["acme:s1", "acme:s2", "s1", "s2", "s3"]
    for each in ids:
        paused(store, each, now, Pause(PAUSED_BY_FAILURES, "3 events in a row ended in error"))
        aside = replace(schedule(now, f"{each}-x"), state=ScheduleState.ERROR, reason="no such zone")
        store.schedules.insert(replace(aside, next_run_at=None))
    for kind in (CauseKind.PAUSED_BY_FAILURES, CauseKind.SET_ASIDE):
        found = [len(look.at(now + number * SECOND, kind)) for number in range(5)]
        assert found[-3:] == [5, 5, 5]
    gone = {"_id": {"$in": ["acme:s2", "s3", "s1-x"]}}
    store.mongo.collection("schedules").delete_many(gone)
    for _ in range(4):
        look.at(now + 9 * SECOND, CauseKind.SET_ASIDE)
    subjects = {
        kind: [each.key.subject for each in look.at(now + 9 * SECOND, kind)]
        for kind in (CauseKind.PAUSED_BY_FAILURES, CauseKind.SET_ASIDE)
    }
    assert subjects == {
        CauseKind.PAUSED_BY_FAILURES: ["acme:s1", "s1", "s2"],
        CauseKind.SET_ASIDE: ["acme:s1-x", "acme:s2-x", "s2-x", "s3-x"],
    }


def test_a_kill_switch_is_a_fact_and_no_failure(store: Store, look: Look, now: datetime) -> None:
    whole, tag = Target(TENANT, Scope.ALL), Target(TENANT, Scope.TAG, "billing")
    receiver = Target("acme", Scope.DESTINATION, "erp")
    for target in (whole, tag, receiver):
        assert store.kill_switches.insert(KillSwitch(target, now, note="by hand"))
    found = look.at(now + SECOND, CauseKind.KILL_SWITCH)
    said = {(each.key.subject, each.error, each.tags.names, each.since) for each in found}
    assert said == {
        ("all", "the kill switch of everything is on: by hand", (), now),
        ("tag/billing", "the kill switch of the tag billing is on: by hand", ("billing",), now),
        ("destination acme:erp", "the kill switch of the destination erp is on: by hand", (), now),
    }
    assert [CauseMatch(destinations=("erp",)).covers(each) for each in found].count(True) == 1
    assert store.causes.unsettled(TENANT, limit=10) == []
    assert store.causes.page(TENANT, PageRequest(limit=10), CauseListFilter()).rows == []
    for target in (whole, tag, receiver):
        store.kill_switches.delete(target)
    assert look.at(now + 2 * SECOND, CauseKind.KILL_SWITCH) == []


def destination(store: Store, now: datetime, name: str = "d1") -> Destination:
    made = Destination(
        id=WholeId(name), url="http://x/", created_at=now, updated_at=now, breaker=Breaker(1, 3_600.0)
    )
    assert store.destinations.insert(made)
    return made


def answer(limiter: RedisLimiter, one: Destination, how: ReceiverAnswer) -> None:
    limiter.decide([FlowRequest(one, wanted=["e1"])])
    limiter.decide([FlowRequest(one, ended=[FinishedRequest("e1", how, 500)])])


def test_a_breaker_is_told_while_it_is_open(
    store: Store, look: Look, limiter: RedisLimiter, now: datetime
) -> None:
    first, second = destination(store, now), destination(store, now, "d2")
    assert look.at(now, CauseKind.BREAKER) == []
    answer(limiter, first, ReceiverAnswer.FAILED)
    [cause] = look.at(now + SECOND, CauseKind.BREAKER)
    assert (cause.key.subject, cause.since) == ("destination d1", now + SECOND)
    answer(limiter, second, ReceiverAnswer.FAILED)
    assert len(look.at(now + 2 * SECOND, CauseKind.BREAKER)) == 2
    assert store.destinations.update(replace(first, breaker=None, version=2), version=1)
    store.destinations.delete(second.id)
    assert look.at(now + 3 * SECOND, CauseKind.BREAKER) == []


def test_many_breakers_take_turns_and_one_that_cannot_be_asked_stays_as_it_is(
    store: Store, look: Look, limiter: RedisLimiter, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop_inspection, "BREAKERS_A_LOOK", 2)
    for number in range(5):
        answer(limiter, destination(store, now, f"d{number}"), ReceiverAnswer.FAILED)
    assert [len(look.at(now + number * SECOND, CauseKind.BREAKER)) for number in range(3)] == [2, 4, 5]
    with closing(RedisLimiter(redis.Redis(port=1, socket_timeout=1), "x:")) as away:
        blind = Look(store, away)
        assert len(blind.at(now + 5 * SECOND, CauseKind.BREAKER)) == 5


def test_a_destination_that_cannot_be_read_keeps_no_breaker_from_its_turn(
    store: Store, look: Look, limiter: RedisLimiter, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop_inspection, "BREAKERS_A_LOOK", 2)
    for number in range(4):
        answer(limiter, destination(store, now, f"d{number}"), ReceiverAnswer.FAILED)
    store.mongo.collection("destinations").update_one({"_id": "d0"}, {"$set": {"breaker": 7}})
    found = [look.at(now + number * SECOND, CauseKind.BREAKER) for number in range(2)][-1]
    assert [each.key.subject for each in found] == ["destination d1", "destination d2", "destination d3"]


def finishing(store: Store, now: datetime, schedule_id: str, **fields: Any) -> None:
    made = schedule(now, schedule_id, run_at=now + SECOND, **fields)
    store.schedules.insert(replace(made, next_run_at=None, finishes_at=now + SECOND))


def test_a_schedule_that_finishes_is_told_where_a_notification_asks_for_it(
    store: Store, look: Look, now: datetime
) -> None:
    expansion = Expansion(store, timeframe_seconds=60)
    finishing(store, now, "s1", tags=("nightly",))
    assert expansion.finish_ended(now + 2 * SECOND) == 1
    store.notification_rules.put(notification_rule(now, "usual"))
    asked = notification_rule(now, "ops", on=(Told.FINISHED,), match=CauseMatch(tags=("night*",)))
    store.notification_rules.put(asked)
    finishing(store, now, "s2", tags=("nightly",))
    finishing(store, now, "s3")
    later = now + 2 * SECOND
    # A beat that dies after the note finds the schedule again.
    stop_inspection.note_finishing(store, later)
    assert expansion.finish_ended(later + SECOND) == 2
    [cause] = look.at(later + SECOND, CauseKind.FINISHED)
    assert (cause.key.subject, cause.since) == ("s2", later)
    assert cause.error == "has no occurrence any more"
    assert store.causes.unsettled(TENANT, limit=10) == []
    assert look.at(later + stop_inspection.FINISHED_KEPT, CauseKind.FINISHED) == []
    finishing(store, now, "s4", tags=("nightly",))
    assert expansion.finish_ended(later + stop_inspection.FINISHED_KEPT) == 1
    [cause] = look.at(later + stop_inspection.FINISHED_KEPT, CauseKind.FINISHED)
    assert cause.key.subject == "s4"


def test_what_finishes_elsewhere_keeps_none_from_being_told(
    store: Store, look: Look, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop_inspection, "SCHEDULES_A_LOOK", 3)
    monkeypatch.setattr(stop_inspection, "MAX_FINISHED", 2)
    for number in range(4):  # nobody asks to be told of these
        finishing(store, now, f"acme:s{number}")
    for tenant in ("", "other:"):
        name = WholeId(f"{tenant}ops")
        store.notification_rules.put(replace(notification_rule(now, "ops", on=(Told.FINISHED,)), id=name))
        for number in range(3):
            finishing(store, now, f"{tenant}s{number}")
        stop_inspection.note_finishing(store, now + 2 * SECOND)
        Expansion(store, timeframe_seconds=60).finish_ended(now + 2 * SECOND)
    found = [each.tenant for each in look.at(now + 3 * SECOND, CauseKind.FINISHED)]
    assert sorted(found) == [TENANT, TENANT, "other"]


def test_so_many_that_finish_are_told_and_no_more(
    store: Store, look: Look, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop_inspection, "MAX_FINISHED", 2)
    store.notification_rules.put(notification_rule(now, "ops", on=(Told.FINISHED,)))
    for number in range(2):
        finishing(store, now, f"s{number}")
        stop_inspection.note_finishing(store, now + 2 * SECOND)
    finishing(store, now, "s3")
    stop_inspection.note_finishing(store, now + 2 * SECOND)
    assert len(look.at(now + 3 * SECOND, CauseKind.FINISHED)) == 2
