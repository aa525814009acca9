"""After an outage: what is owed, and giving it up."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.domain.event import manual
from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.lateness import CatchUp
from scheduler_app.domain.states import Kind
from scheduler_app.store import Store
from scheduler_app.usecases.questions.backlog import BacklogService
from tests.builders import event, message, schedule
from tests.documents import event_document
from tests.integration.conftest import NOON

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
#: Nothing serves these: an application in this process has no workers.
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
A, B = "http://a.example:80", "http://b.example:80"


def fill(store: Store, since: datetime) -> None:
    store.events.insert(
        [
            *(event(since + i * MINUTE, "s1", origin=A) for i in range(5)),
            *(event(since + i * MINUTE, "s2", origin=B) for i in range(3)),
            event(datetime.now(UTC) + HOUR, "s1", origin=A),
        ],
        since,
        "made",
    )
    assert store.messages.insert(message(since + HOUR, url="http://a.example/?token=secret"), since)


def states(store: Store) -> dict[str, str]:
    rows = store.mongo.collection("events").find({}, {"state": 1})
    return {row["_id"]: row["state"] for row in rows}


@pytest.fixture
def client(app: Flask, store: Store) -> FlaskClient:
    fill(store, LONG_AGO)
    return app.test_client()


def test_it_shows_what_is_owed_by_schedule_and_receiver(client: FlaskClient) -> None:
    shown = client.get("/api/backlog").get_json()
    assert (shown["count"], shown["oldest"], shown["sampled"]) == (9, "2026-01-01T00:00:00Z", False)
    assert [(each.get("schedule_id"), each["count"]) for each in shown["schedules"]] == [
        ("s1", 5),
        ("s2", 3),
        (None, 1),
    ]
    assert [(each["origin"], each["count"]) for each in shown["receivers"]] == [(A, 6), (B, 3)]
    assert "seconds_to_drain" not in shown  # nothing has ended


def test_it_shows_what_is_owed_by_policy(client: FlaskClient, store: Store) -> None:
    latest = schedule(LONG_AGO, "s1", catch_up=CatchUp.LATEST, expire_after_seconds=7_200.0)
    store.schedules.insert(latest)
    store.schedules.insert(schedule(LONG_AGO, "s2", run_overlap="queue"))
    store.events.insert(
        [manual("s1", 1, LONG_AGO + 9 * SECOND), event(LONG_AGO + 7 * SECOND, "s3")], LONG_AGO, "made"
    )
    again = event(LONG_AGO + 10 * SECOND, "s1")._replace(id="s1-backfill-1", kind=Kind.BACKFILL)
    store.events.insert([again], LONG_AGO, "made")
    fleeting = message(LONG_AGO + 8 * SECOND, "m2", expire_after_seconds=60.0)
    assert store.messages.insert(fleeting, LONG_AGO)
    shown = client.get("/api/backlog").get_json()
    found = {
        (each["catch_up"], each["expires"], each["run_overlap"]): (each["count"], each["oldest"])
        for each in shown["policies"]
    }
    assert found == {
        ("latest", True, "allow"): (5, "2026-01-01T00:00:00Z"),
        ("all", False, "queue"): (3, "2026-01-01T00:00:00Z"),
        # A message; an occurrence whose schedule is gone; one that is made up for.
        ("all", False, "allow"): (3, "2026-01-01T00:00:07Z"),
        # A call by hand, which catch_up does not judge; a message that is given up.
        ("all", True, "allow"): (2, "2026-01-01T00:00:08Z"),
    }
    assert sum(each["count"] for each in shown["policies"]) == shown["count"]


def test_the_time_to_drain_is_told_by_what_ended_in_the_last_minute(store: Store) -> None:
    fill(store, NOON - HOUR)
    done = [event(NOON - HOUR - i * SECOND, "done") for i in range(30)]
    store.events.insert(done, NOON, "made")
    change = {"$set": {"state": "completed", "archived_at": NOON - SECOND}, "$unset": {"due_at": ""}}
    store.mongo.collection("events").update_many({"schedule_id": "done"}, change)
    found = BacklogService(store).backlog(TENANT, NOON)
    # The message and the last of the other events fall due at noon, or after it.
    assert (found.count, found.finished_per_second) == (8, 0.5)
    assert found.seconds_to_drain == 16
    few = BacklogService(store, max_looked_at=2).backlog(TENANT, NOON)
    assert (few.count, few.sampled, len(few.by_schedule)) == (8, True, 2)


@pytest.mark.parametrize(
    ("which", "count"),
    [
        ({"all": True}, 9),
        ({"schedule_id": "s1"}, 5),
        ({"origin": "http://a.example/any/path"}, 6),
        ({"origin": A, "schedule_id": "s2"}, 0),
        ({"due_before": "2026-01-01T00:02:00Z"}, 4),
        ({"destination": "nowhere"}, 0),
    ],
)
def test_it_is_given_up_by_filter_after_a_dry_run(
    client: FlaskClient, store: Store, which: dict[str, Any], count: int
) -> None:
    before = states(store)
    tried = client.post("/api/backlog/expire", json=which | {"dry_run": True}).get_json()
    assert tried == {"expired": count, "more": False, "dry_run": True}
    assert states(store) == before
    assert client.post("/api/backlog/expire", json=which).get_json() == {"expired": count, "more": False}
    after = states(store)
    changed = {name for name in before if before[name] != after[name]}
    assert (len(changed), {after[name] for name in changed}) == (count, {"expired"} if count else set())
    for name in changed:
        row = event_document(store, name)
        assert "due_at" not in row
        assert row["status"][-1]["message"].startswith("Expired: a person gave up what was due before 20")


def test_a_message_that_is_given_up_keeps_no_secret(client: FlaskClient, store: Store) -> None:
    client.post("/api/backlog/expire", json={"all": True})
    assert "secret" not in repr(event_document(store, "msg_m1"))


def test_it_goes_page_by_page_and_leaves_what_a_worker_has(client: FlaskClient, store: Store) -> None:
    taken = event(LONG_AGO, "s1").id
    now = datetime.now(UTC)
    store.claims.claim([taken], until=now, now=now, lease_seconds=9, worker="w")
    answers = [client.post("/api/backlog/expire", json={"schedule_id": "s1", "limit": 3}) for _ in range(2)]
    assert [each.get_json() for each in answers] == [
        {"expired": 3, "more": True},
        {"expired": 1, "more": False},
    ]
    assert states(store)[taken] == "running"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/all"),
        ({"all": True, "schedule_id": "s1"}, "/all"),
        ({"due_before": "2999-01-01T00:00:00Z"}, "/due_before"),
        ({"origin": "nowhere"}, "/origin"),
        ({"origin": A, "destination": "d"}, "/origin"),
        ({"schedule_id": "a b"}, "/schedule_id"),
        ({"all": True, "cursor": "x"}, "/cursor"),
        ({"all": True, "limit": 1_001}, "/limit"),
    ],
)
def test_a_wrong_filter_is_refused_and_gives_nothing_up(
    client: FlaskClient, store: Store, body: dict[str, Any], pointer: str
) -> None:
    answer = client.post("/api/backlog/expire", json=body)
    assert answer.status_code == 422
    assert answer.get_json()["errors"][0]["pointer"] == pointer
    assert "expired" not in states(store).values()


def test_schedules_keep_their_other_events(client: FlaskClient, store: Store) -> None:
    store.schedules.insert(schedule(NOON, "s1"))
    client.post("/api/backlog/expire", json={"all": True})
    waiting = [name for name, state in states(store).items() if state == "ready_queue"]
    assert len(waiting) == 1
