"""In which zone the pages show times: the browser's, or the one that a person has chosen."""

import re
from datetime import UTC, datetime

import pytest
from flask.testing import FlaskClient

from scheduler_app.api.pages.times import from_viewer
from tests.integration.api.page_forms import form_token

#: Half an hour from all others, and without clock changes.
KOLKATA = "Asia/Kolkata"


def next_runs(client: FlaskClient, path: str) -> list[tuple[str, str]]:
    """Each time of a page: what it says, and what stands beside it."""
    return re.findall(
        r'<time datetime="[^"]*2040-01-05[^"]*" title="([^"]*)">([^<]*)<', client.get(path).text
    )


@pytest.fixture
def schedule_path(client: FlaskClient) -> str:
    made = client.post(
        "/api/schedules",
        json={
            "name": "n",
            "run_at": "2040-01-05T06:00:00Z",
            "timezone": "Asia/Tokyo",
            "callback_url": "http://127.0.0.1:9/",
        },
    )
    assert made.status_code == 201, made.text
    return f"/schedules/{made.get_json()['id']}"


def test_times_are_in_the_browser_s_zone_with_utc_and_the_schedule_s_beside(
    client: FlaskClient, schedule_path: str
) -> None:
    assert "Thu 5 Jan 2040 06:00" in {shown for _, shown in next_runs(client, schedule_path)}
    client.set_cookie("scheduler_zone", KOLKATA)
    beside = {shown: title for title, shown in next_runs(client, schedule_path)}["Thu 5 Jan 2040 11:30"]
    assert "2040-01-05 06:00:00 UTC" in beside
    assert "15:00 Asia/Tokyo" in beside
    assert f"Times: {KOLKATA}" in client.get("/").text


def test_a_zone_that_a_person_chose_counts_more_and_is_given_back(
    client: FlaskClient, schedule_path: str
) -> None:
    client.set_cookie("scheduler_zone", KOLKATA)
    token = form_token(client, "/you")
    saved = client.post("/you", data={"form_token": token, "timezone": "America/Lima"})
    assert saved.status_code == 303
    assert {"HttpOnly", "SameSite=Strict"} <= set(saved.headers["Set-Cookie"].split("; "))
    assert "Thu 5 Jan 2040 01:00" in {shown for _, shown in next_runs(client, schedule_path)}
    assert 'value="America/Lima"' in client.get("/you").text
    client.post("/you", data={"form_token": token})
    assert "Thu 5 Jan 2040 11:30" in {shown for _, shown in next_runs(client, schedule_path)}


def test_a_zone_that_is_none_is_refused_and_a_cookie_with_one_passed_over(client: FlaskClient) -> None:
    token = form_token(client, "/you")
    refused = client.post("/you", data={"form_token": token, "timezone": "Mars/Olympus"})
    assert (refused.status_code, "Mars/Olympus" in refused.text) == (422, True)
    client.set_cookie("scheduler_zone", "Mars/Olympus")
    assert "Times: UTC" in client.get("/").text


def test_a_local_time_that_is_written_is_one_of_whoever_looks(client: FlaskClient) -> None:
    written, half_past_six = datetime(2026, 3, 2, 12), datetime(2026, 3, 2, 6, 30, tzinfo=UTC)  # noqa: DTZ001
    with client.application.test_request_context(headers={"Cookie": f"scheduler_zone={KOLKATA}"}):
        assert from_viewer(written) == half_past_six
        assert from_viewer(half_past_six) == half_past_six
    client.set_cookie("scheduler_zone", KOLKATA)
    assert f'name="timezone" value="{KOLKATA}"' in client.get("/events").text
