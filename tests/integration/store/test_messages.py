"""Messages in MongoDB: one document each, made once, sealed, wiped, moved."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet

from scheduler_app.config import Settings
from scheduler_app.domain.deliverable import Signing
from scheduler_app.domain.event import Event
from scheduler_app.domain.http_action import RequestBody
from scheduler_app.domain.ids import TENANT, message_id_of
from scheduler_app.domain.message import Message, UnreadableMessage
from scheduler_app.domain.states import Kind, State
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.store.paging import PageRequest
from scheduler_app.store.resealing import MessageResealing
from tests.builders import event, message
from tests.documents import event_document

SECOND = timedelta(seconds=1)
KEY, OTHER_KEY = (Fernet.generate_key().decode() for _ in range(2))


@pytest.fixture
def with_keys(settings: Settings, store: Store) -> Iterator[Callable[[str], Store]]:
    with ExitStack() as stores:
        yield lambda keys: stores.enter_context(closing(Store(replace(settings, secrets_key=keys))))


def secret_message(due: datetime, message_id: str = "m1") -> Event:
    made = message(
        due,
        message_id,
        event_name="orders.reminder",
        url="http://127.0.0.1:9/?sig=query-secret",
        headers=(("X-Key", "header-secret"), ("Accept", "text/plain")),
        metadata=(("trace", "metadata-secret"),),
        body=RequestBody.from_json({"card": "body-secret"}),
    )
    assert isinstance(made.message, Message)
    return made._replace(message=replace(made.message, signing=Signing("whsec_secret", due)))


def claimed(store: Store, now: datetime, *events: Event) -> list[Event]:
    ids = [each.id for each in events]
    return store.claims.claim(ids, until=now, now=now, lease_seconds=600, worker="w")[1]


def test_a_message_is_stored_once_and_its_claim_brings_it_whole(store: Store, now: datetime) -> None:
    made = secret_message(now)
    record = store.messages.insert(made, now)
    assert record is not None
    assert store.messages.insert(secret_message(now), now) is None
    assert store.messages.get(made.id) == record
    assert record.event.state is State.READY_QUEUE
    assert record.event.kind is Kind.MESSAGE
    assert claimed(store, now, made) == [made]


def test_of_many_those_whose_ids_are_taken_are_refused(store: Store, now: datetime) -> None:
    store.messages.insert(message(now, "m1"), now)
    made = store.messages.insert_many([message(now, each) for each in ("m0", "m1", "m2", "m2")], now)
    assert [each is not None for each in made] == [True, False, True, False]


def test_messages_and_occurrences_are_claimed_together(store: Store, now: datetime) -> None:
    occurrence, sent = event(now), message(now)
    store.events.insert([occurrence], now, "made")
    store.messages.insert(sent, now)
    won = {each.id: each for each in claimed(store, now, occurrence, sent)}
    assert won[occurrence.id].message is None
    assert won[sent.id] == sent


def test_an_older_release_leaves_messages_alone(store: Store, now: datetime) -> None:
    made = message(now)
    store.messages.insert(made, now)
    # What releases without messages ask of each event that they read.
    assert store.mongo.collection("events").count_documents({"v": {"$not": {"$gt": 1}}}) == 0


def test_with_a_key_nothing_secret_stands_in_the_document(
    with_keys: Callable[[str], Store], now: datetime
) -> None:
    store, made = with_keys(KEY), secret_message(now)
    store.messages.insert(made, now)
    assert "secret" not in str(event_document(store, made.id)).replace("whsec_", "")
    assert claimed(store, now, made) == [made]


def test_without_the_key_a_message_is_left_to_those_who_have_it(
    with_keys: Callable[[str], Store], now: datetime
) -> None:
    made = secret_message(now)
    with_keys(KEY).messages.insert(made, now)
    (won,) = claimed(with_keys(OTHER_KEY), now, made)
    assert isinstance(won.message, UnreadableMessage)
    assert won.message.readable_elsewhere


@pytest.mark.parametrize("key", ["", KEY], ids=["plain", "sealed"])
def test_a_cancelled_message_keeps_no_secret(
    with_keys: Callable[[str], Store], now: datetime, key: str
) -> None:
    store, made = with_keys(key), secret_message(now)
    store.messages.insert(made, now)
    assert store.cancellations.cancel(made.id, now, "no")
    document = event_document(store, made.id)
    assert "secret" not in str(document)
    assert "sealed" not in document
    record = store.messages.get(made.id)
    assert record is not None
    assert isinstance(record.content, Message)
    assert record.content.wiped
    assert made.message is not None
    assert isinstance(made.message, Message)
    assert made.message.same_content(record.content)


def test_a_message_moves_until_a_worker_has_claimed_it(store: Store, now: datetime) -> None:
    made, later = message(now + SECOND), now + 9 * SECOND
    store.messages.insert(made, now)

    def move(event_id: str = made.id) -> bool:
        return store.messages.reschedule(event_id, later, later, now, "later")

    assert move()
    assert claimed(store, now + 2 * SECOND, made) == []
    (won,) = claimed(store, later, made)
    assert (won.run_time, won.due_at) == (later, later)
    assert not move()
    occurrence = event(now)
    store.events.insert([occurrence], now, "made")
    assert not move(occurrence.id), "an occurrence has its time from its schedule"


def test_a_message_that_was_dispatched_for_its_old_time_waits_for_the_new_one(
    store: Store, now: datetime
) -> None:
    made, later = message(now), now + 9 * SECOND
    store.messages.insert(made, now)
    token, taken = store.outbox.take(store.outbox.due(now, limit=9), now, now, lease_seconds=600)
    assert [each.id for each in taken] == [made.id]
    assert store.messages.reschedule(made.id, later, later, now, "later")
    assert store.outbox.put_back(token, now) == 0
    assert claimed(store, now, made) == []
    assert [each.id for each in store.outbox.due(later, limit=9)] == [made.id]


def test_lists_are_in_the_order_of_time_and_filtered(store: Store, now: datetime) -> None:
    messages = [message(now + i * SECOND, f"m{i}", event_name=f"n{i % 2}") for i in range(6)]
    store.messages.insert_many(messages, now)
    store.events.insert([event(now)], now, "made")
    store.cancellations.cancel(messages[2].id, now, "no")

    def listed(window: PageRequest | None = None, **asked: Any) -> list[str]:
        rows = store.messages.page(TENANT, window or PageRequest(limit=9), **asked).rows
        return [message_id_of(each.event.id) for each in rows]

    assert listed() == ["m0", "m1", "m2", "m3", "m4", "m5"]
    assert listed(event_name="n0") == ["m0", "m2", "m4"]
    assert listed(states={State.CANCELLED}) == ["m2"]
    assert listed(PageRequest(limit=9, since=now + 2 * SECOND, until=now + 4 * SECOND)) == ["m2", "m3"]
    first = store.messages.page(TENANT, PageRequest(limit=4))
    assert listed(PageRequest(limit=4, after=first.next)) == ["m4", "m5"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("action", 5), ("retry", None), ("success", ["no status"]), ("asked", "x"), ("lateness", 5)],
)
def test_a_message_whose_content_is_corrupt_is_shown_with_the_reason(
    store: Store, now: datetime, field: str, value: Any
) -> None:
    made = message(now)
    store.messages.insert(made, now)
    store.mongo.collection("events").update_one({"_id": made.id}, {"$set": {field: value}})
    record = store.messages.get(made.id)
    assert record is not None
    assert isinstance(record.content, UnreadableMessage)
    assert field in record.content.reason
    (won,) = claimed(store, now, made)
    assert won.message == record.content


@pytest.mark.parametrize(
    ("field", "value"), [("schedule_id", "s1"), ("kind", "scheduled"), ("run_time", "x")]
)
def test_a_message_whose_event_is_corrupt_is_set_aside_and_mended(
    store: Store, now: datetime, field: str, value: Any
) -> None:
    made, sound = message(now), message(now, "m2")
    store.messages.insert_many([made, sound], now)
    store.mongo.collection("events").update_one({"_id": made.id}, {"$set": {field: value}})
    won = claimed(store, now, made, sound)
    assert won == [sound]
    record = store.messages.get(made.id)
    assert record is not None
    assert (record.event.state, record.event.kind) == (State.ERROR, Kind.MESSAGE)
    (again,) = store.events.redrive([made.id], now, "again")
    assert again.schedule_id == ""


def test_a_redriven_message_is_claimed_with_its_content(store: Store, now: datetime) -> None:
    made = secret_message(now)
    store.messages.insert(made, now)
    token, _ = store.claims.claim([made.id], until=now, now=now, lease_seconds=600, worker="w")
    ended = OutcomeRecord(made.id, token, State.ERROR, "said", None, {"number": 1, "error": "no"}, now)
    assert store.outcomes.record([ended]) == []
    assert [each.id for each in store.events.redrive([made.id], now, "again")] == [made.id]
    (won,) = claimed(store, now, made)
    assert won.message == made.message


def test_messages_are_sealed_anew_with_the_newest_key(
    with_keys: Callable[[str], Store], now: datetime
) -> None:
    plain, old, both, new = (
        with_keys(""),
        with_keys(KEY),
        with_keys(f"{OTHER_KEY},{KEY}"),
        with_keys(OTHER_KEY),
    )
    made = [secret_message(now, f"m{number}") for number in range(5)]
    plain.messages.insert(made[0], now)
    old.messages.insert_many([*made[1:4], message(now, "acme", tenant="acme", headers=(("K", "v"),))], now)
    both.messages.insert(made[4], now)
    old.cancellations.cancel(made[3].id, now, "no")
    *_, last = MessageResealing(both.mongo, both.secret_box).run(page=2)
    assert (last.seen, last.sealed, last.unreadable) == (6, 4, ())
    *_, again = MessageResealing(both.mongo, both.secret_box).run(page=2)
    assert again.sealed == 0
    for each in made[:3]:
        record = new.messages.get(each.id)
        assert record is not None
        assert record.content == each.message
    with_third = Fernet.generate_key().decode()
    lost = MessageResealing(new.mongo, with_keys(with_third).secret_box).run()
    assert sum(len(page.unreadable) for page in lost) == 5
