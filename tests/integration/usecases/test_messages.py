"""Messages from their creation to their record, and races about them."""

import random
import threading
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.clock import clock
from scheduler_app.domain.action import Action
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.errors import Conflict
from scheduler_app.domain.event import Event
from scheduler_app.domain.http_action import BodyKind, RequestBody
from scheduler_app.domain.ids import TENANT, WholeId
from scheduler_app.domain.message import Timing
from scheduler_app.domain.message_draft import MessageDraft
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.domain.states import FINAL, State
from scheduler_app.store import Store
from scheduler_app.usecases.deeds.messages import MessageQuota, MessageService
from scheduler_app.worker import Pipeline
from tests.acceptance.journal import Journal
from tests.builders import LONGEST_SECONDS
from tests.documents import event_document
from tests.integration.actions.receiver import says
from tests.processes import PATIENCE_SECONDS, wait_until

SECOND = timedelta(seconds=1)
CLIENTS = 3
SECRET = f"whsec_{b64encode(b's' * 32).decode()}"


@pytest.fixture
def journal() -> Iterator[Journal]:
    made = Journal()
    yield made
    made.close()


def service(store: Store, dispatched: list[str] | None = None, most: int = 0) -> MessageService:
    def dispatch(events: Sequence[Event], now: datetime) -> None:
        if dispatched is not None:
            dispatched.extend(event.id for event in events)

    def allow(action: Action) -> None:
        """Every address may be called."""

    return MessageService(store, dispatch, 3, allow, lambda: SECRET, MessageQuota(store, most))


def draft(url: str, message_id: str | None = None, **fields: Any) -> MessageDraft:
    own = {name: fields.pop(name) for name in ("event_name", "metadata", "timing") if name in fields}
    asked = ScheduleDraft(url=url, **{"timeout_seconds": LONGEST_SECONDS} | fields)
    return MessageDraft(id=message_id, draft=asked, **own)


def state(store: Store, event_id: str) -> str:
    return str(event_document(store, event_id)["state"])


def deliver(pipeline: Pipeline, *ids: str) -> None:
    pipeline.delivery.deliver(ids)
    assert pipeline.wait_until_empty(PATIENCE_SECONDS)


def test_a_message_arrives_as_it_was_asked_for(store: Store, pipeline: Pipeline, journal: Journal) -> None:
    asked = draft(
        journal.url("/a?q=1"),
        "m1",
        event_name="orders.reminder",
        headers=(("X-Own", "own"),),
        metadata=(("trace", "t1"),),
        body=RequestBody.from_json({"order": 4711}),
        signing=True,
    )
    made = service(store).schedule(TENANT, asked, clock.now(), hops=2)
    assert made.created
    assert made.signing_secret
    deliver(pipeline, made.record.event.id)
    (call,) = journal.calls["/a?q=1"]
    headers = call.seen.headers
    assert (call.seen.method, call.seen.body) == ("POST", b'{"order":4711}')
    assert headers["x-scheduler-event-name"] == "orders.reminder"
    assert headers["x-scheduler-metadata-trace"] == "t1"
    assert headers["x-own"] == "own"
    assert headers["idempotency-key"] == headers["webhook-id"] == "msg_m1"
    assert headers["webhook-signature"].startswith("v1,")
    assert headers["x-scheduler-hops"] == "3"
    assert headers["content-type"] == "application/json"
    assert "x-scheduler-schedule-id" not in headers
    assert state(store, "msg_m1") == "completed"


@pytest.mark.parametrize(
    "body", [RequestBody(BodyKind.TEXT, b"plain"), RequestBody(BodyKind.BASE64, b"\xff\x00")]
)
def test_a_body_arrives_byte_for_byte(
    store: Store, pipeline: Pipeline, journal: Journal, body: RequestBody
) -> None:
    service(store).schedule(TENANT, draft(journal.url("/a"), "m1", body=body), clock.now())
    deliver(pipeline, "msg_m1")
    assert journal.calls["/a"][0].seen.body == body.data


def test_a_failed_message_is_tried_again_by_its_own_policy(
    store: Store, pipeline: Pipeline, journal: Journal
) -> None:
    url = journal.script("/a", says("503 Down"), says("202 Taken"))
    asked = draft(url, "m1", max_retries=1, backoff_seconds=0.1, backoff_max_seconds=0.1)
    service(store).schedule(TENANT, asked, clock.now())
    deliver(pipeline, "msg_m1")
    assert state(store, "msg_m1") == "retrying"
    wait_until(lambda: event_document(store, "msg_m1")["due_at"] <= clock.now(), "the retry to be due")
    deliver(pipeline, "msg_m1")
    assert state(store, "msg_m1") == "completed"
    assert [call.seen.headers["x-scheduler-attempt"] for call in journal.calls["/a"]] == ["1", "2"]


def test_a_message_that_cannot_be_read_ends_alone(store: Store, pipeline: Pipeline, journal: Journal) -> None:
    ids = [f"msg_m{number}" for number in range(3)]
    for each in ids:
        service(store).schedule(TENANT, draft(journal.url("/a"), each[4:]), clock.now())
    store.mongo.collection("events").update_one({"_id": ids[1]}, {"$set": {"action.method": "BREW"}})
    deliver(pipeline, *ids)
    assert [state(store, each) for each in ids] == ["completed", "error", "completed"]
    assert "action.method" in event_document(store, ids[1])["status"][-1]["message"]


def test_a_message_comes_back_when_its_worker_is_lost(
    store: Store, pipeline: Pipeline, journal: Journal
) -> None:
    now = clock.now()
    service(store).schedule(TENANT, draft(journal.url("/a"), "m1"), now)
    _, won = store.claims.claim(["msg_m1"], until=now, now=now, lease_seconds=-60, worker="lost")
    assert [each.id for each in won] == ["msg_m1"]
    assert store.recoveries.recover_workers(now, delay_seconds=-1, limit=9) == (["msg_m1"], [])
    deliver(pipeline, "msg_m1")
    assert state(store, "msg_m1") == "completed"


def test_a_request_that_is_executed_again_after_a_crash_makes_nothing_twice(store: Store) -> None:
    messages, now = service(store), clock.now()
    asked = draft("http://127.0.0.1:9/", timing=Timing(delay_seconds=3600))
    for _ in range(2):
        again = messages.schedule(TENANT, asked, now, request_seed="seed-1")
        assert messages.schedule_many(TENANT, [asked] * 3, now, request_seed="seed-2")
        now += SECOND
    assert not again.created
    assert store.mongo.collection("events").count_documents({}) == 4


def test_what_is_made_or_moved_is_dispatched_at_once(store: Store) -> None:
    dispatched: list[str] = []
    messages, now = service(store, dispatched), clock.now()
    later = Timing(delay_seconds=3600)
    messages.schedule(TENANT, draft("http://127.0.0.1:9/", "m1", timing=later), now)
    messages.schedule_many(TENANT, [draft("http://127.0.0.1:9/", "m2", timing=later)], now)
    messages.schedule_many(TENANT, [draft("http://127.0.0.1:9/", "m2", timing=later)], now)
    messages.reschedule("msg_m2", Timing(), now)
    assert dispatched == ["msg_m1", "msg_m2", "msg_m2"]


def test_tenants_have_ids_of_their_own(store: Store) -> None:
    messages, now = service(store), clock.now()
    for tenant in (TENANT, "acme"):
        made = messages.schedule(tenant, draft("http://127.0.0.1:9/", "m1"), now)
        assert made.created
        assert made.record.event.tenant == tenant
    assert messages.cancel("acme:msg_m1", now).event.id == "acme:msg_m1"
    assert messages.get("msg_m1").event.state is State.READY_QUEUE


class Race:
    """Three clients cancel and move messages while a worker delivers them."""

    def __init__(self, store: Store, pipeline: Pipeline) -> None:
        self.store, self.pipeline, self.messages = store, pipeline, service(store)
        self.said: list[tuple[str, str]] = []
        """What a client was told about a message: it is cancelled, was moved, or it was too late."""
        self.ended = threading.Event()

    def client(self, ids: Sequence[str], seed: int) -> None:
        choice = random.Random(seed)
        for each in choice.sample(list(ids), len(ids)):
            now = clock.now()
            try:
                if choice.random() < 0.5:
                    self.messages.cancel(f"msg_{each}", now)
                    self.said.append((each, "cancelled"))
                else:
                    timing = Timing(delay_seconds=choice.randrange(0, 500) / 1000)
                    self.messages.reschedule(f"msg_{each}", timing, now)
                    self.said.append((each, "moved"))
            except Conflict:
                self.said.append((each, "too late"))

    def dispatch(self) -> None:
        """What beats do, without a broker in between."""
        while not self.ended.is_set():
            now = clock.now()
            due = self.store.outbox.due(now + SECOND / 10, limit=100)
            if due:
                token, taken = self.store.outbox.take(due, now + SECOND / 10, now, lease_seconds=600)
                self.pipeline.delivery.deliver([each.id for each in taken])
                self.store.outbox.sent(token)


@pytest.mark.parametrize("count", [200, pytest.param(1_000, marks=pytest.mark.long)])
def test_each_message_is_sent_once_or_cancelled_and_says_which(
    store: Store, pipeline: Pipeline, journal: Journal, count: int
) -> None:
    now, choice = clock.now(), random.Random(0)
    ids = [f"m{number}" for number in range(count)]
    asked = [
        draft(journal.url("/a"), each, timing=Timing(delay_seconds=choice.randrange(0, 3 * count) / 1000))
        for each in ids
    ]
    race = Race(store, pipeline)
    assert len(race.messages.schedule_many(TENANT, asked, now)) == count
    clients = [threading.Thread(target=race.client, args=(ids, seed)) for seed in range(CLIENTS)]
    dispatcher = threading.Thread(target=race.dispatch)
    # First those who move and cancel: what is dispatched meanwhile is too late for them.
    for thread in (*clients, dispatcher):
        thread.start()
    for thread in clients:
        thread.join()
    events = store.mongo.collection("events")
    final = {"state": {"$in": sorted(FINAL)}}
    try:
        wait_until(lambda: events.count_documents(final) == count, "every message to end")
    finally:
        race.ended.set()
        dispatcher.join()
    assert pipeline.wait_until_empty(PATIENCE_SECONDS)
    sent = Counter(call.key.removeprefix("msg_") for call in journal.calls["/a"])
    ended = {row["_id"].removeprefix("msg_"): row["state"] for row in events.find({}, {"state": 1})}
    assert Counter(ended.values()).keys() == {"completed", "cancelled"}, "both ends came about"
    assert sent == {each: 1 for each, state in ended.items() if state == "completed"}
    assert {each for each, told in race.said if told == "cancelled"} == {
        each for each, state in ended.items() if state == "cancelled"
    }
    assert {told for _, told in race.said} == {"cancelled", "moved", "too late"}


def test_a_message_is_delivered_as_its_destination_says(
    store: Store, pipeline: Pipeline, journal: Journal
) -> None:
    now = clock.now()
    store.destinations.insert(
        Destination(
            id=WholeId("billing"),
            url=journal.url("/base"),
            headers=(("X-Of", "destination"),),
            max_retries=0,
            created_at=now,
            updated_at=now,
        )
    )
    asked = MessageDraft(id="m1", draft=ScheduleDraft(destination="billing", path="/orders"))
    service(store).schedule(TENANT, asked, now)
    deliver(pipeline, "msg_m1")
    (call,) = journal.calls["/base/orders"]
    assert (call.seen.method, call.seen.headers["x-of"]) == ("POST", "destination")
    assert state(store, "msg_m1") == "completed"
