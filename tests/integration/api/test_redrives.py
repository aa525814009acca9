"""Redrives that beats carry out: of a failure, at a rate, the newest of each schedule, when it answers."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.clock import clock
from scheduler_app.domain import redrive as domain
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.lateness import Lateness
from scheduler_app.domain.redrive import Redrive
from scheduler_app.store import Store
from scheduler_app.usecases.duties import redrives
from scheduler_app.usecases.duties.redrives import RedriveDuty
from tests.builders import schedule
from tests.integration.api.test_failures import fail

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


@pytest.fixture
def now() -> datetime:
    return clock.now()


@pytest.fixture
def duty(store: Store) -> RedriveDuty:
    """Of a beat that has just started: it knows nothing but what is stored."""
    return RedriveDuty(store, lambda events, now: None)


@pytest.fixture
def failure(store: Store, client: FlaskClient, now: datetime) -> str:
    """Two schedules with three dead letters each, an hour apart; s2's are given up after two hours."""
    store.schedules.insert(schedule(now - 9 * HOUR, "s1"))
    policy = Lateness(expire_after_seconds=7_200)
    store.schedules.insert(replace(schedule(now - 9 * HOUR, "s2"), lateness=policy))
    for hours in (3, 2, 1):
        for each in ("s1", "s2"):
            fail(store, each, now - hours * HOUR - SECOND)
    [found] = client.get("/api/failures").get_json()["failures"]
    return str(found["id"])


def start(client: FlaskClient, **body: Any) -> str:
    answer = client.post("/api/events/redrive", json=body)
    assert answer.status_code == 202, answer.get_json()
    return str(answer.get_json()["redrive_id"])


def dead(store: Store) -> int:
    return store.events.dead_letters("default", most=100)


def progress(client: FlaskClient, redrive_id: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/redrives/{redrive_id}").get_json()
    return found


def test_all_dead_letters_of_a_failure_are_sent_again_by_beats(
    store: Store, client: FlaskClient, duty: RedriveDuty, failure: str, now: datetime
) -> None:
    fail(store, "s1", now - 5 * SECOND, status=404)
    redrive_id = start(client, cause=failure)
    assert progress(client, redrive_id)["planned"] == 6
    assert dead(store) == 7
    duty.work_page(clock.now())
    found = progress(client, redrive_id)
    assert (found["state"], found["sent"], found["skipped"]) == ("sent", 6, 0)
    # What failed otherwise stays, and so does what failed later.
    assert dead(store) == 1
    cause = client.get(f"/api/failures/{failure}").get_json()
    assert (cause["resent"], cause["events"]["dead_letters"]) == (6, 0)
    assert duty.work_page(clock.now()) is False


def test_those_of_one_tenant_that_wait_for_their_receivers_keep_back_nobody_else(
    store: Store, now: datetime
) -> None:
    def stored(redrive_id: str, due: datetime) -> None:
        made = Redrive(id=WholeId(redrive_id), cause=None, before=now, next_due_at=due, started_at=now)
        assert store.redrives.start(made)

    for number in range(2 * redrives.REDRIVES_A_PAGE):
        stored(f"acme:{number}", now + HOUR)
    stored("zulu:1", now)
    _, found = store.redrives.claim(now, limit=redrives.REDRIVES_A_PAGE, lease_seconds=60)
    assert [each.id for each in found] == ["zulu:1"]


def test_beats_choose_among_the_redrives_that_are_due(store: Store, now: datetime) -> None:
    made = Redrive(id=WholeId("acme:0"), cause=None, before=now, next_due_at=now, started_at=now)
    for number in range(40):
        assert store.redrives.start(replace(made, id=WholeId(f"acme:{number}")))
    assert store.redrives.start(replace(made, id=WholeId("zulu:1")))
    claimed = set[str]()
    for _ in range(200):
        token, found = store.redrives.claim(now, limit=5, lease_seconds=60)
        claimed |= {each.id for each in found}
        for each in found:
            assert store.redrives.advance(each, token)
    assert "zulu:1" in claimed


def test_a_rate_spreads_them_and_a_beat_that_dies_loses_none(
    store: Store, client: FlaskClient, failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domain, "AHEAD", 4 * SECOND)
    redrive_id = start(client, cause=failure, rate=0.5)
    begun = clock.now()
    RedriveDuty(store, lambda events, now: None).work_page(begun)
    found = progress(client, redrive_id)
    assert (found["state"], found["sent"], found["rate"]) == ("running", 2, 0.5)
    # Another beat goes on, when the time has come.
    other = RedriveDuty(store, lambda events, now: None)
    other.work_page(begun)
    assert progress(client, redrive_id)["sent"] == 2
    for seconds in range(1, 12):
        other.work_page(begun + seconds * SECOND)
    assert progress(client, redrive_id)["state"] == "sent"
    rows = store.mongo.collection("events").find({"state": "ready_queue"}).sort("due_at", 1)
    due = [row["due_at"] for row in rows]
    steps = {round((b - a).total_seconds(), 3) for a, b in pairwise(due)}
    assert (len(due), steps) == (6, {2.0})


def test_the_newest_of_each_schedule_or_what_is_not_too_late(
    store: Store, client: FlaskClient, duty: RedriveDuty, failure: str
) -> None:
    asked = {"cause": failure, "which": "not_too_late"}
    dry = client.post("/api/events/redrive?dry_run=true", json=asked).get_json()
    assert (dry["redriven"], len(dry["letters"])) == (4, 4)
    assert sorted(each["schedule_id"] for each in dry["letters"]) == ["s1", "s1", "s1", "s2"]
    newest = start(client, cause=failure, which="newest_of_each_schedule")
    assert progress(client, newest)["planned"] == 2
    duty.work_page(clock.now())
    assert (progress(client, newest)["sent"], dead(store)) == (2, 4)
    sent = store.mongo.collection("events").find({"state": "ready_queue"})
    assert {row["run_time"] > clock.now() - 2 * HOUR for row in sent} == {True}
    rest = start(client, **asked)
    duty.work_page(clock.now())
    found = progress(client, rest)
    assert (found["sent"], found["skipped"], dead(store)) == (2, 2, 2)


def test_a_receiver_is_waited_for_and_tried_by_one(
    store: Store, client: FlaskClient, duty: RedriveDuty, failure: str
) -> None:
    redrive_id = start(client, cause=failure, when="receiver_answers")
    begun = clock.now()
    duty.work_page(begun)
    assert (progress(client, redrive_id)["state"], dead(store)) == ("waiting", 5)
    duty.work_page(begun + SECOND)
    assert dead(store) == 5
    duty.work_page(begun + domain.TRIAL_PERIOD)
    assert dead(store) == 4
    store.causes.answered({failure: begun + 2 * domain.TRIAL_PERIOD})
    duty.work_page(begun + 2 * domain.TRIAL_PERIOD + SECOND)
    assert (progress(client, redrive_id)["state"], dead(store)) == ("sent", 0)


def test_it_can_be_stopped_and_then_sends_nothing_more(
    store: Store, client: FlaskClient, duty: RedriveDuty, failure: str
) -> None:
    redrive_id = start(client, cause=failure)
    assert client.delete(f"/api/redrives/{redrive_id}").get_json()["state"] == "stopped"
    duty.work_page(clock.now())
    assert dead(store) == 6
    assert client.delete(f"/api/redrives/{redrive_id}").get_json()["state"] == "stopped"
    assert client.get("/api/redrives/gone").status_code == 404


def test_what_cannot_be_is_refused_and_no_more_run_than_may(
    client: FlaskClient, failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for body, field in (
        ({"cause": "gone"}, None),
        ({"all": True, "when": "receiver_answers"}, "cause"),
        ({"cause": failure, "which": "oldest"}, "which"),
        ({"cause": failure, "error": "x"}, "error"),
        ({"cause": failure, "status_code": 500}, "status_code"),
        ({"cause": failure, "all": True}, "all"),
    ):
        answer = client.post("/api/events/redrive", json=body)
        assert answer.status_code == (404 if field is None else 422), body
        if field is not None:
            assert [each["pointer"] for each in answer.get_json()["errors"]] == [f"/{field}"]
    monkeypatch.setattr(redrives, "MAX_REDRIVES", 1)
    start(client, cause=failure)
    assert client.post("/api/events/redrive", json={"cause": failure}).status_code == 409


def test_a_request_that_is_sent_again_starts_one(client: FlaskClient, store: Store, failure: str) -> None:
    headers = {"Idempotency-Key": "a"}
    answers = [
        client.post("/api/events/redrive", json={"cause": failure}, headers=headers).get_json()["redrive_id"]
        for _ in range(2)
    ]
    assert answers[0] == answers[1]
    assert store.mongo.collection("redrives").count_documents({}) == 1


def test_one_that_cannot_continue_says_why(
    store: Store, client: FlaskClient, duty: RedriveDuty, failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, corrupt, sound = (start(client, cause=failure) for _ in range(3))
    rows = store.mongo.collection("redrives")
    rows.update_one({"_id": corrupt}, {"$set": {"choice": 7}})
    send: Callable[..., Any] = RedriveDuty._send
    seen: list[str] = []

    def fails_once(self: RedriveDuty, redrive: domain.Redrive, *args: Any) -> Any:
        seen.append(redrive.id)
        if redrive.id == broken:
            raise RuntimeError("odd")
        return send(self, redrive, *args)

    monkeypatch.setattr(RedriveDuty, "_send", fails_once)
    duty.work_page(clock.now())
    duty.work_page(clock.now())
    assert (progress(client, broken)["state"], progress(client, broken)["reason"]) == (
        "error",
        "RuntimeError: odd",
    )
    assert client.get(f"/api/redrives/{corrupt}").status_code == 409
    assert progress(client, sound)["state"] == "sent"
