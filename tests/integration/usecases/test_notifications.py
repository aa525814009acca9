"""What destinations are told of: how events ended, and that a schedule was paused; each of it once."""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from pymongo.errors import BulkWriteError

from scheduler_app.clock import clock
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.event import Event
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.domain.schedule import ScheduleState
from scheduler_app.store import Store
from scheduler_app.usecases.duties.notifications import EVENTS_A_PAGE, Notifications
from scheduler_app.worker import Pipeline
from tests.acceptance.journal import Journal
from tests.builders import event, message, schedule
from tests.documents import event_document
from tests.integration.actions.receiver import says
from tests.processes import PATIENCE_SECONDS, wait_until

SECOND = timedelta(seconds=1)


@pytest.fixture
def journal() -> Iterator[Journal]:
    with closing(Journal()) as made:
        yield made


@pytest.fixture
def dispatched() -> list[str]:
    return []


@pytest.fixture
def notifications(store: Store, dispatched: list[str]) -> Notifications:
    def dispatch(events: Sequence[Event], now: datetime) -> None:
        dispatched.extend(each.id for each in events)

    return Notifications(store, dispatch, max_retries=3)


def put(store: Store, name: str, url: str) -> None:
    now = clock.now()
    assert store.destinations.insert(Destination(id=WholeId(name), url=url, created_at=now, updated_at=now))


def due(store: Store, url: str, count: int = 1, schedule_id: str = "s1", **fields: Any) -> list[str]:
    now = clock.now()
    store.schedules.insert(schedule(now - 60 * SECOND, schedule_id, url=url, **fields))
    first = now.replace(microsecond=0) - 30 * SECOND
    made = [event(first + timedelta(milliseconds=number), schedule_id) for number in range(count)]
    store.events.insert(made, now, "made")
    return [each.id for each in made]


def deliver(pipeline: Pipeline, ids: Sequence[str]) -> None:
    for start in range(0, len(ids), 100):
        pipeline.delivery.deliver(list(ids[start : start + 100]))
    assert pipeline.wait_until_empty(PATIENCE_SECONDS)


def marked(store: Store) -> int:
    return store.mongo.collection("events").count_documents({"notify": {"$exists": True}})


def told(journal: Journal, path: str) -> list[dict[str, Any]]:
    return [json.loads(call.seen.body) for call in journal.calls[path]]


def test_an_event_in_error_is_told_of_with_its_attempts_and_the_answer(
    store: Store, pipeline: Pipeline, journal: Journal, notifications: Notifications, dispatched: list[str]
) -> None:
    put(store, "ops", journal.url("/ops"))
    put(store, "ok", journal.url("/fine"))
    url = journal.script("/a", says("500 Oh", body=b"disk full"))
    (failed,) = due(store, url, max_retries=0, on_failure="ops", on_success="ok")
    deliver(pipeline, [failed])
    assert not notifications.notify_page(clock.now())
    assert dispatched == [f"msg_{failed}-on-failure"]
    assert marked(store) == 0
    deliver(pipeline, dispatched)
    (call,) = journal.calls["/ops"]
    assert call.seen.method == "POST"
    assert call.seen.headers["x-scheduler-event-name"] == "event.error"
    (body,) = told(journal, "/ops")
    assert body["event"]["id"] == failed
    assert body["event"]["schedule_id"] == "s1"
    assert body["event"]["state"] == "error"
    assert "500" in body["event"]["message"]
    assert body["answer"] == "disk full"
    (attempt,) = body["attempts"]
    assert (attempt["number"], attempt["status_code"], attempt["worker"]) == (1, 500, "w1")
    assert "claim" not in attempt
    assert "/fine" not in journal.calls


def test_a_completed_event_is_told_of_only_where_somebody_asked(
    store: Store, pipeline: Pipeline, journal: Journal, notifications: Notifications, dispatched: list[str]
) -> None:
    put(store, "done", journal.url("/done"))
    asked = due(store, journal.url("/a"), on_success="done")
    quiet = due(store, journal.url("/a"), schedule_id="s2")
    failing = due(store, journal.url("/a"), schedule_id="s3", on_failure="done")
    deliver(pipeline, [*asked, *quiet, *failing])
    notifications.notify_page(clock.now())
    assert dispatched == [f"msg_{asked[0]}-on-success"]
    deliver(pipeline, dispatched)
    assert told(journal, "/done")[0]["event"]["state"] == "completed"


def test_a_notification_that_fails_is_told_of_to_nobody(
    store: Store, pipeline: Pipeline, journal: Journal, notifications: Notifications, dispatched: list[str]
) -> None:
    put(store, "ops", journal.script("/ops", says("404 Gone")))
    failed = due(store, journal.script("/a", says("500 Oh")), max_retries=0, on_failure="ops")
    deliver(pipeline, failed)
    notifications.notify_page(clock.now())
    deliver(pipeline, dispatched)
    assert event_document(store, dispatched[0])["state"] == "error"
    notifications.notify_page(clock.now())
    assert len(dispatched) == 1
    assert marked(store) == 0


def test_a_message_has_notifications_as_a_schedule_has(
    store: Store, pipeline: Pipeline, journal: Journal, notifications: Notifications, dispatched: list[str]
) -> None:
    put(store, "ops", journal.url("/ops"))
    url = journal.script("/a", says("410 Gone"))
    now = clock.now()
    store.messages.insert(message(now - SECOND, "m1", url=url, on_failure="ops"), now)
    deliver(pipeline, ["msg_m1"])
    notifications.notify_page(clock.now())
    assert dispatched == ["msg_msg_m1-on-failure"]
    deliver(pipeline, dispatched)
    assert told(journal, "/ops")[0]["event"]["message_id"] == "m1"


def test_whoever_dies_between_message_and_mark_leaves_one_message(
    store: Store, pipeline: Pipeline, journal: Journal, notifications: Notifications, dispatched: list[str]
) -> None:
    put(store, "ops", journal.url("/ops"))
    failed = due(store, journal.script("/a", says("500 Oh")), 3, max_retries=0, on_failure="ops")
    deliver(pipeline, failed)
    events = store.mongo.collection("events")
    marks = {row["_id"]: row["notify"] for row in events.find({"_id": {"$in": failed}})}
    notifications.notify_page(clock.now())
    for event_id, mark in marks.items():  # as if the marks had not been removed any more
        events.update_one({"_id": event_id}, {"$set": {"notify": mark}})
    notifications.notify_page(clock.now())
    assert sorted(dispatched) == sorted(f"msg_{each}-on-failure" for each in failed)
    assert events.count_documents({"kind": "message"}) == 3
    assert marked(store) == 0


def test_a_mark_that_cannot_be_removed_keeps_no_other(
    store: Store, pipeline: Pipeline, journal: Journal, notifications: Notifications
) -> None:
    put(store, "ops", journal.url("/ops"))
    failed = due(store, journal.script("/a", says("500 Oh")), 3, max_retries=0, on_failure="ops")
    deliver(pipeline, failed)
    (first, *others), _ = store.owed_notifications.oldest(limit=10)
    # An operator's validation, which this document fails.
    refused = {"$or": [{"_id": {"$ne": first.event.id}}, {"notify": {"$exists": True}}]}
    store.mongo.command("collMod", "events", validator=refused)
    with pytest.raises(BulkWriteError, match="failed validation"):
        store.owed_notifications.remove_marks([first, *others])
    assert [each.event.id for each in store.owed_notifications.oldest(limit=10)[0]] == [first.event.id]


def test_an_event_that_is_sent_again_is_told_of_again(
    store: Store, pipeline: Pipeline, journal: Journal, notifications: Notifications, dispatched: list[str]
) -> None:
    put(store, "ops", journal.url("/ops"))
    url = journal.script("/a", says("500 Oh"), says("500 Oh"))
    failed = due(store, url, max_retries=0, on_failure="ops")
    for _ in range(2):
        deliver(pipeline, failed)
        notifications.notify_page(clock.now())
        store.events.redrive(failed, clock.now(), "again")
    assert len(set(dispatched)) == 2
    assert all(each.startswith(f"msg_{failed[0]}-on-failure") for each in dispatched)


def test_a_mark_of_a_later_end_stays(store: Store, pipeline: Pipeline, journal: Journal) -> None:
    put(store, "ops", journal.url("/ops"))
    failed = due(store, journal.script("/a", says("500 Oh")), max_retries=0, on_failure="ops")
    deliver(pipeline, failed)
    found, _ = store.owed_notifications.oldest(limit=10)
    store.mongo.collection("events").update_one({"_id": failed[0]}, {"$set": {"notify.since": clock.now()}})
    store.owed_notifications.remove_marks(found)
    assert marked(store) == 1


def test_marks_are_removed_from_the_events_that_are_named(store: Store) -> None:
    now = clock.now()
    first, *_ = due(store, "http://127.0.0.1:9/", 3)
    mark = {"when": "on_failure", "since": now, "destination": "ops"}
    store.mongo.collection("events").update_many({}, {"$set": {"notify": mark}})
    found, _ = store.owed_notifications.oldest(limit=10)
    store.owed_notifications.remove_marks([each for each in found if each.event.id != first])
    assert [each.event.id for each in store.owed_notifications.oldest(limit=10)[0]] == [first]


def test_events_that_a_lost_worker_leaves_in_error_are_told_of(
    store: Store, journal: Journal, notifications: Notifications, dispatched: list[str]
) -> None:
    put(store, "ops", journal.url("/ops"))
    lost = due(store, journal.url("/a"), on_failure="ops")
    unheard = due(store, journal.url("/a"), schedule_id="s2")
    now = clock.now()
    alone = {"state": "running", "owner": "t", "isolated": "t", "isolated_losses": 2, "lost_leases": 3}
    store.mongo.collection("events").update_many({}, {"$set": alone | {"lease_until": now - 60 * SECOND}})
    store.mongo.collection("events").update_many({}, [{"$set": {"owner": "$_id", "isolated": "$_id"}}])
    _, spent = store.recoveries.recover_workers(now, delay_seconds=1, limit=10)
    assert sorted(spent) == sorted([*lost, *unheard])
    notifications.notify_page(now)
    assert dispatched == [f"msg_{lost[0]}-on-failure"]
    assert marked(store) == 0


def test_an_event_whose_destination_is_gone_is_told_of(
    store: Store, pipeline: Pipeline, journal: Journal, notifications: Notifications, dispatched: list[str]
) -> None:
    put(store, "ops", journal.url("/ops"))
    failed = due(store, NOT_GIVEN, destination="gone", on_failure="ops")  # type: ignore[arg-type]
    deliver(pipeline, failed)
    notifications.notify_page(clock.now())
    deliver(pipeline, dispatched)
    assert "there is no destination gone" in told(journal, "/ops")[0]["event"]["message"]


@pytest.mark.parametrize(
    "mark",
    [
        {"since": "soon"},
        {"when": "on_sunday", "since": ...},
        {"when": "on_failure", "since": ..., "destination": 5},
        {"when": "on_failure", "since": ..., "destination": "acme:ops"},
        {"when": "on_failure", "since": ..., "hops": "x"},
    ],
    ids=["since", "when", "destination", "stranger", "hops"],
)
def test_a_bent_mark_harms_itself_alone(
    store: Store, notifications: Notifications, dispatched: list[str], mark: dict[str, Any]
) -> None:
    now = clock.now()
    bent = {name: now - SECOND if value is ... else value for name, value in mark.items()}
    ids = due(store, "http://127.0.0.1:9/", 2)
    sound = {"when": "on_failure", "since": now, "destination": "ops"}
    events = store.mongo.collection("events")
    for event_id, written in zip(ids, (sound, bent), strict=True):
        done = {"state": "error", "notify": written, "archived_at": now}
        events.update_one({"_id": event_id}, {"$set": done, "$unset": {"due_at": ""}})
    notifications.notify_page(now)
    assert dispatched == [f"msg_{ids[0]}-on-failure"]
    assert marked(store) == 0


def test_pages_are_bounded_and_all_are_told(
    store: Store, notifications: Notifications, dispatched: list[str]
) -> None:
    now = clock.now()
    ids = due(store, "http://127.0.0.1:9/", EVENTS_A_PAGE + 1)
    mark = {"when": "on_failure", "since": now, "destination": "ops"}
    done = {"$set": {"state": "error", "notify": mark}, "$unset": {"due_at": ""}}
    store.mongo.collection("events").update_many({}, done)
    assert notifications.notify_page(now)
    assert len(dispatched) == EVENTS_A_PAGE
    assert not notifications.notify_page(now)
    assert len(set(dispatched)) == len(ids)


def test_a_pause_is_told_of_once_for_each_revision(
    store: Store, pipeline: Pipeline, journal: Journal, notifications: Notifications, dispatched: list[str]
) -> None:
    put(store, "ops", journal.url("/ops"))
    now = clock.now()
    paused = schedule(now, "s1", on_failure="ops").revise(now, state=ScheduleState.PAUSED)
    for _ in range(2):
        notifications.paused(paused, "5 failures in a row", now)
    notifications.paused(paused.revise(now, state=ScheduleState.PAUSED), "again", now)
    notifications.paused(replace(paused, id="s2", on_failure=None), "nobody asks", now)
    assert dispatched == ["msg_s1-2-on-pause", "msg_s1-3-on-pause"]
    deliver(pipeline, dispatched[:1])
    (body,) = told(journal, "/ops")
    assert body["schedule"]["id"] == "s1"
    assert body["schedule"]["state"] == "paused"
    assert body["schedule"]["reason"] == "5 failures in a row"
    (call,) = journal.calls["/ops"]
    assert call.seen.headers["x-scheduler-event-name"] == "schedule.paused"


def test_records_without_notifications_leave_no_mark(
    store: Store, pipeline: Pipeline, journal: Journal
) -> None:
    mixed = due(store, journal.script("/a", says("500 Oh")), max_retries=0)
    mixed += due(store, journal.script("/b", says("500 Oh")), schedule_id="s2", max_retries=0, on_failure="x")
    deliver(pipeline, mixed)
    wait_until(lambda: event_document(store, mixed[1])["state"] == "error", "both to end")
    assert "notify" not in event_document(store, mixed[0])
    assert event_document(store, mixed[1])["notify"]["destination"] == "x"
