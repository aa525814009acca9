"""What is deprecated is announced: by the answers to requests that use it, and by the specification."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from scheduler_app.api import versions
from scheduler_app.api.factory import routed, serve
from scheduler_app.api.versions import Deprecated
from scheduler_app.api.wire import examples
from scheduler_app.config import Settings
from tests.integration.api.openapi import specification_of

ROUTE = Deprecated(date(2026, 11, 1), date(2027, 11, 1), "Use `list_events`.")
FIELD = Deprecated(date(2027, 2, 1), date(2028, 2, 1), "Use `body`.")
PARAMETER = Deprecated(date(2027, 3, 1), date(2028, 3, 1), "Use `cursor`.")


@pytest.fixture
def client(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[FlaskClient]:
    monkeypatch.setitem(versions.DEPRECATED, "list_pending_events", ROUTE)
    monkeypatch.setitem(versions.DEPRECATED, "create_schedule.json", FIELD)
    monkeypatch.setitem(versions.DEPRECATED, "list_schedules.page", PARAMETER)
    # Not an application that other tests have used: it made its specification before.
    app = routed(settings)
    with closing(serve(app, settings).store):
        yield app.test_client()


def announced(answer: TestResponse) -> tuple[date, date] | None:
    """Since when, and until when at least, what the request used is deprecated."""
    if "Deprecation" not in answer.headers:
        assert "Sunset" not in answer.headers
        return None
    assert answer.headers["Link"] == '</docs/api-stability.html>; rel="deprecation"; type="text/html"'
    since = datetime.fromtimestamp(int(answer.headers["Deprecation"].removeprefix("@")), UTC)
    return since.date(), parsedate_to_datetime(answer.headers["Sunset"]).date()


@pytest.mark.parametrize("name", ["/api/v1", "/api"])
def test_answers_announce_what_the_request_uses(client: FlaskClient, name: str) -> None:
    of_route, of_field = (ROUTE.since, ROUTE.sunset), (FIELD.since, FIELD.sunset)
    schedule = {**examples.SCHEDULE, "id": "daily"}
    key = {"Idempotency-Key": "once"}
    made = client.post(f"{name}/schedules", json=schedule, headers=key)
    assert (made.status_code, announced(made)) == (201, of_field)
    again = client.post(f"{name}/schedules", json=schedule, headers=key)
    assert (again.headers["Idempotent-Replayed"], announced(again)) == ("true", of_field)
    assert announced(client.get(f"{name}/schedules/daily/events/pending")) == of_route
    refused = client.get(f"{name}/schedules/none-such/events/pending?limit=x")
    assert (refused.status_code, announced(refused)) == (422, of_route)
    assert announced(client.get(f"{name}/schedules?page=1")) == (PARAMETER.since, PARAMETER.sunset)


def test_other_requests_announce_nothing(client: FlaskClient) -> None:
    without = {field: value for field, value in examples.SCHEDULE.items() if field != "json"}
    assert announced(client.post("/api/v1/schedules", json=without)) is None
    assert announced(client.post("/api/v1/schedules", data=b"[", content_type="application/json")) is None
    assert announced(client.get("/api/v1/schedules?limit=1")) is None
    assert announced(client.get("/api/v1/events?page=1")) is None
    assert announced(client.get("/nothing-here")) is None


def test_the_specification_marks_it(client: FlaskClient) -> None:
    specification = specification_of(client)
    paths, schemas = specification["paths"], specification["components"]["schemas"]
    pending = paths["/api/v1/schedules/{schedule_id}/events/pending"]["get"]
    pages = {
        path: next(each for each in paths[path]["get"]["parameters"] if each.get("name") == "page")
        for path in ("/api/v1/schedules", "/api/v1/events")
    }
    for node, deprecated in (
        (pending, ROUTE),
        (schemas["NewSchedule"]["properties"]["json"], FIELD),
        (pages["/api/v1/schedules"], PARAMETER),
    ):
        assert (node["deprecated"], node["x-sunset"]) == (True, deprecated.sunset.isoformat())
        assert node["description"].endswith(deprecated.instead)
    assert "deprecated" not in pages["/api/v1/events"]


def test_the_manual_says_whether_anything_is_deprecated_and_each_entry_keeps_its_promise() -> None:
    page = (Path(__file__).parents[3] / "docs" / "api-stability.md").read_text()
    assert ("Nothing is deprecated today." in page) is not bool(versions.DEPRECATED)
    for key, entry in versions.DEPRECATED.items():
        assert f"`{key}`" in page
        assert (entry.sunset - entry.since).days >= 365
