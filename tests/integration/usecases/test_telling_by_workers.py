"""From a receiver that fails to the webhook that says so, by a real worker and over real HTTP."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime

import pytest
from standardwebhooks import Webhook

from scheduler_app.actions.http import new_secret
from scheduler_app.actions.kind import make_executors
from scheduler_app.actions.registry import KINDS
from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.domain.deliverable import Signing
from scheduler_app.domain.event import Event
from scheduler_app.domain.notice_action import ChannelKind
from scheduler_app.domain.notification_rule import NotificationChannel
from scheduler_app.domain.retry import RetryPolicy
from scheduler_app.domain.states import State
from scheduler_app.health.status import cause_sentence
from scheduler_app.store import Store
from scheduler_app.usecases.duties.causes import CauseTending
from scheduler_app.usecases.duties.notifications import Notifications
from scheduler_app.usecases.duties.telling import RuleTelling
from scheduler_app.usecases.notices import Notices
from scheduler_app.worker import Pipeline
from tests.acceptance.journal import Journal
from tests.builders import LONGEST_SECONDS, event, notification_rule, schedule
from tests.documents import event_document
from tests.integration.actions.receiver import says
from tests.mail_server import MailReceiver
from tests.processes import PATIENCE_SECONDS, wait_until


@pytest.fixture
def journal() -> Iterator[Journal]:
    with closing(Journal()) as made:
        yield made


def test_a_receiver_that_fails_is_told_once_and_once_that_it_is_over(
    store: Store, pipeline: Pipeline, journal: Journal
) -> None:
    def deliver(*ids: str) -> None:
        pipeline.delivery.deliver(ids)
        assert pipeline.wait_until_empty(PATIENCE_SECONDS)

    journal.script("/job", says("500 Internal Server Error"))
    secret = new_secret()
    channel = NotificationChannel(ChannelKind.WEBHOOK, journal.url("/alerts"))
    store.notification_rules.put(
        notification_rule(clock.now(), to=(channel,), signing=Signing(secret, clock.now()), after_seconds=0.0)
    )
    sender = Notifications(store, lambda new, now: deliver(*[each.id for each in new]), max_retries=3)
    telling = RuleTelling(store, Notices(store, sender.send, RetryPolicy(max_retries=3), "https://rrs"))
    now = clock.now()
    store.schedules.insert(schedule(now, "s1", url=journal.url("/job"), tags=("customer:x",)))
    failing = event(now, "s1", origin=journal.url("/job").removesuffix("/job"))
    store.events.insert([failing], now, "made")
    deliver(failing.id)
    wait_until(lambda: bool(store.causes.living()), "the worker has noted the failure")
    for _ in range(3):
        telling.tell_page(clock.now())
    [call] = journal.calls["/alerts"]
    told = Webhook(secret).verify(call.seen.body, call.seen.headers)
    assert (told["type"], told["data"]["failure"]["tags"]["first"]) == ("failure.began", ["customer:x"])
    assert (event_document(store, call.seen.headers["webhook-id"]) or {})["state"] == State.COMPLETED
    # It answers again.
    journal.script("/job", says())
    store.mongo.collection("events").update_one(
        {"_id": failing.id}, {"$set": {"state": "ready_queue", "due_at": clock.now()}}
    )
    deliver(failing.id)
    tending = CauseTending(store)

    def is_over() -> bool:
        tending.tend_page(clock.now())
        return not store.causes.living()

    wait_until(is_over, "the failure is over")
    for _ in range(3):
        telling.tell_page(clock.now())
    assert [
        Webhook(secret).verify(each.seen.body, each.seen.headers)["type"] for each in journal.calls["/alerts"]
    ] == ["failure.began", "failure.over"]


def test_a_notification_that_does_not_arrive_is_a_reason_of_the_status_and_no_notification(
    store: Store,
) -> None:
    with closing(MailReceiver()) as server:
        settings = Settings(smtp_url=f"smtp://127.0.0.1:{server.port}?from=a@example.com")
        kinds = [KINDS["http"], KINDS["notice"]]
        made = Pipeline(
            *(store, make_executors(settings, kinds)),
            now=clock.now,
            worker="w1",
            horizon_seconds=5,
            max_events=100,
        )
        made.start()
        try:

            def deliver(new: Sequence[Event], now: datetime) -> None:
                # It is sent by a process of its own, whose start may take longer than a request usually has.
                patient = {"$set": {"timeout_seconds": LONGEST_SECONDS}}
                store.mongo.collection("events").update_many({}, patient)
                made.delivery.deliver([each.id for each in new])
                assert made.wait_until_empty(PATIENCE_SECONDS)

            sender = Notifications(store, deliver, max_retries=3)
            telling = RuleTelling(store, Notices(store, sender.send, RetryPolicy(max_retries=3), ""))
            channel = NotificationChannel(ChannelKind.EMAIL, "later@example.com")
            rule = notification_rule(clock.now(), to=(channel,), after_seconds=0.0)
            store.notification_rules.put(rule)
            telling.notices.test(rule, "token", clock.now())
            wait_until(lambda: bool(store.causes.living()), "the worker has noted the failure")
            for _ in range(3):
                telling.tell_page(clock.now())
        finally:
            made.stop_starting()
            made.interrupt()
            made.stop()
    (cause,) = store.causes.living()
    assert (cause.key.subject, cause.key.failure) == ("email", "status 451")
    events = store.mongo.collection("events")
    (event_row,) = events.find({"kind": "message"})
    assert (event_row["event_name"], event_row["state"]) == ("test", State.RETRYING)
    counts = store.cause_marks.count(cause.key.id, most=10)
    assert "email fails (status 451)" in cause_sentence(cause, counts)
