"""Who is told that beats and workers are gone, where they themselves cannot say it."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from scheduler_app import watch
from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.domain.cause import Cause, CauseKey, CauseKind, found
from scheduler_app.domain.deliverable import Signing
from scheduler_app.domain.http_action import destination_key
from scheduler_app.domain.notice_action import ChannelKind
from scheduler_app.domain.notification_rule import MESSAGE_TYPES, NotificationChannel
from scheduler_app.domain.retry import RetryPolicy
from scheduler_app.store import Store
from scheduler_app.usecases.duties.notifications import Notifications
from scheduler_app.usecases.duties.stand_in import AT_ONCE, UNSENT_SECONDS, StandIn
from scheduler_app.usecases.notices import Notices
from scheduler_app.watch import ping_of, stand_in_of
from scheduler_app.worker import Pipeline
from tests.acceptance.journal import Journal
from tests.builders import notification_rule
from tests.integration.actions.receiver import Seen, says
from tests.processes import PATIENCE_SECONDS, wait_until

SECOND = timedelta(seconds=1)
SETTINGS = Settings(callback_allowed_networks="127.0.0.0/8")


@pytest.fixture
def journal() -> Iterator[Journal]:
    with closing(Journal()) as made:
        yield made


@pytest.fixture
def stand_in(store: Store) -> StandIn:
    return stand_in_of(SETTINGS, store, "witness@here")


def rule(store: Store, journal: Journal, **fields: Any) -> None:
    channel = NotificationChannel(ChannelKind.WEBHOOK, journal.url("/alerts"))
    signing = Signing("whsec_" + "A" * 32, clock.now())
    store.notification_rules.put(
        notification_rule(clock.now(), to=(channel,), signing=signing, after_seconds=0.0, **fields)
    )


def beat(store: Store) -> None:
    """A beat that ticks, and a worker, as they report. They count as alive for an hour, however long this
    machine takes for a test."""
    alive_at = clock.now() + timedelta(hours=1)
    for role in ("beat", "worker"):
        store.mongo.collection("nodes").update_one(
            {"_id": f"{role}-1"},
            [
                {
                    "$set": {
                        "role": role,
                        "name": role,
                        "host": "here",
                        "pid": 1,
                        "seen_at": alive_at,
                        "last_tick_at": alive_at,
                        "consuming": True,
                        "queues": ["callbacks"],
                    }
                }
            ],
            upsert=True,
        )


def told(journal: Journal) -> list[tuple[str, str]]:
    bodies = [json.loads(call.seen.body) for call in journal.calls.get("/alerts", [])]
    return [(each["type"], each["data"]["failure"]["subject"]) for each in bodies]


def machinery(store: Store) -> list[Cause]:
    return store.causes.living(kinds=[CauseKind.MACHINERY])


def test_that_beats_and_workers_are_gone_is_told_once_and_once_that_they_are_back(
    store: Store, journal: Journal, stand_in: StandIn
) -> None:
    rule(store, journal)
    for _ in range(4):
        stand_in.look(clock.now())
    assert sorted(told(journal)) == [("failure.began", "beat"), ("failure.began", "worker")]
    (first, *_) = journal.calls["/alerts"]
    assert first.seen.headers["webhook-signature"]
    beat(store)
    # The beat that is back ends the failure and tells of it; the witness may do the same at this moment.
    beats = [stand_in_of(SETTINGS, store, f"beat{number}") for number in range(2)]
    for each in beats:
        each.inspection.inspect(clock.now())
        each.inspection.inspect(clock.now())
    assert machinery(store) == []
    for each in (*beats, stand_in):
        each.telling.tell_page(clock.now())
    for _ in range(2):
        stand_in.look(clock.now() + UNSENT_SECONDS * SECOND)
    assert sorted(told(journal))[2:] == [("failure.over", "beat"), ("failure.over", "worker")]


def test_what_only_beats_can_see_is_left_as_it_is(store: Store, journal: Journal, stand_in: StandIn) -> None:
    """Whether a breaker is closed again is known by the broker, which the witness does not ask."""
    rule(store, journal)
    now = clock.now()
    key = CauseKey("default", CauseKind.BREAKER, destination_key("erp"))
    store.causes.touch([found(key, now, now, "the breaker is open")])
    for _ in range(3):
        stand_in.look(clock.now())
    assert [each.key for each in store.causes.living(kinds=[CauseKind.BREAKER])] == [key]
    assert len(machinery(store)) == 2


def test_while_beats_and_workers_work_it_does_nothing(
    store: Store, journal: Journal, stand_in: StandIn
) -> None:
    rule(store, journal)
    beat(store)
    sender = Notifications(store, lambda made, now: None, max_retries=3)
    made = Notices(store, sender.send, RetryPolicy(), "").test(
        store.notification_rules.everybodys()[0], "token", clock.now()
    )
    assert stand_in.look(clock.now()) == 0
    assert store.causes.living() == []
    # Nobody has sent it: the workers are busy, or the broker is away.
    late = clock.now() + (UNSENT_SECONDS + 1) * SECOND
    assert stand_in.look(late) == len(made) == 1
    assert len(journal.calls["/alerts"]) == 1
    assert stand_in.look(late) == 0
    assert len(journal.calls["/alerts"]) == 1


def test_what_a_worker_has_claimed_is_left_to_it(store: Store, journal: Journal, stand_in: StandIn) -> None:
    rule(store, journal)
    beat(store)
    sender = Notifications(store, lambda made, now: None, max_retries=3)
    now = clock.now()
    made = Notices(store, sender.send, RetryPolicy(), "").test(
        store.notification_rules.everybodys()[0], "token", now
    )
    store.claims.claim(made, until=now, now=now, lease_seconds=60, worker="w1")
    late = now + 60 * SECOND
    assert stand_in.look(late) == 0
    stand_in.deliver(made)
    assert "/alerts" not in journal.calls


def test_what_has_begun_is_not_broken_off_and_sent_again(
    store: Store, journal: Journal, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, over = threading.Event(), threading.Event()

    def slowly(seen: Seen, connection: socket.socket) -> bool:
        begun.set()
        over.wait(PATIENCE_SECONDS)
        return says()(seen, connection)

    class Hurried(Pipeline):
        """The time for deliveries is over when the first one has begun, which ends no sooner."""

        def wait_until_empty(self, seconds: float | None = None) -> bool:
            if seconds == watch.DELIVERY_SECONDS:
                wait_until(begun.is_set, "the attempt to begin")
                return False
            over.set()
            return super().wait_until_empty(seconds)

    monkeypatch.setattr(watch, "Pipeline", Hurried)
    journal.script("/alerts", slowly)
    rule(store, journal)
    beat(store)
    sender = Notifications(store, lambda made, now: None, max_retries=3)
    (its,) = store.notification_rules.everybodys()
    Notices(store, sender.send, RetryPolicy(), "").test(its, "token", clock.now())
    late = clock.now() + (UNSENT_SECONDS + 1) * SECOND
    try:
        assert stand_in.look(late) == 1
    finally:
        over.set()
    [row] = store.mongo.collection("events").find({}, {"state": 1})
    assert row["state"] == "completed"
    assert stand_in.look(late) == 0
    assert len(journal.calls["/alerts"]) == 1


def test_without_a_rule_it_asks_one_question(store: Store, stand_in: StandIn) -> None:
    assert stand_in.look(clock.now()) == 0
    assert store.causes.living() == []


def test_what_it_sends_at_once_is_bounded(store: Store, journal: Journal, stand_in: StandIn) -> None:
    rule(store, journal)
    sender = Notifications(store, lambda made, now: None, max_retries=3)
    notices = Notices(store, sender.send, RetryPolicy(), "")
    (its,) = store.notification_rules.everybodys()
    now = clock.now()
    for number in range(AT_ONCE + 1):
        notices.test(its, f"token{number}", now)
    found = store.messages.unsent(
        {"default"}, MESSAGE_TYPES, made_after=now - SECOND, due_by=now, limit=AT_ONCE
    )
    assert len(found) == AT_ONCE
    # Neither those to come, nor those that are too old.
    for made_after, due_by in ((now, now), (now - SECOND, now - SECOND)):
        assert (
            store.messages.unsent({"default"}, MESSAGE_TYPES, made_after=made_after, due_by=due_by, limit=9)
            == []
        )
    assert store.messages.unsent({"other"}, MESSAGE_TYPES, made_after=now - SECOND, due_by=now, limit=9) == []


# -- the call while all is well --------------------------------------------------------------------------


def test_the_url_is_called_while_all_is_well_and_only_then(store: Store, journal: Journal) -> None:
    assert ping_of(SETTINGS, store) is None
    ping = ping_of(replace(SETTINGS, witness_ping_url=journal.url("/ping?token=1")), store)
    assert ping is not None
    assert not ping.ping(clock.now())
    assert "/ping?token=1" not in journal.calls
    beat(store)
    assert ping.ping(clock.now())
    (call,) = journal.calls["/ping?token=1"]
    assert call.seen.method == "GET"
    journal.script("/ping?token=1", says("500 Oh No"))
    assert not ping.ping(clock.now())
    store.mongo.collection("nodes").delete_one({"_id": "worker-1"})
    assert not ping.ping(clock.now())
    assert len(journal.calls["/ping?token=1"]) == 2


def test_the_url_is_called_through_the_guard(store: Store, journal: Journal) -> None:
    ping = ping_of(Settings(witness_ping_url=journal.url("/ping")), store)
    assert ping is not None
    beat(store)
    assert not ping.ping(clock.now())
    assert "/ping" not in journal.calls
