"""Phrases over HTTP: what they become, and what a refusal offers."""

from typing import Any

import pytest
from flask.testing import FlaskClient

SCHEDULES = "/api/schedules"
BODY = {"name": "test", "callback_url": "http://127.0.0.1:9/", "timezone": "Europe/Zurich"}
AT = {"at": "2026-11-18T09:15:30Z", "timezone": "Europe/Zurich"}


def preview(client: FlaskClient, phrase: str, **more: Any) -> tuple[int, dict[str, Any]]:
    answer = client.post(f"{SCHEDULES}/preview", json=AT | {"phrase": phrase} | more)
    return answer.status_code, answer.get_json()


def test_a_preview_counts_from_at_and_shows_what_the_phrase_became(shared_client: FlaskClient) -> None:
    status, shown = preview(shared_client, "every other Tuesday at 9:34", limit=2)
    assert status == 200
    assert shown["trigger"] == {"phrase": "every other Tuesday at 9:34"}
    assert "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU" in shown["recurrence"]
    assert [each["local"] for each in shown["occurrences"]] == [
        "2026-11-24T09:34:00+01:00",
        "2026-12-08T09:34:00+01:00",
    ]
    status, shown = preview(shared_client, "in 10 minutes")
    assert [each["run_time"] for each in shown["occurrences"]] == ["2026-11-18T09:25:30Z"]


def test_what_is_ambiguous_is_refused_with_its_readings(shared_client: FlaskClient) -> None:
    for path, more in ((f"{SCHEDULES}/preview", AT), (SCHEDULES, BODY)):
        answer = shared_client.post(path, json=more | {"phrase": "every second friday at 16:00"})
        assert answer.status_code == 422
        assert answer.mimetype == "application/problem+json"
        problem = answer.get_json()
        assert problem["errors"][0]["pointer"] == "/phrase"
        assert problem["not_understood"] == []
        first, second = problem["readings"]
        assert "FREQ=MONTHLY" in first["recurrence"]
        assert "INTERVAL=2" in second["recurrence"]
        for reading in (first, second):
            assert reading["description"]
            assert len(reading["occurrences"]) == 3
            taken = shared_client.post(
                f"{SCHEDULES}/preview",
                json={**AT, **more, "rrule": reading["recurrence"], "limit": 3}
                if path.endswith("preview")
                else {"rrule": reading["recurrence"], "limit": 3, "timezone": "Europe/Zurich"},
            ).get_json()
            assert [each["run_time"] for each in taken["occurrences"]] == [
                each["run_time"] for each in reading["occurrences"]
            ]


def test_an_ambiguous_date_is_refused_with_instants(shared_client: FlaskClient) -> None:
    status, problem = preview(shared_client, "03/04/2027 at 9:00")
    assert status == 422
    assert [reading["run_at"] for reading in problem["readings"]] == [
        "2027-03-04T08:00:00Z",
        "2027-04-03T07:00:00Z",
    ]
    assert all(reading["occurrences"][0]["run_time"] == reading["run_at"] for reading in problem["readings"])
    assert [reading["recurrence"].split("\n")[0] for reading in problem["readings"]] == [
        "DTSTART;TZID=Europe/Zurich:20270304T090000",
        "DTSTART;TZID=Europe/Zurich:20270403T090000",
    ]


def test_a_single_local_time_is_shown_in_its_zone_with_what_a_clock_change_does(
    shared_client: FlaskClient,
) -> None:
    status, shown = preview(shared_client, "on 28 march at 2:30")
    assert status == 200
    assert shown["description"] == "Once, on 28 March 2027 at 03:30 (Europe/Zurich)"
    (found,) = shown["occurrences"]
    assert found == {
        "run_time": "2027-03-28T01:30:00Z",
        "local": "2027-03-28T03:30:00+02:00",
        "dst": "gap_shifted",
    }
    assert "02:30 on 2027-03-28 does not exist in Europe/Zurich" in shown["warnings"][0]
    status, problem = preview(shared_client, "on 28 march at 2:30", gap="skip")
    assert status == 422
    assert problem["errors"][0]["pointer"] == "/phrase"
    assert "gap=skip" in problem["detail"] + str(problem["errors"])


@pytest.mark.parametrize("verb", ["POST", "PUT", "bulk", "preview"])
def test_words_that_are_not_understood_are_named(shared_client: FlaskClient, verb: str) -> None:
    given = BODY | {"phrase": "every day at 9am and delete all Files"}
    if verb == "POST":
        problem = shared_client.post(SCHEDULES, json=given).get_json()
    elif verb == "PUT":
        made = shared_client.post(SCHEDULES, json=BODY | {"rrule": "FREQ=DAILY"}).get_json()
        answer = shared_client.put(f"{SCHEDULES}/{made['id']}", json={"phrase": given["phrase"]})
        assert answer.status_code == 422
        problem = answer.get_json()
    elif verb == "bulk":
        answer = shared_client.post(f"{SCHEDULES}/bulk", json={"schedules": [given]})
        problem = answer.get_json()["results"][0]["problem"]
    else:
        problem = preview(shared_client, given["phrase"])[1]
    assert problem["status"] == 422
    assert problem["not_understood"] == ["delete", "all", "Files"]
    (reading,) = problem["readings"]
    assert reading["description"].startswith("Every day at 09:00")


def test_a_phrase_is_kept_as_it_was_written(shared_client: FlaskClient) -> None:
    made = shared_client.post(SCHEDULES, json=BODY | {"phrase": "Last business day of the month at 16:30"})
    assert made.status_code == 201, made.text
    shown = shared_client.get(f"{SCHEDULES}/{made.get_json()['id']}").get_json()
    assert shown["phrase"] == "Last business day of the month at 16:30"
    assert "BYSETPOS=-1" in shown["recurrence"]
