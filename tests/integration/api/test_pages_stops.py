"""The page of kill switches and blackouts, and the banner on every page while a switch is on."""

import re
from collections.abc import Callable

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.domain.kill_switch import KillSwitches
from scheduler_app.usecases import stops
from tests.integration.api.page_forms import form_token
from tests.integration.api.test_pages_access import sign_in

KEY = "0123456789abcdef-w"


@pytest.fixture(autouse=True)
def looked_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stops, "NOTICE_SECONDS", 0.0)


def test_a_switch_is_turned_on_shown_on_every_page_and_turned_off(make_api: Callable[..., Flask]) -> None:
    client = make_api(api_keys=(f"ann:{KEY}:write",)).test_client()
    sign_in(client, KEY)
    form = {"form_token": form_token(client, "/stops")}
    assert 'data-test="kill-switch"' not in client.get("/").text
    on = {"scope": "tag", "named": "billing", "note": "restore"}
    assert client.post("/stops/on", data=form | on).status_code == 303
    overview = client.get("/").text
    for said in (
        "The stop switch of the tag billing is on",
        "Turned on by ann",
        "“restore”",
        "Stopped since",
    ):
        assert said in overview
    for path in ("/schedules", "/new-message", "/stops", "/schedules/none-such"):
        banner = re.search(r'<p [^>]*data-test="kill-switch">(.*?)</p>', client.get(path).text)
        assert banner, path
        for said in ("the tag billing", " by ann", "“restore”", "On since"):
            assert said in banner[1], path
    (shown,) = client.get("/api/kill-switch", headers={"X-API-Key": KEY}).get_json()["kill_switches"]
    assert shown["by"] == "ann"
    stranger = make_api(api_keys=(f"ann:{KEY}:write",)).test_client()
    for path in ("/sign-in", "/nothing-here"):
        assert "billing" not in stranger.get(path).text, path
    assert client.post("/stops/off", data=form | {"scope": "tag", "named": "billing"}).status_code == 303
    assert 'data-test="kill-switch"' not in client.get("/").text


def test_every_page_of_this_process_says_at_once_what_was_stopped_on_one(
    make_api: Callable[..., Flask], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stops, "NOTICE_SECONDS", 60.0)
    client = make_api().test_client()
    form = {"form_token": form_token(client, "/stops"), "scope": "tag", "named": "billing"}
    for deed, shown in (("on", True), ("off", False)):
        client.post(f"/stops/{deed}", data=form)
        assert ('data-test="kill-switch"' in client.get("/").text) is shown, deed


def test_what_a_switch_must_name_is_said(client: FlaskClient) -> None:
    form = {"form_token": form_token(client, "/stops"), "scope": "destination"}
    form["note"] = "a restore"
    refused = client.post("/stops/on", data=form)
    assert (refused.status_code, 'data-test="switch-refused"' in refused.text) == (422, True)
    for kept in ('<option value="destination" selected>', 'name="note" value="a restore"'):
        assert kept in refused.text
    assert client.get("/api/kill-switch").get_json()["kill_switches"] == []


def test_a_page_asks_nothing_more_of_the_database_while_no_switch_is_on(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = client.application.extensions["scheduler"]
    asked = list[str]()

    def all_of_them() -> KillSwitches:
        asked.append("all")
        return KillSwitches()

    def of_one(*_: object, **__: object) -> list[object]:
        asked.append("of one")
        return []

    with monkeypatch.context() as watched:
        watched.setattr(made.kill_switch_notice._view, "seconds", 60.0)
        watched.setattr(made.kill_switch_notice._view, "_read", all_of_them)
        watched.setattr(type(made.store.kill_switches), "of", of_one)
        for _ in range(3):
            client.get("/calendars")
    assert asked == ["all"], "what is known holds for a while"


def test_a_blackout_is_set_shown_and_deleted(client: FlaskClient) -> None:
    form = {"form_token": form_token(client, "/stops")}
    given = {
        "name": "maintenance",
        "when": "every sunday at 2:00",
        "timezone": "Europe/Berlin",
        "minutes": "90",
        "scope": "tag",
        "named": "billing",
        "policy": "skip",
        "note": "backups",
    }
    assert client.post("/stops/blackouts", data=form | given).status_code == 303
    found = client.get("/api/blackouts/maintenance").get_json()
    assert (found["duration_seconds"], found["tag"], found["policy"]) == (5_400, "billing", "skip")
    page = client.get("/stops").text
    for said in ("maintenance", "the tag billing", "90 min", "is left out", "backups"):
        assert said in page
    assert client.post("/stops/blackouts/delete", data=form | {"name": "maintenance"}).status_code == 303
    assert 'data-test="no-blackout"' in client.get("/stops").text


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"when": ""}, "when"),
        ({"when": "some blue moon"}, "when"),
        ({"minutes": "long"}, "minutes"),
        ({"minutes": "600000"}, "minutes"),
        ({"scope": "tag", "named": ""}, "named"),
        ({"name": "a b"}, "name"),
        ({"timezone": "Berlin"}, "timezone"),
        ({"when": "every hour", "minutes": "60"}, "minutes"),
    ],
)
def test_what_is_wrong_with_a_blackout_stands_beside_its_field(
    client: FlaskClient, wrong: dict[str, str], field: str
) -> None:
    form = {"form_token": form_token(client, "/stops"), "name": "n", "when": "every sunday", "minutes": "9"}
    refused = client.post("/stops/blackouts", data=form | wrong)
    assert refused.status_code == 422, refused.text
    assert f'data-test="wrong-{field}"' in refused.text
    assert client.get("/api/blackouts").get_json()["blackouts"] == []


def test_after_turning_it_on_the_page_says_what_it_stops_and_warns_where_that_is_nothing(
    client: FlaskClient, create: Callable[..., dict[str, object]]
) -> None:
    create(tags=["billing"])
    form = {"form_token": form_token(client, "/stops"), "scope": "tag"}
    page = client.post("/stops/on", data=form | {"named": "billing"}, follow_redirects=True).text
    assert "1 active schedule and 0 waiting runs of the tag billing are stopped now" in page
    assert 'data-test="stops-nothing"' not in page
    page = client.post("/stops/on", data=form | {"named": "biling"}, follow_redirects=True).text
    assert "0 active schedules" in page
    assert re.search(r'data-test="stops-nothing">[^<]*the tag biling[^<]*there is billing\.<', page)
