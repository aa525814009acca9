"""Cron expressions over HTTP: what was written is shown beside what it became."""

import pytest
from flask.testing import FlaskClient

SCHEDULES = "/api/schedules"
BODY = {"name": "test", "callback_url": "http://127.0.0.1:9/", "timezone": "America/New_York"}
WEEKDAYS = "RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0"


def test_a_schedule_shows_its_expression_and_the_rule_that_it_became(shared_client: FlaskClient) -> None:
    made = shared_client.post(SCHEDULES, json=BODY | {"cron": "0 9 * * mon-fri"})
    assert made.status_code == 201, made.text
    shown = shared_client.get(f"{SCHEDULES}/{made.get_json()['id']}").get_json()
    assert shown["cron"] == "0 9 * * mon-fri"
    assert "rrule" not in shown
    assert shown["recurrence"].endswith(WEEKDAYS)
    assert shown["description"] == "Monday to Friday at 09:00 (America/New_York)"


def test_a_preview_shows_both_and_what_may_surprise(shared_client: FlaskClient) -> None:
    asked = {"cron": "*/7 2 * * *", "timezone": "America/New_York", "at": "2026-03-07T12:00:00Z"}
    answer = shared_client.post(f"{SCHEDULES}/preview", json=asked).get_json()
    assert answer["trigger"] == {"cron": "*/7 2 * * *"}
    assert "RRULE:FREQ=HOURLY;BYHOUR=2;BYMINUTE=0,7," in answer["recurrence"]
    # The clock shows no hour 2 on the 8th.
    assert [each["local"][:16] for each in answer["occurrences"][:2]] == [
        "2026-03-09T02:00",
        "2026-03-09T02:07",
    ]
    assert any("begins anew each hour" in warning for warning in answer["warnings"])


def test_an_edit_from_six_fields_to_five_takes_cron_seconds_away_with_null(
    shared_client: FlaskClient,
) -> None:
    given = {"cron": "0 0 9 * * 1-5", "cron_seconds": "first"}
    made = shared_client.post(SCHEDULES, json=BODY | given).get_json()
    address = f"{SCHEDULES}/{made['id']}"
    refused = shared_client.put(address, json={"cron": "0 9 * * 1-5"})
    assert refused.status_code == 422
    assert refused.get_json()["errors"][0]["pointer"] == "/cron_seconds"
    changed = shared_client.put(address, json={"cron": "0 9 * * 1-5", "cron_seconds": None})
    assert changed.status_code == 200, changed.text
    assert "cron_seconds" not in changed.get_json()


@pytest.mark.parametrize(
    ("given", "pointer", "words"),
    [
        ({"cron": "0 9 * * fri-sun"}, "/cron", "write fri,sat,sun"),
        ({"cron": "0 0 9 * * 1-5"}, "/cron", 'with cron_seconds "last"'),
        ({"cron": "0 9 30 2 *"}, "/cron", "can never fire"),
        ({"cron": "@reboot"}, "/cron", "run_at"),
        ({"cron": ""}, "/cron", ""),
        ({"cron": 9}, "/cron", "text"),
        ({"cron": "0 9 * * *", "cron_seconds": "middle"}, "/cron_seconds", "first"),
        ({"cron_seconds": "first", "rrule": "FREQ=DAILY"}, "/cron_seconds", "belongs to cron"),
        ({"rrule": "0 9 * * 1-5"}, "/rrule", "give it as the field cron"),
    ],
)
def test_a_wrong_expression_is_refused_with_the_remedy(
    shared_client: FlaskClient, given: dict[str, object], pointer: str, words: str
) -> None:
    for path, body in ((SCHEDULES, BODY | given), (f"{SCHEDULES}/preview", given)):
        answer = shared_client.post(path, json=body)
        assert answer.status_code == 422, answer.text
        (error,) = answer.get_json()["errors"]
        assert error["pointer"] == pointer
        assert words in error["detail"]
