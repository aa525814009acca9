"""The calendar of what ran and what comes: its numbers, its names, and the ways from it."""

import html
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from flask.testing import FlaskClient

from scheduler_app.store import Store
from scheduler_app.usecases import forecast
from scheduler_app.usecases.questions.run_calendar import RunCalendars
from tests.builders import event
from tests.integration.api.test_pages import fail

Create = Callable[..., dict[str, Any]]


def marks(page: str) -> dict[str, tuple[int, int]]:
    """What a calendar says of each day: how many are planned, and how many are done."""
    found = re.findall(r'data-day="([^"]+)" data-planned="(\d+)" data-done="(\d+)"', page)
    return {day: (int(planned), int(done)) for day, planned, done in found}


def test_all_that_comes_is_counted_however_often(client: FlaskClient, create: Create) -> None:
    create(tags=["t"], rrule="DTSTART:20400101T120000Z\nRRULE:FREQ=SECONDLY;UNTIL=20400102T115959Z")
    create(tags=["t"], rrule="DTSTART:20400101T120000Z\nRRULE:FREQ=MINUTELY;COUNT=1500")
    create(tags=["t"], name="Rare", rrule="DTSTART:20400102T093000Z\nRRULE:FREQ=DAILY;COUNT=2")
    for view in ("month", "week", "day"):
        page = client.get(f"/calendar?view={view}&on=2040-01-01&tag=t").text
        found = marks(page)
        assert found["2040-01-01"] == (43_200 + 720, 0)
        if view == "month":
            assert found["2040-01-02"] == (43_200 + 780 + 1, 0)
            assert found["2040-01-03"] == (1, 0)
            assert found["2040-01-04"] == (0, 0)
            assert page.count('data-test="named"') == 2, "what runs rarely is named"
        assert "43,920 to come" in page
        assert "left-out" not in page
    day = client.get("/calendar?view=day&on=2040-01-02&tag=t").text
    assert re.search(r'data-test="named">09:30 Rare<', day)
    # What the hour has besides is a number.
    assert re.search(r'title="3,661 to come" data-test="hour"', day)


def test_all_that_ran_is_counted_and_what_is_left_out_is_said(
    client: FlaskClient, create: Create, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = create(tags=["t"])["id"]
    other = create(tags=["other"])["id"]
    noon = datetime(2026, 3, 2, 12, tzinfo=UTC)
    for number in range(6):
        fail(store, made, noon + timedelta(minutes=number), 503)
    for number in range(4):
        fail(store, other, noon + timedelta(days=1, minutes=number), 503)
    for query, first, second in (("", 6, 4), ("&tag=t", 6, 0), (f"&schedule_id={made}", 6, 0)):
        for view in ("month", "week"):
            found = marks(client.get(f"/calendar?view={view}&on=2026-03-02{query}").text)
            assert (found["2026-03-02"], found["2026-03-03"]) == ((0, first), (0, second))
    assert "left-out" not in client.get("/calendar?on=2026-03-02").text
    read = RunCalendars.read
    monkeypatch.setattr(
        RunCalendars, "read", lambda self, *of, **how: read(replace(self, most_runs=5), *of, **how)
    )
    page = client.get("/calendar?on=2026-03-02").text
    assert "more than 5 runs" in page.partition('data-test="left-out"')[2]


def test_each_run_counts_on_its_day_and_hour_in_the_zone_that_is_asked_for(
    client: FlaskClient, create: Create, store: Store
) -> None:
    made = create(tags=["t"])["id"]
    late = datetime(2026, 3, 2, 23, 30, tzinfo=UTC)
    for number in range(11):
        fail(store, made, late + timedelta(seconds=number), 503)

    def hour(query: str) -> tuple[str, str]:
        """From and to of the hour that has them all."""
        page = client.get(f"/calendar?view=week&on=2026-03-02{query}").text
        (link,) = re.findall(r'href="([^"]+)" title="11 failed" data-test="hour"', page)
        asked = parse_qs(urlsplit(html.unescape(link)).query)
        assert client.get(html.unescape(link)).text.count("data-open") == 11
        return asked["from"][0], asked["to"][0]

    assert hour("&tag=t") == ("2026-03-02T23:00", "2026-03-03T00:00")
    assert hour("&timezone=Asia/Kolkata") == ("2026-03-03T05:00", "2026-03-03T06:00")
    assert 'data-test="hour"' not in client.get("/calendar?view=week&on=2026-03-02&tag=other").text
    assert client.get("/calendar?timezone=Mars/Base").status_code == 422
    assert marks(client.get("/calendar?on=2026-03-02&timezone=Asia/Tokyo").text)["2026-03-03"] == (0, 11)


def test_an_hour_tells_by_its_look_how_it_went(client: FlaskClient, create: Create, store: Store) -> None:
    made = create()["id"]
    noon = datetime(2026, 3, 2, 12, tzinfo=UTC)

    def done(at: datetime) -> None:
        store.events.insert([event(at, made)], at, "made")
        ended = {"$set": {"state": "completed", "archived_at": at}, "$unset": {"due_at": ""}}
        store.mongo.collection("events").update_one({"schedule_id": made, "run_time": at}, ended)

    for hours, good, bad in ((0, 30, 0), (1, 30, 1), (2, 10, 2)):
        for number in range(good):
            done(noon + timedelta(hours=hours, seconds=number))
        for number in range(bad):
            fail(store, made, noon + timedelta(hours=hours, minutes=1, seconds=number), 503)
    page = client.get("/calendar?view=week&on=2026-03-02").text
    assert re.findall(r'class="(q[^"]*)"[^>]* data-test="hour"', page) == ["q q4", "q q4 qdot", "q qbad"]
    assert ">×2<" in page


def test_blackouts_and_closed_days_are_shown(client: FlaskClient, create: Create) -> None:
    client.put("/api/calendars/us", json={"country": "US"})
    create(calendar="us", name="Close", rrule="DTSTART:20401101T090000Z\nRRULE:FREQ=DAILY;COUNT=60")
    night = {"cron": "0 22 21 11 *", "duration_seconds": 7_200, "all": True}
    answer = client.put("/api/blackouts/night", json=night)
    assert answer.status_code in (200, 201), answer.text
    page = client.get("/calendar?view=week&on=2040-11-21").text
    assert "Thu 22 is closed: Thanksgiving Day (us)" in page
    assert page.count('class="bo"') == 2
    assert page.count(">night<") == 1


def test_the_ways_lead_to_other_days_and_keep_what_was_asked_for(client: FlaskClient) -> None:
    page = client.get("/calendar?view=week&on=2040-01-01&tag=t").text
    links = re.findall(r'href="([^"]+)"[^>]* data-test="(\w+)"', page)
    ways = {name: html.unescape(link) for link, name in links}
    assert parse_qs(urlsplit(ways["after"]).query) == {"view": ["week"], "on": ["2040-01-08"], "tag": ["t"]}
    assert parse_qs(urlsplit(ways["before"]).query)["on"] == ["2039-12-25"]
    assert "on" not in parse_qs(urlsplit(ways["today"]).query)
    dropped = html.unescape(re.findall(r'href="([^"]+)"[^>]* data-test="drop-tag"', page)[0])
    assert parse_qs(urlsplit(dropped).query) == {"view": ["week"], "on": ["2040-01-01"]}
    for old, new in (("agenda", "day"), ("hours", "week")):
        assert f'aria-current="true" data-test="view-{new}"' in client.get(f"/calendar?view={old}").text


def test_a_day_of_a_clock_change_has_all_its_hours(client: FlaskClient, create: Create) -> None:
    # In Berlin 28 October 2040 has 25 hours, and 25 March 23.
    create(rrule="DTSTART:20400101T000000Z\nRRULE:FREQ=HOURLY")
    for day, count in (("2040-10-28", 25), ("2040-03-25", 23)):
        found = marks(client.get(f"/calendar?view=week&on={day}&timezone=Europe/Berlin").text)
        assert found[day] == (count, 0)


def test_what_takes_long_to_count_is_estimated_first_and_says_so(
    client: FlaskClient, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    for minutes in (10, 20, 30):
        create(tags=["t"], rrule=f"DTSTART:20400101T00{minutes}00Z\nRRULE:FREQ=HOURLY;COUNT=24")
    address = "/calendar?view=day&on=2040-01-01&tag=t"
    read = RunCalendars.read
    monkeypatch.setattr(
        RunCalendars,
        "read",
        lambda self, *of, **how: read(replace(self, first_seconds=-1.0), *of, **how),
    )
    whole = client.get(address).text
    assert marks(whole)["2040-01-01"] == (72, 0)
    assert "first-answer" not in whole, "a few are counted at once"
    monkeypatch.setattr(forecast, "MANY_SCHEDULES", 2)
    first = client.get(address).text
    assert marks(first)["2040-01-01"] == (72, 0), "one stands for all"
    assert "1 of 3 active schedules, chosen by chance, stand for all" in first
    note = re.search(r'<div [^>]*hx-get="([^"]+)"[^>]*data-test="first-answer".*?</div>', first)
    assert note is not None
    assert f'href="{note[1]}"' in note[0], "without a script, too"
    told = client.get(html.unescape(note[1])).text
    assert marks(told)["2040-01-01"] == (72, 0)
    assert "first-answer" not in told
    assert "stand for all" not in told
    # Its links lead to first answers again.
    assert "whole=" not in told
