"""The frame of the pages: five places, and each page in one of them."""

import re

import pytest
from flask.testing import FlaskClient

from scheduler_app.api.pages import overview
from scheduler_app.api.pages.places import PLACES, ListedPage, Place, manual_address
from scheduler_app.usecases.questions import run_calendar

_PAGES = [(place, page) for place in PLACES for page in place.pages]


@pytest.mark.parametrize(("place", "page"), _PAGES, ids=[page.endpoint for _, page in _PAGES])
def test_each_page_stands_in_its_place(client: FlaskClient, place: Place, page: ListedPage) -> None:
    with client.application.test_request_context():
        address = page.address()
    shown = client.get(address).text
    main = re.search(r'<nav class="nav" aria-label="Main">(.*?)</nav>', shown, re.DOTALL)
    assert main is not None
    current = re.findall(r'aria-current="(?:page|true)">.*?</svg>(\w+)', main[1])
    assert current == [place.name]
    assert main[1].count("<a ") == 5
    assert '<div class="go" id="go" popover' in shown, "the search opens without a script"
    within = re.search(
        r'<nav class="(?:subnav|tabs)" aria-label="(?:Settings|Activity|Failures)".*?</nav>', shown, re.DOTALL
    )
    assert (within is not None) == (place.name in ("Settings", "Activity", "Failures"))
    if within and not page.is_form:
        assert f'aria-current="page">{page.name}</a>' in within[0]


@pytest.mark.parametrize("page", [page for _, page in _PAGES], ids=[page.endpoint for _, page in _PAGES])
def test_each_page_leads_to_its_part_of_the_manual_and_to_the_list_of_keys(
    client: FlaskClient, page: ListedPage
) -> None:
    with client.application.test_request_context():
        address = page.address()
    shown = client.get(address).text
    assert f'<a href="{manual_address(page.help)}" data-test="help">Help</a>' in shown
    assert '<div class="go" id="keys" popover' in shown, "the list opens without a script"
    assert 'href="/new-schedule" data-keys="n"' in shown


def test_what_lies_below_a_page_stands_where_it_does(client: FlaskClient) -> None:
    shown = client.get("/schedules/nothing").text
    assert re.search(r'<a href="/schedules" aria-current="[a-z]+">', shown)


def test_the_overview_shows_what_runs_now_and_next(client: FlaskClient) -> None:
    made = client.post(
        "/api/schedules",
        json={"name": "Once", "delay_seconds": 1_800, "callback_url": "http://127.0.0.1:9/"},
    ).get_json()
    strip = client.get("/overview/now-and-next").text
    assert f'href="/schedules/{made["id"]}">Once</a>' in strip, "what runs rarely is named"
    assert re.search(r"Most in the next two hours: .* with 1 run\.", strip)
    assert strip.count('class="o"') == 1
    assert client.get("/overview/now-and-next?x=1").status_code == 422


def test_the_strip_is_estimated_first_and_counted_whole_when_it_is_loaded_again(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "KEPT_TIMES", 0)
    for minutes in (10, 20):
        fields = {"name": "n", "delay_seconds": 60 * minutes, "callback_url": "http://127.0.0.1:9/"}
        assert client.post("/api/schedules", json=fields).status_code == 201
    monkeypatch.setattr(run_calendar, "MOST_EVALUATED_FIRST", 1)
    estimate = "1 of 2 active schedules, chosen by chance, stand for all"
    shown = [client.get("/overview/now-and-next").text for _ in range(2)]
    assert [estimate in each for each in shown] == [True, False]
