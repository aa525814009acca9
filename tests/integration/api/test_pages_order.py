"""The list of schedules in other orders than that of their creation, page by page."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.clock import clock

Create = Callable[..., dict[str, Any]]


def listed(client: FlaskClient, address: str) -> list[str]:
    """The names on all pages, in their order; each page has two rows."""
    names = list[str]()
    for _ in range(20):
        page = client.get(address).text
        names += re.findall(r"data-open>([^<]*)</a>", page)
        following = re.search(r'<a href="([^"]+)" data-test="next-page"', page)
        if not following:
            return names
        address = following[1].replace("&amp;", "&")
    raise AssertionError(names)


@pytest.fixture(autouse=True)
def two_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler_app.api.pages.forms.ROWS", 2)


def test_by_name_also_where_several_have_the_same(client: FlaskClient, create: Create) -> None:
    names = ["b", "a", "Zürich", "b", "b", "c", "b", "a b", "ähnlich", "b"]
    for name in names:
        create(name=name, tags=["even"] if name in "bc" else [])
    assert listed(client, "/schedules?order=name") == sorted(names)
    assert listed(client, "/schedules?order=name&tag=even") == sorted(n for n in names if n in "bc")
    ids = re.findall(r'name="selected" value="([^"]+)"', client.get("/schedules?order=name&text=b").text)
    assert len(set(ids)) == 2


def test_by_the_next_run_also_where_several_come_at_once(client: FlaskClient, create: Create) -> None:
    now = clock.now().replace(microsecond=0)
    for name, hours in (("late", 9), ("same 1", 5), ("soon", 2), ("same 2", 5), ("same 3", 5)):
        create(name=name, run_at=(now + timedelta(hours=hours)).isoformat())
    paused = create(name="paused", run_at=(now + timedelta(hours=1)).isoformat())
    client.post(f"/api/schedules/{paused['id']}/pause")
    by_hand = {"name": "by hand", "callback_url": "http://127.0.0.1:9/", "on_demand": True}
    assert client.post("/api/schedules", json=by_hand).status_code == 201
    found = listed(client, "/schedules?order=next")
    assert (found[0], set(found[1:4]), found[4:]) == ("soon", {"same 1", "same 2", "same 3"}, ["late"])
    assert listed(client, "/schedules?order=next&text=same&state=active") == found[1:4]
    assert listed(client, "/schedules?order=next&state=paused") == []


def test_an_order_and_its_filter_are_kept_in_the_links(client: FlaskClient, create: Create) -> None:
    create(tags=["x"])
    page = client.get("/schedules?tag=x&order=name").text
    assert 'aria-sort="ascending"' in page
    assert "tag=x&amp;order=next" in page
    assert client.get("/schedules?order=colour").status_code == 422
