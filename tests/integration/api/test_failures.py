"""Failures by their causes, and the verdict that follows from them: the same to everybody who asks."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.assembly import assemble
from scheduler_app.broker.app import make_app
from scheduler_app.clock import clock
from scheduler_app.domain.cause import Tally, failing_key
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.usecases.duties.causes import CauseTending
from tests.builders import event, schedule

SECOND = timedelta(seconds=1)
RECEIVER = "http://127.0.0.1:9"


@pytest.fixture
def now() -> datetime:
    return clock.now()


def fail(
    store: Store,
    schedule_id: str,
    at: datetime,
    state: State = State.ERROR,
    status: int = 500,
    tags: tuple[str, ...] = ("team:a",),
) -> str:
    """An event of the schedule fails, and its worker tells of it; or it succeeds."""
    made = event(at, schedule_id, origin=RECEIVER)
    store.events.insert([made], at, "made")
    token, [claimed] = store.claims.claim([made.id], until=at, now=at, lease_seconds=600, worker="w")
    key = failing_key(made.id, RECEIVER, status, None)
    record = OutcomeRecord(
        *(made.id, token, state, "said", at + 600 * SECOND if state is State.RETRYING else None),
        {"number": 1, "status_code": status, "error": None, "started_at": at},
        at,
        event=claimed,
        origin=RECEIVER,
        cause=key if state is not State.COMPLETED else None,
    )
    assert store.outcomes.record([record]) == []
    if state is State.COMPLETED:
        return made.id
    tally = Tally(key, at, at)
    dead = state is State.ERROR
    tally.add(
        *(made.id, schedule_id, at, f"status {status} for {schedule_id}"),
        tags=tags,
        is_first=True,
        gave_up=dead,
        is_dead=dead,
    )
    store.causes.touch([tally])
    return made.id


@pytest.fixture
def failing(store: Store, now: datetime) -> Store:
    """Two schedules of one receiver fail; one has given up an event two days ago."""
    for each in ("s1", "s2"):
        store.schedules.insert(schedule(now - timedelta(days=3), each, tags=("team:a",)))
    fail(store, "s1", now - timedelta(days=2))
    fail(store, "s2", now - 9 * SECOND, State.RETRYING)
    return store


def well(store: Store, now: datetime) -> None:
    """A beat and a worker report."""
    for role in ("beat", "worker"):
        facts: dict[str, Any] = {"queues": ["callbacks"], "consuming": True} if role == "worker" else {}
        other = Store(store._settings)
        other.processes.report(role, version="0", last_tick_at=now, **facts)
        other.close()


class LookingBeat:
    """What a beat of this process sees and tells of what is wrong."""

    def __init__(self, store: Store) -> None:
        self._assembly = assemble(store._settings, make_app(store._settings))

    def __enter__(self) -> "LookingBeat":
        return self

    def __exit__(self, *_: object) -> None:
        self._assembly.store.close()

    def look(self, now: datetime) -> None:
        self._assembly.cause_tending.tend_page(now)
        self._assembly.cause_inspection.inspect(now)


def verdict(client: FlaskClient) -> str:
    found: str = client.get("/api/v1/status").get_json()["verdict"]
    return found


def kinds(client: FlaskClient) -> list[str]:
    answer = client.get("/api/v1/status").get_json()
    return [each["kind"] for each in answer["reasons"]]


def test_failures_of_one_receiver_are_one_with_all_that_people_ask(
    failing: Store, client: FlaskClient, now: datetime
) -> None:
    [found] = client.get("/api/failures?state=open").get_json()["failures"]
    assert (found["kind"], found["state"], found["origin"]) == ("failing", "open", RECEIVER)
    assert found["failure"] == "status 500"
    assert found["events"] == {"failed": 2, "gave_up": 1, "waiting": 1, "dead_letters": 1}
    assert found["schedules"] == {"count": 2, "exact": True, "names": ["s1", "s2"]}
    assert found["tags"]["names"] == ["team:a"]
    assert found["message"].startswith(f"{RECEIVER} fails (status 500) since ")
    assert "next_try_at" in found
    one = client.get(f"/api/failures/{found['id']}").get_json()
    assert [each["state"] for each in one["newest_events"]] == ["retrying", "error"]
    assert [each["failed"] for each in one["trend"]] == [1, 1]
    for filters, count in (
        ("tag=team:a", 1),
        ("tag=team:b", 0),
        (f"origin={RECEIVER}/hook", 1),
        ("origin=http://127.0.0.1:10", 0),
        ("destination=crm", 0),
        ("state=over,dismissed", 0),
    ):
        assert len(client.get(f"/api/failures?{filters}").get_json()["failures"]) == count, filters
    assert client.get("/api/failures?state=closed").status_code == 422
    assert client.get("/api/failures/gone").status_code == 404


def test_the_verdict_is_right_without_any_rule(failing: Store, client: FlaskClient, now: datetime) -> None:
    assert client.get("/api/v1/status").get_json()["verdict"] == "down"
    well(failing, now)
    answer = client.get("/api/v1/status").get_json()
    assert (answer["verdict"], kinds(client)) == ("attention", ["failing"])
    [reason] = answer["reasons"]
    assert (reason["schedules"], reason["events"], reason["tags"]) == (2, 2, ["team:a"])
    assert answer["since"] == reason["since"]
    # It recovers: its dead letter, two days old, is left.
    for each in ("s1", "s2"):
        fail(failing, each, now, State.COMPLETED, status=200)
    failing.mongo.collection("events").delete_many({"state": "retrying"})
    CauseTending(failing).tend_page(now + SECOND)
    assert kinds(client) == ["dead_letters"]
    # No longer once it is sent again.
    [over] = client.get("/api/failures?state=over").get_json()["failures"]
    dead = client.get(f"/api/failures/{over['id']}").get_json()["newest_events"][-1]["_id"]
    assert client.post(f"/api/events/{dead}/redrive").status_code == 202
    assert client.get("/api/v1/status").get_json()["verdict"] == "well"


def test_all_that_may_be_wrong_comes_and_goes_in_the_verdict_by_itself(
    store: Store, client: FlaskClient, now: datetime
) -> None:
    """Nobody has set a rule: all is well, a receiver fails and recovers, its dead letter of two days ago is
    dismissed, and a queue has no worker and gets one."""
    well(store, now)
    with LookingBeat(store) as beat:
        beat.look(now)
        assert (verdict(client), kinds(client)) == ("well", [])
        store.schedules.insert(schedule(now - timedelta(days=3), "s1"))
        fail(store, "s1", now - timedelta(days=2))
        beat.look(now + SECOND)
        assert (verdict(client), kinds(client)) == ("attention", ["failing"])
        fail(store, "s1", now, State.COMPLETED, status=200)
        beat.look(now + 2 * SECOND)
        assert (verdict(client), kinds(client)) == ("attention", ["dead_letters"])
        [over] = client.get("/api/failures?state=over").get_json()["failures"]
        assert client.post(f"/api/failures/{over['id']}/dismiss").status_code == 200
        beat.look(now + 3 * SECOND)
        assert (verdict(client), kinds(client)) == ("well", [])
        store.schedules.insert(schedule(now, "s2", queue="eu", run_at=now + timedelta(days=1)))
        store.events.insert([event(now + 60 * SECOND, "s2", queue="eu")], now, "made")
        beat.look(now + 4 * SECOND)
        assert (verdict(client), kinds(client)) == ("attention", ["unserved"])
        [reason] = client.get("/api/v1/status").get_json()["reasons"]
        assert (reason["subject"], reason["events"], reason["schedules"]) == ("eu", 1, 1)
        other = Store(store._settings)
        other.processes.report(
            "worker", version="0", last_tick_at=now, queues=["callbacks", "eu"], consuming=True
        )
        beat.look(now + 5 * SECOND)
        other.close()
        assert (verdict(client), kinds(client)) == ("well", [])


def test_dead_letters_of_a_receiver_that_fails_again_are_told_once(
    failing: Store, client: FlaskClient, now: datetime
) -> None:
    well(failing, now)
    for each in ("s1", "s2"):
        fail(failing, each, now, State.COMPLETED, status=200)
    failing.mongo.collection("events").delete_many({"state": "retrying"})
    CauseTending(failing).tend_page(now + SECOND)
    assert "dead_letters" in kinds(client)
    fail(failing, "s1", now + 2 * SECOND)
    CauseTending(failing).tend_page(now + 2 * SECOND)
    assert kinds(client) == ["failing"]
    [reason] = client.get("/api/v1/status").get_json()["reasons"]
    assert reason["events"] == 2, "one of the failure that was over among them"


def test_what_is_dismissed_is_no_reason_and_goes_on(
    failing: Store, client: FlaskClient, now: datetime
) -> None:
    well(failing, now)
    [found] = client.get("/api/failures").get_json()["failures"]
    path = f"/api/failures/{found['id']}/dismiss"
    dry = client.post(f"{path}?dry_run=true", json={"note": "known"}).get_json()
    assert (dry["state"], dry["dry_run"]) == ("dismissed", True)
    assert kinds(client) == ["failing"]
    done = client.post(path, json={"note": "known"}).get_json()
    assert (done["state"], done["note"], done["expired"], done["more"]) == ("dismissed", "known", 0, False)
    assert kinds(client) == []
    assert client.post(path).status_code == 409
    fail(failing, "s1", now)
    assert kinds(client) == []
    assert len(client.get("/api/failures?state=dismissed").get_json()["failures"]) == 1
    # Its dead letters can still be ended.
    done = client.post(path, json={"events": True}).get_json()
    assert (done["expired"], done["events"]["dead_letters"]) == (2, 0)


def test_page_metrics_and_readiness_tell_the_same(failing: Store, client: FlaskClient, now: datetime) -> None:
    well(failing, now)
    ready = client.get("/readyz")
    assert (ready.status_code, ready.get_json()["verdict"]) == (200, "attention")
    metrics = client.get("/metrics").get_data(as_text=True)
    assert "scheduler_verdict 1.0" in metrics
    assert 'scheduler_reasons{kind="failing"} 1.0' in metrics
    page = client.get("/").get_data(as_text=True)
    assert 'data-verdict="attention"' in page
    assert 'data-reason="failing"' in page


def test_without_a_beat_the_machinery_is_down(store: Store, client: FlaskClient) -> None:
    answer = client.get("/api/v1/status").get_json()
    assert answer["verdict"] == "down"
    assert {"beat", "worker"} <= {each["subject"] for each in answer["reasons"]}
    assert all(each["remedy"] for each in answer["reasons"])
    assert client.get("/readyz").status_code == 503
    assert "scheduler_verdict 2.0" in client.get("/metrics").get_data(as_text=True)


def test_an_edit_within_ten_minutes_before_is_told(store: Store, client: FlaskClient, now: datetime) -> None:
    body = {"name": "a", "callback_url": f"{RECEIVER}/", "rrule": "FREQ=YEARLY"}
    schedule_id = client.post("/api/v1/schedules", json=body).get_json()["id"]
    assert client.put(f"/api/v1/schedules/{schedule_id}", json={"name": "b"}).status_code == 200
    fail(store, schedule_id, clock.now() + SECOND)
    [found] = client.get("/api/failures").get_json()["failures"]
    preceding = client.get(f"/api/failures/{found['id']}").get_json()["preceded_by"]
    assert (preceding["what"], preceding["name"]) == ("schedule", schedule_id)
