"""What the API shows to Prometheus: requests by route, dead letters, schedules; nothing of workers."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from prometheus_client.parser import text_string_to_metric_families

from scheduler_app.api.routes import operations
from scheduler_app.config import Settings
from scheduler_app.embedded import Redis
from scheduler_app.health import work
from scheduler_app.store import Store
from tests.builders import event
from tests.fail_points import MongodWithFailPoints
from tests.integration.api.conftest import start, stop
from tests.integration.api.test_event_filters import end
from tests.processes import wait_until

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(client: FlaskClient) -> Samples:
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def one(samples: Samples, name: str, **labels: str) -> float:
    return samples.get((name, frozenset(labels.items())), 0.0)


def test_requests_are_counted_by_the_route_s_template_and_never_by_a_path(
    client: FlaskClient, create: Callable[..., dict[str, Any]]
) -> None:
    before = scrape(client)
    made = create()["id"]
    for _ in range(2):
        client.get(f"/api/schedules/{made}")
    client.get("/api/schedules/canary")
    client.get("/canary")
    client.open("/api/schedules", method="CANARY")
    after = scrape(client)
    for method, route, status, count in (
        ("POST", "/api/v1/schedules", "201", 1),
        ("GET", "/api/v1/schedules/{schedule_id}", "200", 2),
        ("GET", "/api/v1/schedules/{schedule_id}", "404", 1),
        ("GET", "other", "404", 1),
        ("other", "other", "405", 1),
    ):
        labels = {"method": method, "route": route, "status": status}
        name = "scheduler_api_requests_total"
        assert one(after, name, **labels) - one(before, name, **labels) == count, labels
    assert "canary" not in str(after).lower()


def test_open_dead_letters_and_schedules_by_state_are_gauges(
    client: FlaskClient, store: Store, now: datetime, create: Callable[..., dict[str, Any]]
) -> None:
    first, second = create()["id"], create()["id"]
    client.post(f"/api/schedules/{first}/pause")
    made = event(now, second)
    store.events.insert([made], now, "made")
    end(store, now, [made])
    samples = scrape(client)
    assert one(samples, "scheduler_dead_letters") == 1
    assert one(samples, "scheduler_schedules", state="paused") == 1
    assert one(samples, "scheduler_schedules", state="active") == 1
    assert one(samples, "scheduler_schedules", state="error") == 0
    client.post("/api/events/redrive", json={"all": True})
    assert one(scrape(client), "scheduler_dead_letters") == 0


def test_what_is_counted_of_the_store_is_bounded(
    client: FlaskClient, store: Store, now: datetime, monkeypatch: Any
) -> None:
    monkeypatch.setattr(work, "MOST_DEAD_LETTERS", 3)
    made = [event(now, f"s{number}") for number in range(5)]
    store.events.insert(made, now, "made")
    end(store, now, made)
    assert one(scrape(client), "scheduler_dead_letters") == 3


def test_what_mongodb_told_before_it_was_too_slow_is_shown(
    redis_server: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MongodWithFailPoints(tmp_path) as mongod:
        settings = Settings(mongo_uri=mongod.uri, broker_url=redis_server.url)
        app = start(settings)
        try:
            client = app.test_client()
            assert ("scheduler_dead_letters", frozenset()) in scrape(client)
            monkeypatch.setattr(operations, "ANSWER_SECONDS", 1.5)
            mongod.delay("aggregate", f"{settings.mongo_database}.events", 2 * operations.ANSWER_SECONDS)

            def shows_processes() -> bool:
                """A machine that stands still makes some answers too late even for these."""
                shown = {name for name, _ in scrape(client)}
                assert "scheduler_dead_letters" not in shown
                return "scheduler_nodes" in shown

            wait_until(shows_processes, "what is asked first to be told in time")
        finally:
            stop(app)


def test_the_api_shows_nothing_that_only_workers_and_beats_count(client: FlaskClient) -> None:
    names = {name for name, _ in scrape(client)}
    assert "scheduler_api_requests_total" in names
    theirs = ("scheduler_lag", "scheduler_callback_duration", "scheduler_attempts", "scheduler_tick")
    assert not [name for name in names if name.startswith(theirs)]
