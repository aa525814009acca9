"""Nobody waits behind a neighbour: what is dispatched when more waits than can be."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from pymongo import monitoring

from scheduler_app.beat.duties import Duty, dispatch_duty
from scheduler_app.beat.scheduler import Tick
from scheduler_app.broker.app import make_app
from scheduler_app.broker.publisher import CeleryPublisher
from scheduler_app.broker.task import PRIORITIES, QUEUE
from scheduler_app.config import Settings
from scheduler_app.domain.action import CALLBACKS, Lane, QueueLengths
from scheduler_app.domain.event import Event, manual
from scheduler_app.domain.states import SUSPECT_AFTER
from scheduler_app.domain.tenant import Tenant
from scheduler_app.store import Store
from scheduler_app.store.recoveries import GRACE_SECONDS
from scheduler_app.usecases.duties.dispatch import Dispatch
from scheduler_app.usecases.duties.dispatch_selection import (
    CANDIDATES,
    EVENTS_A_BATCH,
    EVENTS_A_PAGE,
    LANE_MESSAGES,
    LATE_REFILL,
    LATE_SHARE,
    Batch,
)
from scheduler_app.usecases.duties.fair_reads import ROUNDS
from scheduler_app.usecases.duties.housekeeping import NEARLY_EMPTY, Recovery
from scheduler_app.usecases.stops import HeldEvents
from tests.builders import event
from tests.integration.usecases.queued import messages
from tests.lent_clients import LentClients, StartedCommands
from tests.processes import PATIENCE_SECONDS, wait_until

SECOND = timedelta(seconds=1)
MILLISECOND = timedelta(milliseconds=1)
HOUR = timedelta(hours=1)
#: Each page looks once, by an index of its own, whether events wait in other queues.
LOOK_FOR_NAMED_QUEUES = 1
HOG, VICTIM = "http://hog.test:80", "http://victim.test:80"
#: More than one call reads, however often it reads on: what comes behind is found only if these are left out.
HIDING = (1 + ROUNDS) * CANDIDATES + 1


class Queue:
    """A queue that nobody fetches from, or, with `workers`, one that is always empty."""

    unavailable: tuple[type[Exception], ...] = ()

    def __init__(self, *, workers: bool = False) -> None:
        self._workers = workers
        self.batches: list[Batch] = []

    def publish(self, batches: Sequence[Batch]) -> None:
        self.batches += batches

    def queue_lengths(self, queue: str = CALLBACKS) -> QueueLengths:
        count = Counter(batch.lane for batch in self.batches)
        return QueueLengths() if self._workers else QueueLengths(*(count[lane] for lane in Lane))

    def ids(self, lane: Lane) -> list[str]:
        return [each for batch in self.batches if batch.lane is lane for each in batch.ids]


class Listener(StartedCommands):
    def __init__(self) -> None:
        self.commands: list[tuple[str, str]] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        names = event.command.get(event.command_name), event.command.get("collection")
        self.commands.append((event.command_name, str(names[1] or names[0])))

    def reads(self) -> int:
        return sum(command in {("find", "events"), ("getMore", "events")} for command in self.commands)


@pytest.fixture(scope="module")
def listener(lent_clients: LentClients) -> Listener:
    return lent_clients.heard_by(Listener())


@pytest.fixture
def watched(settings: Settings, listener: Listener) -> Iterator[Store]:
    with closing(Store(settings)) as store:
        store.prepare()
        yield store


@pytest.fixture
def queue() -> Queue:
    return Queue()


@pytest.fixture
def publisher(settings: Settings) -> CeleryPublisher:
    app = make_app(settings)
    return CeleryPublisher(app)


def dispatching(store: Store, publisher: Any) -> Dispatch:
    return Dispatch(store, publisher, horizon_seconds=5)


def tick_of(duty: Duty, now: datetime) -> Tick:
    return Tick([duty], now=lambda: now, stopping=lambda: False, unavailable=())


def insert(store: Store, now: datetime, events: Sequence[Event]) -> None:
    for first in range(0, len(events), 5_000):
        store.events.insert(events[first : first + 5_000], now, "made")


def of_origin(origin: str, due: Sequence[datetime], prefix: str) -> list[Event]:
    """One event for each instant, each of a schedule of its own."""
    return [event(at, f"{prefix}{number}", origin=origin) for number, at in enumerate(due)]


def first_page(queue: Queue) -> set[str]:
    """What was dispatched with the first thousand."""
    found: list[str] = []
    for batch in queue.batches:
        if len(found) < EVENTS_A_PAGE:
            found += batch.ids
    return set(found)


# What a page costs


def test_while_less_waits_than_a_page_takes_a_page_is_one_read(
    watched: Store, queue: Queue, listener: Listener, now: datetime
) -> None:
    insert(
        watched, now, of_origin(HOG, [now + SECOND] * 300, "s") + of_origin(VICTIM, [now - HOUR] * 100, "t")
    )
    listener.commands.clear()
    assert not dispatching(watched, queue).dispatch_page(now).full
    assert listener.reads() == 1 + LOOK_FOR_NAMED_QUEUES


@pytest.mark.parametrize("behind", [timedelta(0), HOUR])
def test_however_much_waits_a_page_is_a_bounded_number_of_reads(
    watched: Store, queue: Queue, listener: Listener, now: datetime, behind: timedelta
) -> None:
    insert(watched, now, of_origin(HOG, [now - behind] * (2 * CANDIDATES), "s"))
    listener.commands.clear()
    assert dispatching(watched, queue).dispatch_page(now).full
    assert listener.reads() <= 8


# Origins, and schedules within them


def test_what_one_origin_has_waiting_hides_nothing_of_others(
    store: Store, queue: Queue, now: datetime
) -> None:
    insert(store, now, of_origin(HOG, [now] * HIDING, "hog"))
    others = [
        event(now + due, f"other{due.total_seconds()}-{number}", origin=f"http://other{number % 10}.test:80")
        for due in (timedelta(0), 800 * MILLISECOND, 2_900 * MILLISECOND)
        for number in range(100)
    ]
    insert(store, now, others)
    dispatching(store, queue).dispatch_page(now)
    assert {each.id for each in others} <= first_page(queue)


def test_a_backlog_of_one_origin_hides_nothing_of_another_s(
    store: Store, queue: Queue, now: datetime
) -> None:
    insert(store, now, of_origin(HOG, [now - 2 * HOUR + n * MILLISECOND for n in range(HIDING)], "hog"))
    others = of_origin(VICTIM, [now - HOUR] * 100, "victim")
    insert(store, now, others)
    dispatching(store, queue).dispatch_page(now)
    assert {each.id for each in others} <= set(queue.ids(Lane.LATE))


@pytest.mark.parametrize("behind", [timedelta(0), HOUR], ids=["fresh", "late"])
def test_a_tenant_with_many_receivers_hides_no_other_tenant_s_event(
    store: Store, publisher: CeleryPublisher, now: datetime, behind: timedelta
) -> None:
    def of_tenant(tenant: str, count: int, at: datetime) -> list[Event]:
        return [
            event(at + n * MILLISECOND / 100, f"{tenant}:s{n}", origin=f"http://{tenant}{n % 500}.test:80")
            for n in range(count)
        ]

    for tenant in ("acme", "globex"):
        store.tenants.put(Tenant(tenant, now))
    insert(store, now, of_tenant("acme", HIDING, now - 2 * behind))
    last = now - behind + SECOND
    few = [*of_tenant("globex", 3, last), *of_origin(VICTIM, [last] * 3, "victim")]
    insert(store, now, few)
    dispatching(store, publisher).dispatch_page(now)
    first = taken_messages(publisher, EVENTS_A_PAGE // EVENTS_A_BATCH + 2)
    assert {each.id for each in few} <= {event_id for ids in first for event_id in ids}


def test_of_one_origin_s_schedules_the_busiest_hides_nothing_of_the_others(
    store: Store, queue: Queue, now: datetime
) -> None:
    busy = [event(now + n * MILLISECOND / 10, "busy", origin=HOG, revision=n) for n in range(3_000)]
    few = [event(now + 500 * MILLISECOND, f"few{number}", origin=HOG) for number in range(50)]
    insert(store, now, [*busy, *few])
    dispatching(store, queue).dispatch_page(now)
    assert {each.id for each in few} <= first_page(queue)


def test_what_is_due_in_seconds_does_not_come_before_what_is_due_now(
    store: Store, queue: Queue, now: datetime
) -> None:
    later = of_origin(VICTIM, [now + 4 * SECOND] * (CANDIDATES + 100), "later")
    at_once = [event(now + n * MILLISECOND, "dense", origin=HOG, revision=n) for n in range(500)]
    insert(store, now, [*later, *at_once])
    dispatching(store, queue).dispatch_page(now)
    assert {each.id for each in at_once} <= first_page(queue)


def test_events_of_older_releases_which_have_no_origin_share_one(
    store: Store, queue: Queue, now: datetime
) -> None:
    insert(store, now, [event(now, f"old{number}") for number in range(2 * CANDIDATES)])
    store.mongo.collection("events").update_many({}, {"$unset": {"origin": ""}})
    others = of_origin(VICTIM, [now + SECOND / 2] * 10, "new")
    insert(store, now, others)
    dispatching(store, queue).dispatch_page(now)
    assert {each.id for each in others} <= first_page(queue)


def test_everything_is_dispatched_in_the_end_each_once(store: Store, now: datetime) -> None:
    made = [
        *of_origin(HOG, [now - HOUR] * (CANDIDATES + 100), "late"),
        *of_origin(HOG, [now + SECOND] * (CANDIDATES + 100), "fresh"),
        *of_origin(VICTIM, [now, now - HOUR], "victim"),
    ]
    insert(store, now, made)
    queue = Queue(workers=True)
    tick = tick_of(dispatch_duty(dispatching(store, queue)), now)
    while tick.run():
        pass
    assert sorted(each for batch in queue.batches for each in batch.ids) == sorted(each.id for each in made)


def test_dispatch_leaves_the_other_duties_of_a_tick_their_turn(store: Store, now: datetime) -> None:
    insert(store, now, of_origin(HOG, [now] * (2 * CANDIDATES), "s"))
    queue = Queue(workers=True)
    duty = replace(dispatch_duty(dispatching(store, queue)), turn=0.0)
    assert tick_of(duty, now).run() is True
    assert 0 < len(queue.ids(Lane.FRESH)) <= CANDIDATES


def test_a_selection_that_took_its_time_is_dispatched_in_part_all_the_same(
    store: Store, queue: Queue, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler_app.usecases.duties.dispatch.SELECTION_SECONDS", 0.0)
    insert(store, now, of_origin(HOG, [now] * (EVENTS_A_PAGE + 1), "s"))
    done = dispatching(store, queue).dispatch_page(now)
    assert (done.dispatched, done.full) == (EVENTS_A_PAGE, True)


def test_an_event_that_is_due_at_a_list_of_dates_keeps_nothing_from_being_dispatched(
    store: Store, queue: Queue, now: datetime
) -> None:
    insert(store, now, [*of_origin(HOG, [now], "bent"), *of_origin(VICTIM, [now] * 10, "sound")])
    bent = store.mongo.collection("events").find_one_and_update(
        {"schedule_id": "bent0"}, {"$set": {"due_at": [now, now]}}
    )
    assert bent is not None
    dispatching(store, queue).dispatch_page(now)
    assert len(queue.ids(Lane.FRESH)) == 10
    found = store.mongo.collection("events").find_one({"_id": bent["_id"]})
    assert found is not None
    assert (found["state"], found["status"][-1]["message"]) == (
        "error",
        "Set aside: due_at is a list, not a date",
    )


def test_a_list_of_switches_that_hold_an_event_keeps_no_other_held(store: Store, now: datetime) -> None:
    insert(store, now, of_origin(VICTIM, [now, now], "e"))
    events = store.mongo.collection("events")
    events.update_one({"schedule_id": "e0"}, {"$set": {"held": ["a", "b"]}})
    events.update_one({"schedule_id": "e1"}, {"$set": {"held": "tag:x"}})
    for _ in range(2):
        HeldEvents(store).release_page(now)
    assert [
        row["schedule_id"] for row in events.find({"held": {"$exists": True}, "state": "ready_queue"})
    ] == []


# What is late beside what is fresh


def test_what_falls_due_now_comes_first_and_a_backlog_has_its_share(
    store: Store, queue: Queue, now: datetime
) -> None:
    insert(store, now, of_origin(HOG, [now - HOUR] * (2 * CANDIDATES), "late"))
    insert(store, now, of_origin(VICTIM, [now + SECOND] * 2_000, "fresh"))
    dispatch = dispatching(store, queue)
    dispatch.dispatch_page(now)
    first = Counter(each.startswith("late") for each in first_page(queue))
    assert first[True] == EVENTS_A_PAGE // LATE_SHARE
    # A call ends when its time is over, which on a slow machine is before all are out.
    wait_until(lambda: not dispatch.dispatch_page(now).dispatched, "all that there is room for")
    assert len(queue.ids(Lane.FRESH)) == 2_000


def test_where_nothing_is_fresh_a_backlog_has_all(store: Store, queue: Queue, now: datetime) -> None:
    late = of_origin(HOG, [now - HOUR + n * MILLISECOND for n in range(2_000)], "late")
    insert(store, now, late)
    dispatching(store, queue).dispatch_page(now)
    assert sorted(queue.ids(Lane.LATE)) == sorted(each.id for each in late)


# The bounds of the queue


def test_with_workers_away_each_lane_of_the_queue_is_bounded(
    store: Store, queue: Queue, now: datetime
) -> None:
    pages, parts = CANDIDATES // EVENTS_A_PAGE, 2
    # More of each than may be in the queue.
    most = {lane: LANE_MESSAGES[lane] + pages * parts for lane in (Lane.LATE, Lane.FRESH)}
    insert(store, now, of_origin(HOG, [now - HOUR] * ((most[Lane.LATE] + 1) * EVENTS_A_BATCH), "late"))
    insert(store, now, of_origin(VICTIM, [now] * ((most[Lane.FRESH] + 1) * EVENTS_A_BATCH), "fresh"))
    tick = tick_of(dispatch_duty(dispatching(store, queue)), now)
    while tick.run():
        pass
    lengths = queue.queue_lengths()
    assert LANE_MESSAGES[Lane.FRESH] <= lengths.fresh <= most[Lane.FRESH]
    assert LANE_MESSAGES[Lane.LATE] - LATE_REFILL < lengths.late <= most[Lane.LATE]


def test_a_backlog_that_fills_its_lane_keeps_nothing_from_the_fresh_one(
    store: Store, queue: Queue, now: datetime
) -> None:
    queue.publish([Batch((f"x{number}",), None, Lane.LATE) for number in range(LANE_MESSAGES[Lane.LATE])])
    insert(store, now, [*of_origin(HOG, [now - HOUR] * 100, "late"), event(now, "due", origin=VICTIM)])
    assert dispatching(store, queue).dispatch_page(now).dispatched == 1
    assert dispatching(store, queue).dispatch_page(now).full is False


def test_a_full_fresh_lane_keeps_nothing_from_the_late_one(store: Store, queue: Queue, now: datetime) -> None:
    queue.publish([Batch((f"x{number}",), None) for number in range(LANE_MESSAGES[Lane.FRESH])])
    insert(store, now, [event(now, "due"), event(now - HOUR, "late")])
    assert dispatching(store, queue).dispatch_page(now).dispatched == 1
    assert len(queue.ids(Lane.LATE)) == 1


def test_with_both_full_a_page_reads_nothing(
    watched: Store, queue: Queue, listener: Listener, now: datetime
) -> None:
    for lane in (Lane.FRESH, Lane.LATE):
        queue.publish([Batch((f"{lane}{number}",), None, lane) for number in range(LANE_MESSAGES[lane])])
    insert(watched, now, [event(now)])
    listener.commands.clear()
    page = dispatching(watched, queue).dispatch_page(now)
    assert (page.dispatched, page.full) == (0, False)
    assert listener.reads() == LOOK_FOR_NAMED_QUEUES


def test_suspects_travel_alone_and_take_no_more_than_the_late_lane_s_messages(
    store: Store, queue: Queue, now: datetime
) -> None:
    insert(store, now, [event(now, f"s{number}") for number in range(200)])
    store.mongo.collection("events").update_many({}, {"$set": {"lost_leases": SUSPECT_AFTER}})
    insert(store, now, [event(now, "sound")])
    dispatching(store, queue).dispatch_page(now)
    assert [batch.ids for batch in queue.batches if batch.lane is Lane.FRESH] == [(event(now, "sound").id,)]
    assert [len(batch.ids) for batch in queue.batches] == [1] * (1 + LANE_MESSAGES[Lane.LATE])


# What a person asks for


def test_a_trigger_overtakes_what_waits_in_the_broker(
    store: Store, publisher: CeleryPublisher, redis_url: str, now: datetime
) -> None:
    publisher.publish([Batch((f"late{number}",), None, Lane.LATE) for number in range(1_000)])
    publisher.publish([Batch(("fresh",), None, Lane.FRESH)])
    asked = manual("s1", 1, now)
    store.events.insert([asked], now, "triggered")
    assert dispatching(store, publisher).dispatch_these([asked], now, urgent=True) == 1
    assert taken(publisher, 3) == [asked.id, "fresh", "late0"]


def taken(publisher: CeleryPublisher, count: int) -> list[str]:
    """The first event of each message in the order in which a consumer is given them."""
    return [ids[0] for ids in taken_messages(publisher, count)]


def taken_messages(publisher: CeleryPublisher, count: int) -> list[list[str]]:
    """The events of each message in that order."""
    found: list[list[str]] = []
    app = publisher._app
    with app.connection_for_read() as connection, connection.channel() as channel:

        def note(body: Any, message: Any) -> None:
            found.append(body[1]["ids"])
            message.ack()

        with app.amqp.TaskConsumer(channel, callbacks=[note], accept=["json"]) as consumer:
            consumer.qos(prefetch_count=1)
            while len(found) < count:
                connection.drain_events(timeout=PATIENCE_SECONDS)
    return found[:count]


def test_a_bulk_of_what_a_person_asked_for_waits_its_turn(store: Store, queue: Queue, now: datetime) -> None:
    many = [event(now, f"s{number}") for number in range(EVENTS_A_BATCH + 1)]
    insert(store, now, many)
    assert dispatching(store, queue).dispatch_these(many, now, urgent=True) == len(many)
    assert {batch.lane for batch in queue.batches} == {Lane.FRESH}


def test_triggers_without_end_fill_no_queue(store: Store, queue: Queue, now: datetime) -> None:
    dispatch = dispatching(store, queue)
    for _ in range(LANE_MESSAGES[Lane.URGENT] + LANE_MESSAGES[Lane.FRESH] + 50):
        asked = manual("s1", 1, now)
        store.events.insert([asked], now, "triggered")
        dispatch.dispatch_these([asked], now, urgent=True)
    lengths = queue.queue_lengths()
    assert 0 < lengths.urgent <= LANE_MESSAGES[Lane.URGENT]
    assert lengths.fresh <= LANE_MESSAGES[Lane.FRESH]
    assert store.events.living_by_state()["ready_queue"] > 0, "the rest is left to beat"


# The broker keeps them apart


def test_the_lanes_are_counted_apart(publisher: CeleryPublisher, redis_url: str) -> None:
    assert publisher.queue_lengths() == QueueLengths(0, 0, 0)
    for count, lane in enumerate(Lane, 1):
        publisher.publish([Batch(("x",), None, lane)] * count)
    assert publisher.queue_lengths() == QueueLengths(1, 2, 3)
    assert publisher.queue_length() == 6
    assert [message["priority"] for message in messages(redis_url)] == [0, 3, 3, 6, 6, 6]


def test_a_message_that_is_given_back_or_restored_keeps_its_lane(
    publisher: CeleryPublisher, redis_url: str
) -> None:
    app = publisher._app
    for lane in Lane:
        publisher.publish([Batch((lane.value,), None, lane)])
    with app.connection_for_read() as connection, connection.channel() as channel:
        got = [channel.basic_get(QUEUE) for _ in Lane]
        assert [message.properties["priority"] for message in got] == sorted(PRIORITIES.values())
        assert publisher.queue_lengths().total == 0
        channel.return_all_but(set())
        assert publisher.queue_lengths() == QueueLengths(1, 1, 1)
        for _ in Lane:
            channel.basic_get(QUEUE)
    # The channel was closed with three messages unacknowledged.
    assert publisher.queue_lengths() == QueueLengths(1, 1, 1)


# Lost messages


@pytest.mark.parametrize(
    ("queue_lengths", "found"),
    [
        (QueueLengths(), {"late", "fresh", "suspect"}),
        (QueueLengths(1, NEARLY_EMPTY - 1, NEARLY_EMPTY), {"late", "fresh", "suspect"}),
        (QueueLengths(late=NEARLY_EMPTY + 1), {"fresh"}),
        (QueueLengths(fresh=NEARLY_EMPTY + 1), {"late", "suspect"}),
        (QueueLengths(urgent=NEARLY_EMPTY + 1), {"late", "suspect"}),
        (QueueLengths(fresh=NEARLY_EMPTY + 1, late=NEARLY_EMPTY + 1), set()),
    ],
)
def test_lost_messages_are_looked_for_in_each_lane_that_is_nearly_empty(
    store: Store, now: datetime, queue_lengths: QueueLengths, found: set[str]
) -> None:
    insert(store, now, [event(now - HOUR, "late"), event(now, "fresh"), event(now, "suspect")])
    store.mongo.collection("events").update_one(
        {"schedule_id": "suspect"}, {"$set": {"lost_leases": SUSPECT_AFTER}}
    )
    dispatching(store, Queue()).dispatch_page(now)
    later = now + timedelta(seconds=GRACE_SECONDS + 1)
    assert Recovery(store).recover_messages(later, queue=queue_lengths).messages == len(found)
    waiting = store.mongo.collection("events").find({"state": "ready_queue"}, {"schedule_id": 1})
    assert {row["schedule_id"] for row in waiting} == found


def test_a_message_is_only_looked_for_when_its_grace_is_over(store: Store, now: datetime) -> None:
    insert(store, now, [event(now)])
    dispatching(store, Queue()).dispatch_page(now)
    soon = now + timedelta(seconds=GRACE_SECONDS - 1)
    assert Recovery(store).recover_messages(soon, queue=QueueLengths()).messages == 0
