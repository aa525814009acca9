"""When will it really run? The answer of `preview`."""

from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

ZONED = {
    "rrule": "DTSTART:20261020T023000\nRRULE:FREQ=DAILY",
    "timezone": "Europe/Zurich",
    "after": "2026-10-23T12:00:00Z",
    "limit": 3,
}


def test_a_preview_shows_utc_and_the_wall_clock_across_a_clock_change(client: FlaskClient) -> None:
    answer = client.post("/api/schedules/preview", json=ZONED)
    assert answer.status_code == 200
    shown = answer.get_json()
    assert shown["occurrences"] == [
        {"run_time": "2026-10-24T00:30:00Z", "local": "2026-10-24T02:30:00+02:00"},
        {"run_time": "2026-10-25T00:30:00Z", "local": "2026-10-25T02:30:00+02:00", "dst": "overlap_first"},
        {"run_time": "2026-10-26T01:30:00Z", "local": "2026-10-26T02:30:00+01:00"},
    ]
    assert "Every day" in shown["description"]
    assert "DTSTART" in shown["recurrence"]
    assert isinstance(shown["warnings"], list)
    last = client.post("/api/schedules/preview", json=ZONED | {"overlap": "last"}).get_json()
    assert last["occurrences"][1]["run_time"] == "2026-10-25T01:30:00Z"


def test_a_preview_of_a_saved_schedule_is_the_preview_of_its_rule(
    client: FlaskClient, create: Callable[..., dict[str, Any]]
) -> None:
    made = create(rrule=ZONED["rrule"], timezone="Europe/Zurich")["id"]
    client.post(f"/api/schedules/{made}/pause")
    query = {"after": ZONED["after"], "limit": 3}
    saved = client.get(f"/api/schedules/{made}/preview", query_string=query)
    assert saved.status_code == 200
    unsaved = client.post("/api/schedules/preview", json=ZONED).get_json()
    assert saved.get_json()["occurrences"] == unsaved["occurrences"]


def test_a_preview_of_a_single_instant_is_that_instant(
    client: FlaskClient, create: Callable[..., dict[str, Any]]
) -> None:
    made = create(run_at="2040-01-01T00:00:00.250Z")["id"]
    shown = client.get(f"/api/schedules/{made}/preview").get_json()
    assert [each["run_time"] for each in shown["occurrences"]] == ["2040-01-01T00:00:00.250Z"]


def test_after_is_exclusive_and_ten_are_shown_by_default(client: FlaskClient) -> None:
    rule = {"rrule": "DTSTART:20260101T000000Z\nRRULE:FREQ=HOURLY", "after": "2026-01-01T05:00:00Z"}
    shown = client.post("/api/schedules/preview", json=rule).get_json()["occurrences"]
    assert (shown[0]["run_time"], len(shown)) == ("2026-01-01T06:00:00Z", 10)


@pytest.mark.parametrize("after", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2999-01-01T00:00:00Z"])
def test_the_ends_of_the_calendar_are_answered(client: FlaskClient, after: str) -> None:
    for rule in ("FREQ=DAILY", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "FREQ=SECONDLY;COUNT=3"):
        answer = client.post("/api/schedules/preview", json={"rrule": rule, "after": after, "limit": 500})
        assert answer.status_code in (200, 422), answer.text


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"rrule": "FREQ=NEVER"}, "/rrule"),
        ({"timezone": "Mars/Phobos"}, "/timezone"),
        ({"limit": 1001}, "/limit"),
        ({"until": "2026-10-23T11:59:59Z"}, "/until"),
        ({"until": "later"}, "/until"),
        ({"display_timezone": "Mars/Phobos"}, "/display_timezone"),
        ({"after": "soon"}, "/after"),
        ({"name": "x"}, "/name"),
    ],
)
def test_a_wrong_field_of_a_preview_is_named(
    client: FlaskClient, fields: dict[str, Any], pointer: str
) -> None:
    answer = client.post("/api/schedules/preview", json=ZONED | fields)
    assert answer.status_code == 422
    assert answer.get_json()["errors"][0]["pointer"] == pointer


def test_until_is_inclusive(client: FlaskClient) -> None:
    answer = client.post("/api/schedules/preview", json=ZONED | {"until": "2026-10-25T00:30:00Z"})
    assert [each["run_time"] for each in answer.get_json()["occurrences"]] == [
        "2026-10-24T00:30:00Z",
        "2026-10-25T00:30:00Z",
    ]
    far = client.post("/api/schedules/preview", json=ZONED | {"until": "9999-12-31T23:59:59Z"})
    assert len(far.get_json()["occurrences"]) == 3


def test_local_times_are_shown_in_the_zone_that_is_asked_for(
    client: FlaskClient, create: Callable[..., dict[str, Any]]
) -> None:
    asked = {"display_timezone": "Asia/Tokyo", "limit": 1}
    shown = client.post("/api/schedules/preview", json=ZONED | asked).get_json()
    assert shown["occurrences"] == [
        {"run_time": "2026-10-24T00:30:00Z", "local": "2026-10-24T09:30:00+09:00"}
    ]
    assert "Europe/Zurich" in shown["recurrence"]
    made = create(run_at="2040-01-01T00:00:00Z")["id"]
    saved = client.get(f"/api/schedules/{made}/preview", query_string=asked).get_json()
    assert saved["occurrences"][0]["local"] == "2040-01-01T09:00:00+09:00"


def test_a_thousand_occurrences_are_the_most_of_one_answer(client: FlaskClient) -> None:
    answer = client.post("/api/schedules/preview", json={"every_seconds": 60, "limit": 1000})
    assert len(answer.get_json()["occurrences"]) == 1000


def test_a_trigger_counts_from_the_instant_at_which_it_is_given(client: FlaskClient) -> None:
    at = {"at": "2030-01-01T00:00:00Z", "limit": 1}
    for given, run_time in (
        ({"delay_seconds": 90}, "2030-01-01T00:01:30Z"),
        ({"every_seconds": 60}, "2030-01-01T00:01:00Z"),
        ({"phrase": "in 10 minutes"}, "2030-01-01T00:10:00Z"),
        ({"cron": "0 9 * * *"}, "2030-01-01T09:00:00Z"),
    ):
        shown = client.post("/api/schedules/preview", json=given | at).get_json()
        assert [each["run_time"] for each in shown["occurrences"]] == [run_time]
