"""Callbacks that end at an API of ours count how often they went round."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import Store

HOPS = "X-Scheduler-Hops"


def test_a_trigger_that_came_by_callbacks_is_remembered_by_its_event(
    client: FlaskClient, store: Store, create: Callable[..., dict[str, Any]]
) -> None:
    made = create()["id"]
    event_id = client.post(f"/api/schedules/{made}/trigger", headers={HOPS: "3"}).get_json()["event_id"]
    later = datetime.now(UTC) + timedelta(minutes=1)
    _, [event] = store.claims.claim([event_id], until=later, now=later, lease_seconds=60, worker="w")
    assert event.hops == 3


def test_a_schedule_that_callbacks_have_made_remembers_them(client: FlaskClient, store: Store) -> None:
    """Its own callbacks go on counting, or a callback that creates schedules would have no end."""
    one = {"name": "n", "callback_url": "http://127.0.0.1:9/", "rrule": "FREQ=YEARLY"}
    client.post("/api/schedules", json={**one, "id": "one"}, headers={HOPS: "2"})
    client.post("/api/schedules/bulk", json={"schedules": [{**one, "id": "bulk-1"}]}, headers={HOPS: "4"})
    client.post("/api/schedules", json={**one, "id": "a-person"})
    found = {row["_id"]: row.get("hops", 0) for row in store.mongo.collection("schedules").find()}
    assert found == {"one": 2, "bulk-1": 4, "a-person": 0}
    read = store.schedules.for_delivery(["one"])["one"]
    assert isinstance(read, Schedule)
    assert read.hops == 2


def test_a_schedule_that_a_callback_has_changed_counts_on_and_a_person_s_change_takes_nothing_off(
    client: FlaskClient, store: Store, create: Callable[..., dict[str, Any]]
) -> None:
    """A callback that sets its own schedule to a later time would have no end."""
    path = f"/api/schedules/{create()['id']}"

    def hops() -> int:
        (row,) = store.mongo.collection("schedules").find()
        return int(row.get("hops", 0))

    for given, kept in (("2", 2), ("1", 2), ("0", 2), ("4", 4)):
        later = (datetime.now(UTC) + timedelta(hours=1 + int(given))).isoformat()
        changes = [{"run_at": later}, {"name": f"changed at {given}"}]
        for change in changes:
            assert client.put(path, json=change, headers={HOPS: given}).status_code == 200
            assert hops() == kept
    assert client.put(path, json={"name": "nobody's"}).status_code == 200
    assert hops() == 4


def test_a_resume_by_a_callback_counts_on(
    client: FlaskClient, store: Store, create: Callable[..., dict[str, Any]]
) -> None:
    """A callback that resumes its own schedule would have no end either."""
    path = f"/api/schedules/{create()['id']}"

    def hops() -> int:
        (row,) = store.mongo.collection("schedules").find()
        return int(row.get("hops", 0))

    for resume, body in ((f"{path}/resume", None), ("/api/schedules/resume", {"all": True})):
        before = hops()
        client.post(f"{path}/pause")
        assert client.post(resume, json=body, headers={HOPS: str(before + 2)}).status_code == 200
        assert hops() == before + 2
    client.post(f"{path}/pause")
    client.post(f"{path}/resume")
    assert hops() == 4


def test_the_fifth_hop_is_a_508_and_does_nothing(
    client: FlaskClient, store: Store, create: Callable[..., dict[str, Any]]
) -> None:
    made = create()["id"]
    for method, path, body in (
        ("POST", f"/api/schedules/{made}/trigger", None),
        ("POST", "/api/schedules", {"name": "n"}),
        ("POST", "/api/schedules/bulk", {"schedules": [{"name": "n"}]}),
        ("POST", "/api/events/redrive", None),
        ("PUT", f"/api/schedules/{made}", {"name": "n"}),
    ):
        answer = client.open(path, method=method, json=body, headers={HOPS: "5"})
        assert (answer.status_code, answer.mimetype) == (508, "application/problem+json")
        assert "calls back to what triggers it" in answer.get_json()["detail"]
    assert store.mongo.collection("events").count_documents({}) == 0
    assert client.get(f"/api/schedules/{made}", headers={HOPS: "5"}).status_code == 200


def test_the_fourth_hop_is_let_through(client: FlaskClient, create: Callable[..., dict[str, Any]]) -> None:
    made = create()["id"]
    assert client.post(f"/api/schedules/{made}/trigger", headers={HOPS: "4"}).status_code == 202


@pytest.mark.parametrize("value", ["", "-1", "1.5", "many", "1, 2", "٣", "9" * 40])
def test_a_number_of_hops_that_is_none_is_a_400(
    client: FlaskClient, create: Callable[..., dict[str, Any]], value: str
) -> None:
    made = create()["id"]
    answer = client.post(f"/api/schedules/{made}/trigger", environ_overrides={"HTTP_X_SCHEDULER_HOPS": value})
    assert (answer.status_code, answer.mimetype) == (400, "application/problem+json")
    assert HOPS in answer.get_json()["detail"]
