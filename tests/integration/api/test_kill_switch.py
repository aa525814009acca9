"""The kill switch over HTTP, the client and what operators read of it."""

from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient
from structlog.testing import capture_logs

from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.kill_switch import Scope, Target
from scheduler_app.health.check import Status
from scheduler_app.health.stops import check_kill_switches
from scheduler_app.store import Store, stops
from scheduler_app.store.stops import MAX_SWITCHES

Create = Callable[..., dict[str, Any]]
PATH = "/api/kill-switch"


def listed(client: FlaskClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(PATH).get_json()["kill_switches"]
    return found


def test_it_says_what_it_stopped_and_changes_no_schedule(client: FlaskClient, create: Create) -> None:
    made = [create(tags=["billing"]) for _ in range(3)]
    by_hand = create(tags=["billing"])["id"]
    client.post(f"/api/schedules/{by_hand}/pause", json={"note": "by hand"})
    create()
    answer = client.put(PATH, json={"tag": "billing", "note": "restore"})
    assert answer.status_code == 200, answer.text
    on = answer.get_json()
    assert (on["tag"], on["note"], on["result"]) == ("billing", "restore", "on")
    assert on["stopped"] == {"schedules": 3, "at_least": False, "events": 0, "events_at_least": False}
    assert "warning" not in on
    assert client.put(PATH, json={"all": True}).get_json()["stopped"]["schedules"] == 4
    assert [{"all", "tag"} & each.keys() for each in listed(client)] == [{"all"}, {"tag"}]
    assert client.get(f"/api/schedules/{made[0]['id']}").get_json()["state"] == "active"
    for which in ("tag=billing", "all=true"):
        assert client.delete(f"{PATH}?{which}").status_code == 200
    assert listed(client) == []
    kept = client.get(f"/api/schedules/{by_hand}").get_json()
    assert (kept["state"], kept["note"]) == ("paused", "by hand")


def test_a_destination_is_stopped_by_its_name(client: FlaskClient, create: Create) -> None:
    client.put("/api/destinations/erp", json={"url": "http://127.0.0.1:9/"})
    body = {"name": "n", "destination": "erp", "run_at": "2039-01-01T00:00:00Z"}
    assert client.post("/api/schedules", json=body).status_code == 201
    create()
    answer = client.put(PATH, json={"destination": "erp"}).get_json()
    assert (answer["stopped"]["schedules"], answer["stopped"]["at_least"]) == (1, False)


def test_turning_it_on_again_sets_the_note_and_keeps_since_when(client: FlaskClient) -> None:
    first = client.put(PATH, json={"all": True, "note": "first"}).get_json()
    again = client.put(PATH, json={"all": True, "note": "second"}).get_json()
    assert (again["result"], again["since"], again["note"]) == ("was on", first["since"], "second")


def test_a_dry_run_counts_and_stops_nothing(client: FlaskClient, create: Create) -> None:
    create(tags=["t"])
    answer = client.put(f"{PATH}?dry_run=true", json={"tag": "t"}).get_json()
    assert (answer["stopped"]["schedules"], answer["dry_run"]) == (1, True)
    assert listed(client) == []
    client.put(PATH, json={"tag": "t"})
    assert client.delete(f"{PATH}?tag=t&dry_run=true").status_code == 200
    assert len(listed(client)) == 1


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/all"),
        ({"all": False}, "/all"),
        ({"all": True, "tag": "x"}, "/tag"),
        ({"tag": "x", "destination": "y"}, "/destination"),
        ({"tag": ""}, "/tag"),
        ({"tag": "x" * 65}, "/tag"),
        ({"destination": "no name"}, "/destination"),
        ({"everything": True}, "/everything"),
        ({"all": True, "note": "x" * 501}, "/note"),
    ],
    ids=str,
)
def test_it_is_told_one_thing_to_stop(client: FlaskClient, body: dict[str, Any], pointer: str) -> None:
    answer = client.put(PATH, json=body)
    assert answer.status_code == 422, answer.text
    assert pointer in [each["pointer"] for each in answer.get_json()["errors"]]
    assert listed(client) == []


def test_one_that_is_not_on_cannot_be_turned_off(client: FlaskClient) -> None:
    assert client.delete(f"{PATH}?tag=x").status_code == 404
    assert client.delete(PATH).status_code == 422


def test_there_are_so_many_at_most_and_everything_can_be_stopped_by_one(client: FlaskClient) -> None:
    for number in range(MAX_SWITCHES):
        assert client.put(PATH, json={"tag": f"t{number}"}).status_code == 200
    refused = client.put(PATH, json={"tag": "one-more"})
    assert refused.status_code == 409
    assert client.put(PATH, json={"tag": "t0", "note": "still"}).status_code == 200
    assert client.put(PATH, json={"all": True}).status_code == 200


def test_an_operator_sees_it(client: FlaskClient, store: Store) -> None:
    client.put(PATH, json={"tag": "billing"})
    assert "scheduler_kill_switches 1.0" in client.get("/metrics").text
    assert "the tag billing" in client.get("/").text
    check = check_kill_switches(sorted(store.kill_switches.everybodys().targets, key=str))
    assert check.status is Status.NOTE
    assert "the tag billing" in check.found
    assert check_kill_switches([]).status is Status.OK


def test_one_whose_id_names_nothing_is_reported(client: FlaskClient, store: Store) -> None:
    client.put(PATH, json={"tag": "billing"})
    store.mongo.collection("kill_switches").insert_many([{"_id": "default/planet/x"}, {"_id": 5}])
    with capture_logs() as lines:
        on = store.kill_switches.everybodys().targets
        assert store.kill_switches.everybodys().targets == on
    reported = [line["kill_switch"] for line in lines if line["event"] == "kill_switch.corrupt"]
    assert sorted(reported) == ["5", "default/planet/x"]
    assert [str(each) for each in on] == ["the tag billing"]
    check = check_kill_switches(list(on), store.kill_switches.corrupt())
    assert check.status is Status.WRONG
    assert "default/planet/x" in check.found


def test_why_names_the_switch_that_holds_an_event(client: FlaskClient, store: Store, create: Create) -> None:
    made = create(run_at="2039-01-01T00:00:00Z", tags=["t"])
    client.put(PATH, json={"tag": "t"})
    why = client.get(f"/api/schedules/{made['id']}/why?at=2039-01-01T00:00:00Z").get_json()
    assert any("kill switch of the tag t" in each for each in why["warnings"])
    assert Target(TENANT, Scope.TAG, "t") in store.kill_switches.everybodys().targets


def test_it_says_how_many_events_wait_that_it_stops(
    client: FlaskClient, create: Create, store: Store
) -> None:
    ids = [create(tags=["billing"])["id"] for _ in range(2)]
    for each in (ids[0], ids[0], ids[1], create()["id"]):
        assert client.post(f"/api/schedules/{each}/trigger").status_code == 202
    client.put("/api/destinations/erp", json={"url": "http://127.0.0.1:9/"})
    client.post("/api/messages", json={"destination": "erp", "payload": {}, "delay_seconds": 600})
    for which, events in (({"tag": "billing"}, 3), ({"destination": "erp"}, 1), ({"all": True}, 5)):
        stopped = client.put(PATH, json=which).get_json()
        assert (stopped["stopped"]["events"], stopped["stopped"]["events_at_least"]) == (events, False), which
        assert "warning" not in stopped


@pytest.mark.parametrize("limit", ["MOST_COUNTED", "SCHEDULES_COUNTED"])
def test_where_it_does_not_count_all_it_says_so(
    client: FlaskClient, create: Create, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(stops, limit, 2)
    for _ in range(3):
        each = create(tags=["billing"])["id"]
        client.post(f"/api/schedules/{each}/trigger")
    stopped = client.put(PATH, json={"tag": "billing"}).get_json()["stopped"]
    assert (stopped["events"], stopped["events_at_least"]) == (2, True)


@pytest.mark.parametrize(
    ("which", "warning"),
    [
        (
            {"tag": "biling"},
            "no active schedule has the tag biling, and no event of one waits; there is billing",
        ),
        ({"tag": "BILLING"}, "there is billing"),
        (
            {"tag": "quite-different"},
            "no active schedule has the tag quite-different, and no event of one waits",
        ),
        ({"destination": "epr"}, "names the destination epr, and no event waits for it; there is erp"),
    ],
    ids=str,
)
def test_one_that_stops_nothing_warns_with_the_name_that_comes_near(
    client: FlaskClient, create: Create, which: dict[str, str], warning: str
) -> None:
    create(tags=["a", "billing", "zoo"])
    create(tags=["monthly"])
    client.put("/api/destinations/erp", json={"url": "http://127.0.0.1:9/"})
    answer = client.put(PATH, json=which).get_json()
    assert (answer["stopped"]["schedules"], answer["stopped"]["events"]) == (0, 0)
    assert answer["warning"].endswith(warning)


def test_tags_are_found_one_after_the_other(create: Create, store: Store) -> None:
    create(tags=["zoo", "b", "a"])
    create(tags=["c", "b"])
    create()
    assert store.tags.in_order(TENANT, limit=9) == ["a", "b", "c", "zoo"]
