"""The queue of a destination: whose workers send what comes to it, wherever it waits."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.clock import clock
from scheduler_app.domain.action import CALLBACKS, Action, QueueLengths
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.event import Event
from scheduler_app.domain.ids import TENANT, WholeId
from scheduler_app.domain.message import Timing
from scheduler_app.domain.message_draft import MessageDraft
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.health.work import named_queues
from scheduler_app.store import Store
from scheduler_app.usecases.deeds.messages import MessageQuota, MessageService
from scheduler_app.usecases.duties.dispatch import Dispatch
from scheduler_app.usecases.duties.dispatch_selection import Batch
from scheduler_app.worker import Pipeline
from tests.builders import event, schedule
from tests.documents import event_document
from tests.executors import executors
from tests.processes import PATIENCE_SECONDS

SECOND = timedelta(seconds=1)
ORIGIN = "destination billing"


class Broker:
    """Keeps what is published."""

    unavailable: tuple[type[Exception], ...] = ()

    def __init__(self) -> None:
        self.batches: list[Batch] = []

    def publish(self, batches: Sequence[Batch]) -> None:
        self.batches += batches

    def queue_lengths(self, queue: str = CALLBACKS) -> QueueLengths:
        return QueueLengths()

    @property
    def queues(self) -> dict[str, str]:
        """The queue of each event, by the event's id."""
        return {event_id: batch.queue for batch in self.batches for event_id in batch.ids}


def put(store: Store, queue: str | None) -> None:
    now = clock.now()
    made = Destination(
        id=WholeId("billing"),
        url="http://127.0.0.1:9/",
        queue=queue,
        created_at=now,
        updated_at=now,
        version=1,
    )
    if not store.destinations.insert(made):
        assert store.destinations.update(made, version=1)


def due(store: Store, schedule_id: str, now: datetime, **fields: Any) -> str:
    """An event of a schedule that names the destination."""
    owner = schedule(now - 10 * SECOND, schedule_id, url=NOT_GIVEN, destination="billing", **fields)
    store.schedules.insert(owner)
    made = event(now, schedule_id, origin=ORIGIN, queue=fields.get("queue", CALLBACKS))
    store.events.insert([made], now, "made")
    return made.id


def service(store: Store, dispatch: Dispatch) -> MessageService:
    def allow(action: Action) -> None:
        """Every address may be called."""

    def dispatched(events: Sequence[Event], now: datetime) -> None:
        dispatch.dispatch_these(events, now)

    return MessageService(store, dispatched, 3, allow, lambda: "", MessageQuota(store, 0))


def test_events_move_to_the_queue_of_their_destination_and_are_dispatched_there_at_once(store: Store) -> None:
    put(store, "eu")
    now, broker = clock.now(), Broker()
    moved, own = due(store, "s1", now), due(store, "s2", now, queue="us")
    assert Dispatch(store, broker, horizon_seconds=5).dispatch_page(now).dispatched == 2
    assert broker.queues == {moved: "eu", own: "us"}


@pytest.mark.parametrize(("queue", "expected"), [("us", "us"), (None, CALLBACKS)])
def test_a_change_of_the_queue_reaches_what_waits(store: Store, queue: str | None, expected: str) -> None:
    put(store, "eu")
    now, broker = clock.now(), Broker()
    moved = due(store, "s1", now)
    assert store.outbox.move({"eu": [moved]}, now) == 1
    put(store, queue)
    dispatch = Dispatch(store, broker, horizon_seconds=5)
    while not dispatch.dispatch_page(now).dispatched:
        continue
    assert broker.queues == {moved: expected}


@pytest.mark.parametrize(("queue", "expected"), [("us", "us"), (None, CALLBACKS)])
def test_a_worker_that_does_not_serve_the_new_queue_gives_the_event_on(
    store: Store, queue: str | None, expected: str
) -> None:
    put(store, "eu")
    now = clock.now()
    moved = due(store, "s1", now)
    store.outbox.move({"eu": [moved]}, now)
    put(store, queue)
    deliver(store, moved, "eu")
    row = event_document(store, moved)
    assert (row["state"], row["queue"], row["routed"]) == ("ready_queue", expected, queue is not None)
    assert row["queue_by_destination"] is (queue is not None)
    assert row["attempt"] == 0
    assert f"its destination billing is now for the queue {expected}" in row["status"][-1]["message"]


def test_an_event_that_is_given_on_before_it_is_due_stays_due_then(store: Store) -> None:
    put(store, "eu")
    instant = clock.now().replace(microsecond=0) + 2 * SECOND
    moved = due(store, "s1", instant)
    store.outbox.move({"eu": [moved]}, instant)
    put(store, "us")
    deliver(store, moved, "eu")
    assert event_document(store, moved)["due_at"] >= instant


def test_a_worker_that_serves_both_sends_it(store: Store) -> None:
    put(store, "us")
    now = clock.now()
    moved = due(store, "s1", now)
    store.outbox.move({"eu": [moved]}, now)
    deliver(store, moved, "eu", "us")
    assert event_document(store, moved)["attempt"] == 1


def deliver(store: Store, event_id: str, *queues: str) -> None:
    pipeline = Pipeline(
        store,
        executors(),
        now=clock.now,
        worker="w1",
        horizon_seconds=5,
        max_events=100,
        queues=queues,
    )
    pipeline.start()
    try:
        assert pipeline.delivery.deliver([event_id]) == 1
        assert pipeline.wait_until_empty(PATIENCE_SECONDS)
    finally:
        pipeline.stop()


def test_messages_are_made_in_the_queue_of_their_destination(store: Store) -> None:
    put(store, "eu")
    now, broker = clock.now(), Broker()
    messages = service(store, Dispatch(store, broker, horizon_seconds=5))
    common = ScheduleDraft(destination="billing")
    drafts = [
        MessageDraft(id="m1", draft=common),
        MessageDraft(id="m2", draft=common),
        MessageDraft(id="m3", draft=ScheduleDraft(destination="billing", queue="us")),
        MessageDraft(id="m4", draft=ScheduleDraft(url="http://127.0.0.1:9/")),
    ]
    messages.schedule_many(TENANT, drafts, now)
    assert broker.queues == {"msg_m1": "eu", "msg_m2": "eu", "msg_m3": "us", "msg_m4": CALLBACKS}


def test_the_queue_of_a_destination_is_no_part_of_what_a_message_asks_for(store: Store) -> None:
    put(store, "eu")
    now = clock.now()
    messages = service(store, Dispatch(store, Broker(), horizon_seconds=5))
    asked = MessageDraft(
        id="m1", draft=ScheduleDraft(destination="billing"), timing=Timing(now + timedelta(days=1))
    )
    first = messages.schedule(TENANT, asked, now)
    put(store, "us")
    again = messages.schedule(TENANT, asked, now)
    assert (first.created, again.created) == (True, False)


def test_a_message_that_is_rescheduled_is_dispatched_in_the_queue_that_it_is_in(store: Store) -> None:
    put(store, "eu")
    now, broker = clock.now(), Broker()
    messages = service(store, Dispatch(store, broker, horizon_seconds=5))
    asked = MessageDraft(
        id="m1", draft=ScheduleDraft(destination="billing"), timing=Timing(now + timedelta(days=1))
    )
    messages.schedule(TENANT, asked, now)
    messages.reschedule("msg_m1", Timing(now), now)
    assert broker.queues == {"msg_m1": "eu"}


def test_the_queue_of_a_destination_is_known_before_any_event_is_in_it(store: Store) -> None:
    assert named_queues(store) == []
    put(store, "eu")
    assert named_queues(store) == ["eu"]
    put(store, None)
    assert named_queues(store) == []
