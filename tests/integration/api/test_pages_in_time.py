"""A page looks a short while for what no index answers, says so, and its link goes on from there."""

import re
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.domain.ids import message_event_id
from scheduler_app.store import Store
from tests.builders import event, message, schedule

Patch = Callable[[str, Any], None]
SO_FAR = "that was searched so far matches."


@pytest.fixture
def patch(monkeypatch: pytest.MonkeyPatch) -> Patch:
    return monkeypatch.setattr


def walked(client: FlaskClient, address: str) -> list[str]:
    """The pages from one on, by their links."""
    pages: list[str] = []
    while address and len(pages) < 50:
        pages.append(client.get(address).text)
        following = re.search(r'<a href="([^"]+)" data-test="next-page"', pages[-1])
        address = following[1].replace("&amp;", "&") if following else ""
    return pages


@pytest.fixture
def many(store: Store, now: datetime) -> None:
    """Of everything the oldest alone is what is looked for, once it is cancelled."""
    for number in range(12):
        at = now + timedelta(seconds=number)
        name = "sought" if number == 0 else f"another {number}"
        store.schedules.insert(schedule(at, f"s{number}", name=name))
        store.events.insert([event(at, f"s{number}")], now, "made")
        store.messages.insert_many([message(at + timedelta(hours=1), f"m{number}", event_name="n")], now)


@pytest.mark.parametrize(
    ("address", "pattern"),
    [
        ("/schedules?text=sought", r">sought</a>"),
        ("/events?limit=1&state=cancelled", r"/events/s0-"),
        ("/messages?limit=1&state=cancelled", r"data-test=\"message\""),
    ],
)
def test_a_list_that_looks_too_long_goes_on_by_its_link(
    client: FlaskClient, store: Store, now: datetime, many: None, address: str, pattern: str, patch: Patch
) -> None:
    if "messages" in address:
        store.cancellations.cancel(message_event_id("default", "m0"), now, "no")
    else:
        store.cancellations.cancel_all("s0", 1, now, "no")
    patch("scheduler_app.api.pages.forms.ROWS", 1)
    patch("scheduler_app.api.pages.forms.LOOK_SECONDS", 60.0)
    assert len(walked(client, address)) == 1, "there is time for all"
    patch("scheduler_app.api.pages.forms.LOOK_SECONDS", 0.0)
    patch("scheduler_app.store.paging.monotonic", time.monotonic)
    *before, last = walked(client, address)
    assert len(before) >= 5, "two rows a page"
    assert all(SO_FAR in page for page in before)
    assert re.search(pattern, last)


def test_a_search_that_may_have_missed_schedules_offers_the_list(
    client: FlaskClient, create: Callable[..., dict[str, Any]], patch: Patch
) -> None:
    typed: dict[str, Any] = {"query_string": {"to": "sought"}, "headers": {"HX-Request": "true"}}
    for number in range(2):
        create(name=f"sought {number}")
    assert "All schedules with" not in client.get("/go", **typed).text
    patch("scheduler_app.api.pages.go.MOST", 1)
    assert 'href="/schedules?text=sought"' in client.get("/go", **typed).text
    assert 'data-test="incomplete"' in client.get("/go?to=sought").text
