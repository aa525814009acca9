"""What people do with single events, and with many dead letters."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.actions.kind import Outcome, Verdict
from scheduler_app.api.services import Services
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.usecases.deeds.events import (
    NOT_ANSWERED,
    TOO_MANY_WAIT,
    WAITING_AT_ONCE,
    cancellation_slots,
)
from scheduler_app.worker.attempt import Attempt
from tests.builders import event, schedule

SECOND = timedelta(seconds=1)
Create = Callable[..., dict[str, Any]]


def fail(store: Store, now: datetime, ids: Sequence[str]) -> None:
    """Ends events in error, after one attempt each."""
    token, won = store.claims.claim(ids, until=now, now=now, lease_seconds=25, worker="w")
    assert len(won) == len(ids)
    store.outcomes.record(
        [OutcomeRecord(each, token, State.ERROR, "no", None, {"number": 1}, now) for each in ids]
    )


def failure(event_id: str, status: int) -> Verdict:
    return Verdict(event_id, Outcome.RETRY, status, None, "", 1.0, f"HTTP {status}")


def queue_length(app: Flask) -> int:
    services: Services = app.extensions["scheduler"]
    return services.publisher.queue_length()


@pytest.fixture
def owner(create: Create) -> str:
    """A schedule for events to belong to."""
    made: str = create()["id"]
    return made


def test_a_waiting_event_is_cancelled_and_says_by_whom(
    client: FlaskClient, store: Store, now: datetime, owner: str
) -> None:
    made = event(now, owner)
    store.events.insert([made], now, "made")
    answer = client.post(f"/api/events/{made.id}/cancel")
    assert answer.status_code == 200
    shown = answer.get_json()
    assert (shown["state"], shown["status"][-1]["message"]) == ("cancelled", "Withdrawn by a person")
    assert "due_at" not in shown
    again = client.post(f"/api/events/{made.id}/cancel")
    assert again.status_code == 409
    assert "cancelled" in again.get_json()["detail"]


@pytest.fixture
def claimed(store: Store, now: datetime, owner: str) -> str:
    """The id of an event whose worker does not answer."""
    made = event(now, owner)
    store.events.insert([made], now, "made")
    store.claims.claim([made.id], until=now, now=now, lease_seconds=25, worker="w")
    return made.id


def test_who_cancels_an_event_is_told_that_its_worker_has_not_answered(
    client: FlaskClient, claimed: str
) -> None:
    """Whether its request has begun is not known then."""
    answer = client.post(f"/api/events/{claimed}/cancel")
    assert answer.status_code == 409
    assert f"the event is running: {NOT_ANSWERED}" in answer.get_json()["detail"]
    assert client.get(f"/api/events/{claimed}").get_json()["state"] == "running"


def test_only_some_requests_wait_for_workers_and_others_are_told_to_ask_again(
    client: FlaskClient, claimed: str
) -> None:
    with ExitStack() as others:
        for _ in range(WAITING_AT_ONCE):
            others.enter_context(cancellation_slots)
        answer = client.post(f"/api/events/{claimed}/cancel")
    assert answer.status_code == 409
    assert TOO_MANY_WAIT in answer.get_json()["detail"]
    # Their places are free again.
    assert NOT_ANSWERED in client.post(f"/api/events/{claimed}/cancel").get_json()["detail"]


def test_a_redriven_event_is_sent_at_once_and_keeps_its_history(
    app: Flask, client: FlaskClient, store: Store, now: datetime, owner: str
) -> None:
    made = event(now, owner)
    store.events.insert([made], now, "made")
    fail(store, now, [made.id])
    answer = client.post(f"/api/events/{made.id}/redrive")
    assert answer.status_code == 202
    shown = answer.get_json()
    # Its message is out already: no beat runs here.
    assert (shown["state"], queue_length(app)) == ("worker_queue", 1)
    assert (shown["attempt"], len(shown["attempts"])) == (1, 1)
    assert "archived_at" not in shown
    assert [line["status"] for line in shown["status"]][-3:] == ["error", "ready_queue", "worker_queue"]
    assert client.post(f"/api/events/{made.id}/redrive").status_code == 409


@pytest.mark.parametrize("state", [State.COMPLETED, State.RETRYING])
def test_only_a_dead_letter_is_redriven(
    client: FlaskClient, store: Store, now: datetime, owner: str, state: State
) -> None:
    made = event(now, owner)
    store.events.insert([made], now, "made")
    token, _ = store.claims.claim([made.id], until=now, now=now, lease_seconds=25, worker="w")
    due_at = now + SECOND if state is State.RETRYING else None
    store.outcomes.record([OutcomeRecord(made.id, token, state, "", due_at, {"number": 1}, now)])
    answer = client.post(f"/api/events/{made.id}/redrive")
    assert answer.status_code == 409
    assert state in answer.get_json()["detail"]


def test_a_dead_letter_of_a_deleted_schedule_is_not_redriven(
    client: FlaskClient, store: Store, now: datetime, owner: str
) -> None:
    made = event(now, owner)
    store.events.insert([made], now, "made")
    fail(store, now, [made.id])
    client.delete(f"/api/schedules/{owner}")
    answer = client.post(f"/api/events/{made.id}/redrive")
    assert answer.status_code == 409
    assert "deleted" in answer.get_json()["detail"]


def test_a_redriven_event_has_all_its_retries_again(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    fail(store, now, [made.id])
    store.events.redrive([made.id], now, "again")
    one_retry = schedule(now, max_retries=1)
    outcomes = []
    for _ in range(2):
        token, (claimed,) = store.claims.claim(
            [made.id], until=now + 3600 * SECOND, now=now, lease_seconds=25, worker="w"
        )
        attempt = Attempt(claimed, one_retry, token, "w")
        failed = attempt.record(failure(made.id, 500), now, made.origin)
        store.outcomes.record([failed])
        outcomes.append((attempt.number, failed.state))
    assert outcomes == [(2, State.RETRYING), (3, State.ERROR)]


def test_many_are_redriven_by_filter_a_page_a_call(
    app: Flask, client: FlaskClient, store: Store, now: datetime, owner: str
) -> None:
    mine = [event(now - i * SECOND, owner) for i in range(120)]
    store.schedules.insert(schedule(now, "other"))
    others = [event(now - i * SECOND, "other") for i in range(30)]
    store.events.insert(mine + others, now, "made")
    fail(store, now, [each.id for each in mine[:100] + others])
    body: dict[str, Any] = {
        "schedule_id": owner,
        "from": (now - 89 * SECOND).isoformat(),
        "to": now.isoformat(),
        "limit": 40,
    }
    counts = []
    while True:
        answer = client.post("/api/events/redrive", json=body)
        assert answer.status_code == 202, answer.text
        page = answer.get_json()
        counts.append(page["redriven"])
        assert page["more"] is (page["next_cursor"] is not None)
        if not page["more"]:
            break
        body["cursor"] = page["next_cursor"]
    assert counts == [40, 40, 9]
    assert queue_length(app) == 3
    assert store.mongo.collection("events").count_documents({"state": "error"}) == 11 + 30
    rest = client.post("/api/events/redrive", json={"all": True, "limit": 500}).get_json()
    assert (rest["redriven"], rest["more"]) == (41, False)
