"""Figures over HTTP."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.api.services import Services
from scheduler_app.domain.figures import HOUR, MINUTE, FigurePart, FigureSubject
from scheduler_app.domain.ids import TENANT
from scheduler_app.store import Store
from scheduler_app.usecases.questions.timed_figures import FigureQuestions
from tests.builders import event
from tests.integration.api.conftest import ToldTime
from tests.integration.conftest import NOON

Create = Callable[..., dict[str, Any]]


def store_of(app: Flask) -> Store:
    found: Services = app.extensions["scheduler"]
    return found.store


def test_counters_are_shown_in_parts_with_what_is_known(
    app: Flask, client: FlaskClient, time: ToldTime
) -> None:
    time.at = NOON + timedelta(minutes=30)
    assert client.get("/api/figures").get_json()["since"] is None
    part = FigurePart(NOON)
    for lag in (1.0, 2.0, 90.0):
        part.add("completed", lag, 40.0)
    part.add("error", None, None)
    erp = FigureSubject(TENANT, "destination", "erp")
    store_of(app).figure_counters.add([(FigureSubject(TENANT), HOUR, part), (erp, MINUTE, part)])
    shown = client.get("/api/figures").get_json()
    assert (shown["bucket_seconds"], len(shown["buckets"])) == (3_600, 25)
    assert shown["since"] == "2026-03-02T12:00:00Z"
    assert shown["to"] == "2026-03-02T12:30:00Z"
    assert shown["buckets"][-1] == {
        "from": "2026-03-02T12:00:00Z",
        "count": 4,
        "completed": 3,
        "error": 1,
        "retrying": 0,
        "lag_ms": {"p50": 2.0, "p95": 90.0, "p99": 90.0, "max": 90.0, "mean": 31.0},
        "duration_ms": {"p50": 40.0, "p95": 40.0, "p99": 40.0, "max": 40.0, "mean": 40.0},
    }
    assert shown["buckets"][0] == {
        "from": "2026-03-01T12:00:00Z", "count": 0, "completed": 0, "error": 0, "retrying": 0
    }  # fmt: skip
    query = {"from": NOON.isoformat(), "destination": "erp", "bucket": 60}
    minutes = client.get("/api/figures", query_string=query).get_json()["buckets"]
    assert [each["count"] for each in minutes] == [4, *[0] * 29]
    assert sum(each["count"] for each in client.get("/api/figures?tag=t").get_json()["buckets"]) == 0


def test_a_schedule_s_figures_are_read_from_its_events_the_newest_of_many(
    app: Flask, client: FlaskClient, create: Create, time: ToldTime
) -> None:
    time.at, store, made = NOON, store_of(app), create()["id"]
    for number in range(6):
        at = NOON - (number + 1) * MINUTE
        store.events.insert([event(at, made)], at, "made")
        done = {"state": "completed", "attempts": [{"lag_ms": 5.0, "duration_ms": 10.0 * number}]}
        which = {"schedule_id": made, "run_time": at}
        store.mongo.collection("events").update_one(which, {"$set": done, "$unset": {"due_at": ""}})
    store.events.insert([event(NOON - 7 * MINUTE, made)], NOON, "waits")
    query = {"schedule_id": made, "from": (NOON - 10 * MINUTE).isoformat(), "bucket": 300}
    shown = client.get("/api/figures", query_string=query).get_json()
    assert [each["completed"] for each in shown["buckets"]] == [1, 5]
    assert shown["since"] == "2026-03-02T11:50:00Z"
    assert shown["buckets"][1]["duration_ms"]["max"] == 40.0
    few = FigureQuestions(store, most_events=3).of_schedule(made, NOON - HOUR, NOON, MINUTE)
    assert (sum(part.outcomes.total() for part in few.parts), few.since) == (3, NOON - 3 * MINUTE)
    assert client.get("/api/figures?schedule_id=none").status_code == 404


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"bucket": "90"}, "bucket"),
        ({"bucket": "60", "tag": "t"}, "bucket"),
        ({"bucket": "60", "from": "2026-01-01T00:00:00Z"}, "bucket"),
        ({"tag": "t", "destination": "d"}, "tag"),
        ({"from": "2026-03-02T00:00:00Z", "to": "2026-03-01T00:00:00Z"}, "to"),
        ({"from": "2025-01-01T00:00:00Z", "to": "2026-03-01T00:00:00Z", "bucket": "86400"}, "to"),
    ],
)
def test_a_wrong_question_is_refused_by_its_field(client: FlaskClient, query: Any, field: str) -> None:
    answer = client.get("/api/figures", query_string=query)
    assert answer.status_code == 422
    assert answer.get_json()["errors"][0]["pointer"].endswith(field)
