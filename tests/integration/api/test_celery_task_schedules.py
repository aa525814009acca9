"""Tasks of other Celery applications as the API takes and shows them."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.domain.masking import MASK
from scheduler_app.store import Store

SCHEDULES = "/api/schedules"
BODY = {"name": "bills", "run_at": "2040-01-01T00:00:00Z"}
SECRET = "s3cret-of-the-task"


@pytest.fixture
def client(make_api: Callable[..., Flask]) -> FlaskClient:
    brokers = (("shop", "redis://127.0.0.1:1/0"), ("reports", "amqp://127.0.0.1:1//"))
    results = (("shop", "redis://127.0.0.1:1/1"),)
    return make_api(
        celery_brokers=brokers,
        celery_result_backends=results,
        celery_tasks=("shop:shop.*@*", "reports:shop.bill"),
    ).test_client()


def action(**fields: Any) -> dict[str, Any]:
    return BODY | {"action": {"type": "celery_task", "task": "shop.bill", "broker": "shop"} | fields}


def test_a_put_creates_a_task_where_there_is_none(client: FlaskClient) -> None:
    made = client.put(f"{SCHEDULES}/bills", json=action(args=[1]))
    assert (made.status_code, made.get_json()["result"]) == (201, "created"), made.text
    assert client.put(f"{SCHEDULES}/bills", json=action(args=[1])).get_json()["result"] == "unchanged"


def test_a_task_is_created_shown_and_exported_without_its_arguments(client: FlaskClient) -> None:
    made = client.post(
        SCHEDULES,
        json=action(
            args=[SECRET, 2],
            kwargs={"to": SECRET},
            headers={"x-tenant": SECRET},
            event_kwarg="event",
            queue="high",
            priority=9,
            expires=60,
            wait=True,
        ),
    )
    assert made.status_code == 201, made.text
    answer = client.get(f"{SCHEDULES}/{made.get_json()['id']}")
    assert answer.get_json()["action"] == {
        "type": "celery_task",
        "task": "shop.bill",
        "broker": "shop",
        "args": MASK,
        "kwargs": MASK,
        "headers": {"x-tenant": MASK},
        "event_kwarg": "event",
        "queue": "high",
        "priority": 9,
        "expires": 60,
        "wait": True,
    }
    assert SECRET not in made.text + answer.text + client.get(f"{SCHEDULES}/export").text


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"broker": "elsewhere"}, "CELERY_BROKERS: shop, reports"),
        ({"broker": "reports", "wait": True}, "CELERY_RESULT_BACKENDS"),
        ({"task": "two words"}, "name of a task"),
        ({"task": ""}, "name of a task"),
        ({"args": {"a": 1}}, "JSON array"),
        ({"kwargs": [1]}, "JSON object"),
        ({"kwargs": {"a": "x" * 140_000}}, "128 KiB"),
        ({"kwargs": {"event": 1}, "event_kwarg": "event"}, "event_kwarg"),
        ({"event_kwarg": "no name"}, "event_kwarg"),
        ({"headers": {"id": "1"}}, "meaning of its own"),
        ({"headers": {"scheduler_event_id": "1"}}, "meaning of its own"),
        ({"headers": {f"h{number}": "1" for number in range(51)}}, "more than 50"),
        ({"args": MASK}, "only while task and broker stay the same"),
        ({"priority": 256}, "priority"),
        ({"expires": 0}, "expires"),
        ({"queue": "a queue"}, "queue"),
        ({"task": "billing.erase"}, "ask the operator for the pattern shop:billing.erase"),
        ({"broker": "reports", "queue": "high"}, "the pattern reports:shop.bill@high"),
        ({"task": "celery.chord_unlock"}, "CELERY_TASKS"),
        ({"queue": "elsewhere:callbacks"}, "CELERY_TASKS"),
        ({"command": ["echo"]}, "no field of a celery_task"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_what_no_broker_would_carry_is_refused(
    client: FlaskClient, fields: dict[str, Any], said: str
) -> None:
    answer = client.post(SCHEDULES, json=action(**fields))
    assert answer.status_code == 422
    assert said in answer.text


@pytest.mark.parametrize("missing", ["task", "broker"])
def test_what_is_missing_is_named(client: FlaskClient, missing: str) -> None:
    body = action()
    del body["action"][missing]
    answer = client.post(SCHEDULES, json=body)
    assert answer.status_code == 422
    assert "must be given for a celery_task" in answer.text


def test_masks_keep_what_they_stand_for_while_task_and_broker_stay(client: FlaskClient, store: Store) -> None:
    made = client.post(SCHEDULES, json=action(args=[SECRET], headers={"x-tenant": SECRET})).get_json()["id"]
    masked = {"args": MASK, "headers": {"x-tenant": MASK}, "type": "celery_task", "broker": "shop"}
    kept = client.put(f"{SCHEDULES}/{made}", json={"action": masked | {"task": "shop.bill", "queue": "low"}})
    assert kept.status_code == 200, kept.text
    stolen = client.put(f"{SCHEDULES}/{made}", json={"action": masked | {"task": "evil.print"}})
    assert stolen.status_code == 422
    found = store.schedules.for_delivery([made])[made]
    assert SECRET in found.action.args  # type: ignore[union-attr]
    assert dict(found.action.headers) == {"x-tenant": SECRET}  # type: ignore[union-attr]
