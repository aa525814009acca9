"""Queues that schedules name: each has its own messages, room, recovery and workers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from redis import Redis

from scheduler_app.broker.app import make_app
from scheduler_app.broker.publisher import CeleryPublisher
from scheduler_app.broker.redis.backend import key_prefix
from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.domain.action import CALLBACKS, COMMANDS, Lane, QueueLengths
from scheduler_app.domain.command_action import CommandAction
from scheduler_app.domain.states import State
from scheduler_app.health.check import Status
from scheduler_app.health.work import check_queues
from scheduler_app.store import Store
from scheduler_app.store.events.outbox import MOST_QUEUES
from scheduler_app.store.recoveries import GRACE_SECONDS
from scheduler_app.usecases.duties import dispatch, dispatch_selection
from scheduler_app.usecases.duties.dispatch import Dispatch
from scheduler_app.usecases.duties.dispatch_selection import EVENTS_A_BATCH, LANE_MESSAGES, Batch
from scheduler_app.usecases.duties.expansion import Expansion
from scheduler_app.usecases.duties.housekeeping import Recovery
from scheduler_app.worker import Pipeline
from tests.builders import event, schedule
from tests.executors import executors
from tests.processes import PATIENCE_SECONDS
from tests.unit.health.test_fleet import node

SECOND = timedelta(seconds=1)


class Unserved:
    """A broker whose named queues nobody fetches from; CALLBACKS is always empty."""

    unavailable: tuple[type[Exception], ...] = ()

    def __init__(self) -> None:
        self.batches: list[Batch] = []

    def publish(self, batches: Sequence[Batch]) -> None:
        self.batches += batches

    def queue_lengths(self, queue: str = CALLBACKS) -> QueueLengths:
        if queue == CALLBACKS:
            return QueueLengths()
        count = Counter(batch.lane for batch in self.batches if batch.queue == queue)
        return QueueLengths(*(count[lane] for lane in Lane))


def test_each_queue_gets_the_messages_of_its_own_events(
    store: Store, settings: Settings, redis_url: str, now: datetime
) -> None:
    store.events.insert(
        [event(now, "a"), event(now, "b", queue="eu"), event(now, "c", queue="slow")], now, "made"
    )
    dispatching = Dispatch(store, CeleryPublisher(make_app(settings)), horizon_seconds=5)
    assert dispatching.dispatch_page(now).dispatched == 3
    with Redis.from_url(redis_url) as client:
        prefix = key_prefix(settings.mongo_database)
        found = {name: len(client.keys(f"{prefix}{name}*")) for name in (CALLBACKS, "eu", "slow")}
    assert found == {CALLBACKS: 1, "eu": 1, "slow": 1}
    assert CeleryPublisher(make_app(settings)).queue_lengths("eu").total == 1


def test_a_queue_that_nobody_serves_fills_its_own_room_and_holds_up_no_other(
    store: Store, now: datetime
) -> None:
    broker = Unserved()
    many = (LANE_MESSAGES[Lane.FRESH] + 5) * EVENTS_A_BATCH
    store.events.insert([event(now, f"eu{number}", queue="eu") for number in range(many)], now, "made")
    store.events.insert([event(now, "other")], now, "made")
    dispatching = Dispatch(store, broker, horizon_seconds=5)
    while dispatching.dispatch_page(now).full:
        pass
    lengths = broker.queue_lengths("eu")
    assert lengths.fresh <= LANE_MESSAGES[Lane.FRESH] + 5
    assert any(event(now, "other").id in batch.ids for batch in broker.batches)
    assert store.events.living_by_state()["ready_queue"] > 0, "the rest waits in MongoDB"


def test_a_page_whose_time_is_over_leaves_the_other_queues_to_the_next_one(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = [event(now, name, queue=name) for name in ("eu", "us")]
    store.events.insert([event(now, "plain"), *named], now, "made")
    broker = Unserved()
    dispatching = Dispatch(store, broker, horizon_seconds=5)
    monkeypatch.setattr(dispatch, "SELECTION_SECONDS", -1.0)
    page = dispatching.dispatch_page(now)
    assert (page.dispatched, page.full) == (1, True)
    monkeypatch.setattr(dispatch, "SELECTION_SECONDS", PATIENCE_SECONDS)
    page = dispatching.dispatch_page(now)
    assert (page.dispatched, page.full) == (2, False)


def test_the_room_of_many_queues_is_not_remembered_for_ever(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "MOST_ESTIMATES", 2)
    # What is known grows no older.
    monkeypatch.setattr(dispatch_selection, "ASK_AGAIN_SECONDS", PATIENCE_SECONDS)
    asked: list[str] = []

    class Counted(Unserved):
        def queue_lengths(self, queue: str = CALLBACKS) -> QueueLengths:
            asked.append(queue)
            return super().queue_lengths(queue)

    dispatching = Dispatch(store, Counted(), horizon_seconds=5)
    for queue in ("a", "b", "a", "c", "c", "a"):
        made = event(now, f"{queue}{len(asked)}{queue}", queue=queue)
        store.events.insert([made], now, "made")
        dispatching.dispatch_these([made], now)
    # A third one made it forget both.
    assert asked == ["a", "b", "c", "a"]


def test_only_a_worker_that_serves_the_queue_claims(store: Store, now: datetime) -> None:
    plain, routed = event(now, "plain"), event(now, "routed", queue="eu")
    store.events.insert([plain, routed], now, "made")
    ids = [plain.id, routed.id]
    for queues, expected in ((("us",), set()), ((CALLBACKS,), {plain.id}), (("us", "eu"), {routed.id})):
        _, won = store.claims.claim(ids, until=now, now=now, lease_seconds=600, worker="w", queues=queues)
        assert {each.id for each in won} == expected


def test_lost_messages_are_recovered_queue_by_queue(store: Store, now: datetime) -> None:
    dispatching = Dispatch(store, Unserved(), horizon_seconds=5)
    made = [event(now, "plain"), event(now, "routed", queue="eu")]
    store.events.insert(made, now, "made")
    assert dispatching.dispatch_page(now).dispatched == 2
    later, recovery = now + timedelta(seconds=GRACE_SECONDS + 1), Recovery(store)
    assert recovery.named_queues() == ["eu"]
    assert recovery.recover_messages(later, queue=QueueLengths(fresh=99, late=99), name="eu").messages == 0
    assert recovery.recover_messages(later, queue=QueueLengths(), name="eu").messages == 1
    assert recovery.recover_messages(later, queue=QueueLengths()).messages == 1


def test_named_queues_take_turns_where_there_are_many(store: Store, now: datetime) -> None:
    names = [f"q{number:03}" for number in range(MOST_QUEUES + 6)]
    store.events.insert([event(now, name, queue=name) for name in names], now, "made")
    first = store.outbox.named_queues()
    assert first == names[:MOST_QUEUES]
    assert store.outbox.named_queues(after=first[-1])[:7] == [*names[MOST_QUEUES:], names[0]]
    assert store.outbox.named_queues(after="zzz", limit=2) == names[:2]


def test_each_named_queue_is_looked_for_once_where_the_search_begins_among_them(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.events.insert([event(now, name, queue=name) for name in ("a", "b", "c")], now, "made")
    looks, find_one = list[Any](), store.outbox._events.find_one

    def look(*asked: Any, **options: Any) -> Any:
        looks.append(asked)
        return find_one(*asked, **options)

    monkeypatch.setattr(store.outbox, "_events", SimpleNamespace(find_one=look))
    assert store.outbox.named_queues(after="b") == ["c", "a", "b"]
    # Each queue, the end of the index, and the first one that is known.
    assert len(looks) == 3 + 2


def test_events_are_made_in_the_queue_of_their_schedule(store: Store, now: datetime) -> None:
    made = replace(schedule(now - SECOND, "s1"), queue="eu")
    store.schedules.insert(made)
    found = store.schedules.get("s1")
    assert getattr(found, "queue", None) == "eu"
    (first, *_) = [
        each for _ in range(2) for each in Expansion(store, timeframe_seconds=5).expand_page(now).events
    ]
    row = store.mongo.collection("events").find_one({"_id": first.id})
    assert row is not None
    assert (row["queue"], row["routed"]) == ("eu", True)


def test_an_event_follows_its_schedule_to_the_workers_that_can_do_it(store: Store) -> None:
    now = clock.now()
    moved = replace(schedule(now - 10 * SECOND, "s1"), action=CommandAction(("true",)), queue=COMMANDS)
    store.schedules.insert(moved)
    due = event(now, "s1")
    store.events.insert([due], now, "made")
    pipeline = Pipeline(store, executors(), now=clock.now, worker="w1", horizon_seconds=5, max_events=100)
    pipeline.start()
    try:
        assert pipeline.delivery.deliver([due.id]) == 1
        assert pipeline.wait_until_empty(PATIENCE_SECONDS)
    finally:
        pipeline.stop()
    row = store.mongo.collection("events").find_one({"_id": due.id})
    assert row is not None
    assert (row["state"], row["queue"], row["routed"]) == (State.READY_QUEUE, COMMANDS, True)


def test_an_event_in_no_queue_that_could_be_one_is_set_aside(store: Store, now: datetime) -> None:
    bent = event(now, "bent", queue="eu")
    store.events.insert([bent], now, "made")
    store.mongo.collection("events").update_one({"_id": bent.id}, {"$set": {"queue": "no queue!"}})
    assert store.outbox.named_queues() == []
    shown = store.events.get(bent.id)
    assert shown is not None
    assert "queue" in (shown.corrupt or {})


@pytest.mark.parametrize(
    ("queues", "named", "alone"),
    [
        ((CALLBACKS,), [], []),
        ((CALLBACKS,), ["eu"], ["eu"]),
        ((CALLBACKS, "eu"), ["eu"], []),
        (("eu",), ["eu"], [CALLBACKS]),
    ],
)
def test_a_queue_that_nobody_serves_is_named(
    queues: tuple[str, ...], named: list[str], alone: list[str]
) -> None:
    found = check_queues([node("worker", queues=queues)], named)
    assert found.facts["unserved"] == alone
    assert found.status is (Status.NOTE if alone else Status.OK)
    assert all(each in found.found for each in alone)
