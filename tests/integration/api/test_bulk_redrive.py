"""Many dead letters sent again: which, how many, and why some are not."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from flask.testing import FlaskClient

from scheduler_app.domain.event import Event
from scheduler_app.domain.states import Kind, State
from scheduler_app.store import Store
from tests.builders import event, schedule
from tests.documents import event_document
from tests.integration.api.test_event_filters import end

SECOND = timedelta(seconds=1)
Create = Callable[..., dict[str, Any]]


def redrive(client: FlaskClient, **body: Any) -> dict[str, Any]:
    answer = client.post("/api/events/redrive", json=body)
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.get_json()
    return found


def dead(store: Store, now: datetime, owner: str, count: int = 1, **changes: Any) -> Sequence[Event]:
    """Dead letters of a schedule, the last one first."""
    made = [event(now - i * SECOND, owner, **changes) for i in range(count)]
    store.events.insert(made, now, "made")
    end(store, now, made)
    return made


def states(store: Store, events: Sequence[Event]) -> list[str]:
    return [(event_document(store, each.id))["state"] for each in events]


def test_dead_letters_of_a_deleted_schedule_stay_and_the_answer_says_why(
    client: FlaskClient, store: Store, now: datetime, create: Create
) -> None:
    gone, there = create()["id"], create()["id"]
    lost, kept = dead(store, now, gone), dead(store, now, there)
    client.delete(f"/api/schedules/{gone}")
    answer = redrive(client, all=True)
    assert (answer["redriven"], answer["more"]) == (1, False)
    assert [each["id"] for each in answer["skipped"]] == [lost[0].id]
    assert "deleted" in answer["skipped"][0]["reason"]
    assert (states(store, lost), states(store, kept)) == (["error"], ["worker_queue"])


def test_a_dead_letter_of_an_earlier_schedule_of_the_same_id_stays_one(
    client: FlaskClient, store: Store, now: datetime, create: Create
) -> None:
    create(id="twice")
    triggered = dead(store, now, "twice", kind=Kind.MANUAL)
    client.delete("/api/schedules/twice")
    create(id="twice")
    answer = redrive(client, all=True)
    assert (answer["redriven"], [each["id"] for each in answer["skipped"]]) == (0, [triggered[0].id])
    assert "an earlier schedule" in answer["skipped"][0]["reason"]
    assert states(store, triggered) == ["error"]


def test_nothing_is_redriven_without_a_filter_or_all(
    client: FlaskClient, store: Store, now: datetime, create: Create
) -> None:
    made = dead(store, now, create()["id"])
    for body in (None, {}, {"limit": 10}, {"timezone": "UTC"}, {"all": False}):
        answer = (
            client.post("/api/events/redrive", json=body)
            if body is not None
            else client.post("/api/events/redrive")
        )
        assert answer.status_code == 422, answer.text
        assert "all: true" in answer.get_json()["detail"]
    assert client.post("/api/events/redrive", json={"all": True, "tag": "a"}).status_code == 422
    assert states(store, made) == ["error"]


def test_dead_letters_are_redriven_by_status_error_origin_and_tag(
    client: FlaskClient, store: Store, now: datetime
) -> None:
    store.schedules.insert(schedule(now, "s1", tags=("billing",)))
    store.schedules.insert(schedule(now, "s2"))
    by_tag = dead(store, now, "s1")
    by_origin = dead(store, now, "s2", origin="https://a.test:443")
    (by_status, by_text) = others = [event(now + i * SECOND, "s2") for i in (1, 2)]
    store.events.insert(others, now, "made")
    end(store, now, [by_status], status=410)
    end(store, now, [by_text], status=None, error="timed out after 10 s")
    for body, expected in (
        ({"status_code": 410}, by_status),
        ({"error": "timed out"}, by_text),
        ({"origin": "https://a.test"}, by_origin[0]),
        ({"tag": "billing"}, by_tag[0]),
    ):
        counted = redrive(client, dry_run=True, **body)
        assert (counted["redriven"], states(store, [expected])) == (1, ["error"]), body
        assert redrive(client, **body)["redriven"] == 1, body
        assert states(store, [expected]) == ["worker_queue"], body
        assert redrive(client, **body)["redriven"] == 0, body
    assert client.post("/api/events/redrive", json={"status_code": [410, "5xx"]}).status_code == 202


def test_skipped_ones_are_named_up_to_a_hundred_and_counted(
    client: FlaskClient, store: Store, now: datetime, create: Create
) -> None:
    gone = create()["id"]
    dead(store, now, gone, 120)
    client.delete(f"/api/schedules/{gone}")
    answer = redrive(client, schedule_id=gone)
    assert (answer["redriven"], len(answer["skipped"]), answer["skipped_omitted"]) == (0, 100, 20)


def test_a_redriven_event_s_grace_starts_over(
    client: FlaskClient, store: Store, now: datetime, create: Create
) -> None:
    (made,) = dead(store, now, create()["id"])
    # Four messages of it were lost before it came to its attempt.
    store.mongo.collection("events").update_one({"_id": made.id}, {"$set": {"dispatches": 5, "attempt": 1}})
    assert store.events.redrive([made.id], now, "again")
    row = event_document(store, made.id)
    assert (row["dispatches"], row["attempts_before"]) == (0, 1)
    # Two lost messages double the grace once, however much was lost, or tried, before the redrive.
    for grace, recovered in ((10, True), (20, True)):
        taken = store.outbox.due(now, limit=10)
        token, won = store.outbox.take(taken, now, now, lease_seconds=2)
        store.outbox.sent(token)
        assert [each.id for each in won] == [made.id]
        early, late = now + (grace - 1) * SECOND, now + (grace + 1) * SECOND
        assert store.recoveries.recover_messages(early, grace_seconds=10, limit=10) == []
        assert (store.recoveries.recover_messages(late, grace_seconds=10, limit=10) == [made.id]) is recovered
    assert State(str((event_document(store, made.id))["state"])) is State.READY_QUEUE
