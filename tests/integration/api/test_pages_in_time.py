"""A page looks a short while for what no index answers, says so, and its link goes on from there."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.domain.message_ids import message_event_id
from scheduler_app.store import Store
from scheduler_app.usecases import calendar_view
from tests.builders import event, message, schedule

SO_FAR = "None of those looked through so far match."


def walked(client: FlaskClient, address: str) -> list[str]:
    """The pages from one on, by their links."""
    pages: list[str] = []
    while address and len(pages) < 50:
        pages.append(client.get(address).text)
        following = re.search(r'<a href="([^"]+)" data-test="next-page"', pages[-1])
        address = following[1].replace("&amp;", "&") if following else ""
    return pages


@pytest.fixture
def rare(store: Store, now: datetime) -> None:
    """Of everything the oldest alone is what is looked for."""
    for number in range(6):
        at = now + timedelta(seconds=number)
        name = "sought" if number == 0 else f"another {number}"
        store.schedules.insert(schedule(at, f"s{number}", name=name))
        store.events.insert([event(at, f"s{number}")], now, "made")
        store.messages.insert_many([message(at + timedelta(hours=1), f"m{number}", event_name="n")], now)
    store.cancellations.cancel_all("s0", 1, now, "withdrawn", tenant="default")
    store.cancellations.cancel(message_event_id("m0", tenant="default"), now, "withdrawn", tenant="default")


@pytest.mark.parametrize(
    ("address", "pattern"),
    [
        ("/schedules?text=sought", r">sought</a>"),
        ("/events?state=cancelled", r"/events/s0-"),
        ("/messages?state=cancelled", r"data-test=\"message\""),
    ],
)
def test_a_list_that_looks_too_long_goes_on_by_its_link(
    client: FlaskClient, rare: None, address: str, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(walked(client, address)) == 1, "there is time for all"
    for name in ("schedules", "events", "messages"):
        monkeypatch.setattr(f"api.pages.{name}.LOOK_SECONDS", 0.0)
    *before, last = walked(client, address)
    assert len(before) > 2
    assert all(SO_FAR in page for page in before)
    assert re.search(pattern, last)


def test_going_to_a_schedule_that_was_not_found_in_time_offers_the_list(
    client: FlaskClient, rare: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed: dict[str, Any] = {"query_string": {"to": "sought"}, "headers": {"HX-Request": "true"}}
    assert "All schedules with" not in client.get("/go", **typed).text
    monkeypatch.setattr("api.pages.go.LOOK_SECONDS", 0.0)
    found = client.get("/go", **typed).text
    assert 'href="/schedules?text=sought"' in found
    assert "/schedules/s0" not in found


def test_a_calendar_says_that_the_schedules_of_a_destination_were_not_found_in_time(
    client: FlaskClient, create: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.put("/api/destinations/d", json={"url": "http://127.0.0.1:9/"}).status_code == 201
    body = {"name": "called", "destination": "d", "rrule": "FREQ=HOURLY"}
    assert client.post("/api/schedules", json=body).status_code == 201
    for _ in range(2):
        create()
    address = "/calendar?destination=d"
    assert "Left out" not in client.get(address).text
    monkeypatch.setattr(calendar_view, "LOOK_SECONDS", 0.0)
    assert "schedules not found in time" in client.get(address).text
