"""An edit whose process died between its two writes, the schedule's and its events', is finished by whoever
asks again."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events import cancellations
from tests.builders import event

MINUTE = timedelta(minutes=1)
Create = Callable[..., dict[str, Any]]


@pytest.fixture
def active(store: Store, create: Create) -> Schedule:
    found = store.schedules.get(create()["id"])
    assert isinstance(found, Schedule)
    return found


@pytest.fixture
def left(store: Store, active: Schedule) -> str:
    """An event of the schedule that is not due yet."""
    made = event(active.revised_at + MINUTE, active.id)
    store.events.insert([made], active.revised_at, "made")
    return made.id


def state(client: FlaskClient, event_id: str) -> str:
    found: str = client.get(f"/api/events/{event_id}").get_json()["state"]
    return found


def test_a_pause_withdraws_what_one_that_died_had_left(
    client: FlaskClient, store: Store, active: Schedule, left: str
) -> None:
    paused = replace(active, version=2).revise(active.revised_at, state=ScheduleState.PAUSED)
    assert store.schedules.revise(paused, version=1)
    assert state(client, left) == State.READY_QUEUE
    answer = client.post(f"/api/schedules/{active.id}/pause")
    assert (answer.status_code, answer.get_json()["state"]) == (200, "paused")
    assert state(client, left) == State.CANCELLED


def test_a_deletion_withdraws_what_one_that_died_had_left(
    client: FlaskClient, store: Store, active: Schedule, left: str
) -> None:
    assert store.schedules.delete(active.id, active.revised_at)
    assert state(client, left) == State.READY_QUEUE
    assert client.delete(f"/api/schedules/{active.id}").status_code == 404
    assert state(client, left) == State.CANCELLED


def test_a_deletion_withdraws_a_backlog_page_by_page(
    client: FlaskClient, store: Store, active: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [event(active.revised_at + number * MINUTE, active.id) for number in range(5)]
    store.events.insert(made, active.revised_at, "made")
    monkeypatch.setattr(cancellations, "PAGE", 2)
    assert client.delete(f"/api/schedules/{active.id}").status_code == 200
    assert {state(client, each.id) for each in made} == {State.CANCELLED}
