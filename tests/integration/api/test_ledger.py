"""The ledger by the API, the client and the command line."""

from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.config import Settings
from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.ledger import HOUR
from scheduler_app.domain.tenant import Tenant
from scheduler_app.store import Store
from scheduler_app.usecases.questions import ledger as ledger_questions
from scheduler_app.witness.process import Witness
from tests.builders import event, message, schedule
from tests.integration.api.conftest import ToldTime
from tests.integration.conftest import NOON
from tests.processes import PATIENCE_SECONDS

MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def _no_tag_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_questions, "SECONDS_OF_TAG", PATIENCE_SECONDS)


@pytest.fixture
def told(store: Store) -> Store:
    """Two hours with lines: in the first one an event is missing and another one is unexplained."""
    for name in ("s1", "s2"):
        hourly = {
            "rrule": "FREQ=HOURLY;BYMINUTE=15;BYSECOND=0",
            "tags": ("customer:acme",) if name == "s1" else (),
        }
        assert store.schedules.insert(schedule(NOON - HOUR, name, **hourly))
    made = [event(NOON + hour * HOUR + 15 * MINUTE, name) for name in ("s1", "s2") for hour in range(2)]
    store.events.insert([*made[1:], event(NOON + MINUTE, "s2", revision=7)], NOON, "made")
    store.messages.insert(message(NOON + 2 * MINUTE), NOON)
    witness = Witness(store.history, store.ledger, store.causes, store.tenants, look_back=timedelta(days=7))
    for hour in (1, 2):
        witness.turn(NOON + hour * HOUR + 10 * MINUTE)
    return store


def hours(client: FlaskClient, **query: str) -> list[dict[str, Any]]:
    asked = {"from": "2026-03-02T12:00:00Z", "to": "2026-03-02T14:00:00Z"} | query
    answer = client.get("/api/v1/ledger", query_string=asked)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.get_json()["hours"]
    return found


@pytest.mark.usefixtures("told")
def test_the_hours_say_what_was_owed_and_name_what_is_missing(client: FlaskClient) -> None:
    first, second = hours(client)
    assert (first["hour"], second["hour"]) == ("2026-03-02T12:00:00Z", "2026-03-02T13:00:00Z")
    assert (first["owed"], first["open"], first["missing"], first["unexplained"]) == (3, 2, 1, 1)
    assert first["missing_ids"] == ["s1-1-20260302T121500Z"]
    assert first["unexplained_ids"] == ["s2-7-20260302T120100Z"]
    assert (second["owed"], second["missing"]) == (2, 0)
    assert len(first["hash"]) == 64


@pytest.mark.usefixtures("told")
def test_a_tag_s_hours_are_counted_anew(client: FlaskClient, time: ToldTime) -> None:
    time.at = NOON + 2 * HOUR + 10 * MINUTE
    first, second = hours(client, tag="customer:acme")
    assert (first["owed"], first["missing"]) == (1, 1)
    assert (second["owed"], second["open"]) == (1, 1)
    assert "hash" not in first


@pytest.mark.usefixtures("told")
def test_of_a_tag_no_hour_is_judged_before_beats_and_workers_had_time_for_it(
    client: FlaskClient, time: ToldTime
) -> None:
    for minutes, judged in ((9, []), (10, ["2026-03-02T12:00:00Z"]), (69, ["2026-03-02T12:00:00Z"])):
        time.at = NOON + HOUR + minutes * MINUTE
        assert [each["hour"] for each in hours(client, tag="customer:acme")] == judged


@pytest.mark.parametrize("kept", [None, 1, 90], ids=["kept as by the settings", "kept for less", "for more"])
def test_of_a_tag_no_hour_is_judged_whose_events_may_be_removed(
    client: FlaskClient, told: Store, settings: Settings, time: ToldTime, kept: int | None
) -> None:
    told.tenants.put(Tenant(TENANT, None, retention_days=kept))
    time.at = NOON + timedelta(days=min(kept or 90, settings.retention_days), minutes=30)
    # One that was withdrawn an hour before its time is removed an hour before the others.
    assert [each["hour"] for each in hours(client, to="2026-03-02T15:00:00Z", tag="customer:acme")] == [
        "2026-03-02T14:00:00Z"
    ]
    query = "from=2026-03-02T12:00:00Z&to=2026-03-02T14:00:00Z"
    refused = client.get(f"/api/v1/ledger?{query}&tag=customer:acme")
    assert refused.status_code == 422
    assert "must come after 2026-03-02T14:00:00Z" in refused.get_json()["detail"]
    assert len(client.get(f"/api/v1/ledger?{query}").get_json()["hours"]) == 2, "lines stay"


@pytest.mark.usefixtures("told")
def test_a_tag_of_too_many_schedules_is_refused(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_questions, "MOST_TAGGED", 0)
    answer = client.get("/api/v1/ledger?tag=customer:acme")
    assert answer.status_code == 422
    assert "tag" in answer.get_json()["detail"]


@pytest.mark.usefixtures("told")
def test_the_hours_are_a_file_for_a_spreadsheet(client: FlaskClient) -> None:
    answer = client.get("/api/v1/ledger?format=csv&from=2026-03-02T12:00:00Z&to=2026-03-02T14:00:00Z")
    assert answer.mimetype == "text/csv"
    lines = answer.text.splitlines()
    assert lines[0].startswith("hour,owed,completed,")
    assert lines[1].startswith("2026-03-02T12:00:00Z,3,0,")
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("from=2026-03-02T12:00:00Z&to=2026-03-02T12:00:00Z", "to"),
        ("from=2026-01-01T00:00:00Z&to=2026-03-02T12:00:00Z", "to"),
        ("from=2026-03-01T00:00:00Z&to=2026-03-03T00:00:00Z&tag=a", "to"),
        ("format=xml", "format"),
    ],
)
def test_too_long_a_time_is_refused(client: FlaskClient, query: str, field: str) -> None:
    answer = client.get(f"/api/v1/ledger?{query}")
    assert answer.status_code == 422
    assert answer.get_json()["errors"][0]["pointer"].endswith(field)


def test_a_changed_line_is_told(client: FlaskClient, told: Store) -> None:
    fine = client.get("/api/v1/ledger/verification").get_json()
    assert fine["ok"] is True
    assert fine["lines"] >= 2
    told.mongo.collection("ledger").update_one({"tenant": TENANT, "number": 2}, {"$set": {"counts.owed": 9}})
    wrong = client.get("/api/v1/ledger/verification").get_json()
    assert (wrong["ok"], wrong["lines"]) == (False, 1)
    assert "line 2" in wrong["wrong"]


def test_a_long_ledger_is_verified_in_parts(
    client: FlaskClient, told: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_questions, "MOST_VERIFIED", 1)
    first = client.get("/api/v1/ledger/verification").get_json()
    assert (first["lines"], first["ok"], first["next"]) == (1, True, 1)
    told.mongo.collection("ledger").update_one({"number": 2}, {"$set": {"previous": "0" * 64}})
    second = client.get("/api/v1/ledger/verification?after=1").get_json()
    assert (second["lines"], second["ok"]) == (0, False)
    assert client.get("/api/v1/ledger/verification?after=9").get_json()["lines"] == 0


@pytest.mark.usefixtures("told")
def test_a_tag_that_takes_too_long_is_refused(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_questions, "SECONDS_OF_TAG", -1.0)
    answer = client.get("/api/v1/ledger?tag=customer:acme")
    assert answer.status_code == 422
    assert "fewer hours" in answer.get_json()["detail"]


def test_a_line_that_cannot_be_read_is_told_and_not_an_error_of_ours(
    client: FlaskClient, told: Store
) -> None:
    told.mongo.collection("ledger").update_one({"number": 2}, {"$set": {"turn": "first"}})
    answer = client.get("/api/v1/ledger/verification")
    assert answer.status_code == 409
    assert "turn" in answer.get_json()["detail"]
