"""Messages in MongoDB: one document each, made once, sealed, wiped, moved."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet

from scheduler_app.config import Settings
from scheduler_app.domain.action import CALLBACKS
from scheduler_app.domain.deliverable import Signing
from scheduler_app.domain.event import Event
from scheduler_app.domain.http_action import RequestBody
from scheduler_app.domain.ids import TENANT, message_id_of
from scheduler_app.domain.message import Message, UnreadableMessage
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.domain.retry import Codes
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
        success=Codes((200, "300-399")),
    )
    assert isinstance(made.message, Message)
    return made._replace(hops=2, message=replace(made.message, signing=Signing("whsec_secret", due), hops=2))


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
    assert (store.messages.insert_many([], now), store.messages.get_many([])) == ([], {})
    assert [each is not None for each in made] == [True, False, True, False]


def test_its_own_queue_and_the_one_of_its_destination_are_told_apart(store: Store, now: datetime) -> None:
    ordinary, own, moved = (message(now, f"m{n}", **({"queue": "eu"} if n == 1 else {})) for n in range(3))
    made = [ordinary, own._replace(queue="eu"), moved._replace(queue="eu")]
    store.messages.insert_many([*made, message(now, "another")], now)
    found = store.messages.get_many([each.id for each in made])
    assert found.keys() == {each.id for each in made}
    assert [found[each.id].queue for each in made] == [CALLBACKS, "eu", "eu"]
    assert [found[each.id].content for each in made] == [each.message for each in made]


def test_a_message_to_another_tenant_s_destination_is_not_sent(store: Store, now: datetime) -> None:
    made = message(now, url=NOT_GIVEN, destination="billing")
    store.messages.insert(made, now)
    (sound,) = store.messages.get_many([made.id]).values()
    assert sound.content == made.message
    change = {"$set": {"action.destination": "acme:billing"}}
    store.mongo.collection("events").update_one({"_id": made.id}, change)
    (bent,) = store.messages.get_many([made.id]).values()
    assert isinstance(bent.content, UnreadableMessage)
    assert "another tenant's" in bent.content.reason


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
    store.messages.insert_many([made, message(now + SECOND, "m2")], now)

    def move(event_id: str = made.id) -> bool:
        return store.messages.reschedule(event_id, later, later, now, "later")

    assert move()
    other, moved = event_document(store, "msg_m2"), event_document(store, made.id)
    assert (other["due_at"], moved["due_since"]) == (now + SECOND, later)
    assert [len(each["status"]) for each in (other, moved)] == [1, 2]
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


def test_messages_that_are_not_dispatched_yet_are_removed_by_their_ids(store: Store, now: datetime) -> None:
    made = [message(now, f"m{number}") for number in range(5)]
    store.messages.insert_many(made, now)
    events = store.mongo.collection("events")
    events.update_one({"_id": made[1].id}, {"$set": {"state": "worker_queue"}})
    events.update_one({"_id": made[2].id}, {"$set": {"attempt": 1}})
    assert store.messages.remove_untouched([each.id for each in made[:4]]) == [made[0].id, made[3].id]
    assert sorted(row["_id"] for row in events.find()) == sorted(made[each].id for each in (1, 2, 4))


def test_messages_for_later_are_counted_up_to_a_bound(store: Store, now: datetime) -> None:
    made = [message(now + at * SECOND, f"m{at}") for at in range(5)]
    store.messages.insert_many([*made, message(now + SECOND, "m1", tenant="acme")], now)
    store.events.insert([event(now + SECOND)], now, "made")
    store.cancellations.cancel(made[4].id, now, "no")
    assert [store.messages.scheduled_for_later(TENANT, now, most=most) for most in (2, 9)] == [2, 3]


def test_unsent_messages_are_those_that_no_worker_has_claimed(store: Store, now: datetime) -> None:
    made = [message(now + at * SECOND, f"m{at}", event_name="n1") for at in range(6)]
    others = [message(now + SECOND, "o1", event_name="n2"), message(now + SECOND, "o2")]
    foreign = message(now + SECOND, "f1", event_name="n1", tenant="acme")
    store.messages.insert_many([*made, *others, foreign], now)
    store.mongo.collection("events").update_one({"_id": made[3].id}, {"$set": {"state": "running"}})

    def unsent(*tenants: str, names: tuple[str, ...] = ("n1",), limit: int = 9) -> list[str]:
        asked: dict[str, Any] = {"made_after": now, "due_by": now + 4 * SECOND, "limit": limit}
        return store.messages.unsent(tenants, names, **asked)

    mine = [made[4].id, made[2].id, made[1].id]
    assert unsent(TENANT) == mine
    assert unsent(TENANT, limit=2) == mine[:2]
    assert unsent(TENANT, "acme") == [foreign.id, *mine]
    assert unsent("none") == unsent(TENANT, names=("none",)) == []
    assert set(unsent(TENANT, names=("n1", "n2"))) == {*mine, others[0].id}


def test_lists_are_of_one_destination_and_one_tenant(store: Store, now: datetime) -> None:
    to: dict[str, Any] = {"url": NOT_GIVEN, "destination": "billing"}
    made = [
        message(now, "m0", **to, event_name="n1"),
        message(now + SECOND, "m1", **to),
        message(now + 2 * SECOND, "m2", event_name="n1"),
        message(now + 3 * SECOND, "m3", **to, event_name="n1"),
        message(now, "m4", tenant="acme"),
    ]
    store.messages.insert_many(made, now)
    store.cancellations.cancel(made[3].id, now, "no")

    def listed(**asked: Any) -> list[str]:
        rows = store.messages.page(TENANT, PageRequest(limit=9), **asked).rows
        return [message_id_of(each.event.id) for each in rows]

    billing = "billing"
    assert listed(soonest_first=False) == ["m3", "m2", "m1", "m0"]
    assert listed(destination=billing) == ["m0", "m1", "m3"]
    assert listed(destination=billing, event_name="n1") == ["m0", "m3"]
    assert listed(destination=billing, event_name="n1", states={State.CANCELLED}) == ["m3"]
    assert listed(destination="none") == listed(destination="none", event_name="n1") == []


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("action", 5, "action"),
        (
            "action",
            {"type": "command", "command": ["true"], "shell": False, "env": []},
            "command, which no message has",
        ),
        ("retry", None, "retry"),
        ("success", ["no status"], "success"),
        ("asked", "x", "asked"),
        ("lateness", 5, "lateness"),
    ],
)
def test_a_message_whose_content_is_corrupt_is_shown_with_the_reason(
    store: Store, now: datetime, field: str, value: Any, reason: str
) -> None:
    made = message(now)
    store.messages.insert(made, now)
    store.mongo.collection("events").update_one({"_id": made.id}, {"$set": {field: value}})
    record = store.messages.get(made.id)
    assert record is not None
    assert isinstance(record.content, UnreadableMessage)
    assert reason in record.content.reason
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
