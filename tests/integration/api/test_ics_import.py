"""POST /api/schedules/import: events of a calendar become schedules, each with its result."""

import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.usecases.deeds import ics_import
from scheduler_app.webserver.limits import max_body_bytes

CALLBACK = {"callback_url": "http://127.0.0.1:9/", "headers": {"X-Key": "secret-value"}}
ZONED = "DTSTART;TZID=Europe/Berlin:20400102T090000\nRRULE:FREQ=WEEKLY;COUNT=5"

LATER = ZONED.replace("T090000", "T100000")
COUNTS = ("created", "changed", "unchanged", "removed", "refused")


def calendar(*events: str) -> str:
    inner = "".join(
        f"BEGIN:VEVENT\nUID:{number}\nSUMMARY:Event {number}\n{event}\nEND:VEVENT\n"
        for number, event in enumerate(events)
    )
    return f"BEGIN:VCALENDAR\nVERSION:2.0\n{inner}END:VCALENDAR\n"


def ask(client: FlaskClient, ics: str, query: str = "", **fields: Any) -> dict[str, Any]:
    answer = client.post(f"/api/schedules/import{query}", json={"ics": ics, "schedule": CALLBACK} | fields)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.get_json()
    return found


def test_each_item_is_taken_or_refused_by_itself(client: FlaskClient) -> None:
    found = ask(
        client,
        calendar(
            f"{ZONED}\nATTENDEE:mailto:a@example.com\nBEGIN:VALARM\nTRIGGER:-PT5M\nEND:VALARM",
            "DTSTART:20400101T000000Z\nRRULE:FREQ=DAILY;BYMONTH=13",
            "DTSTART:20200101T000000Z",
            "DTSTART:20400101T000000Z\nSTATUS:CANCELLED",
        ),
    )
    assert {name: found[name] for name in ("created", "refused", "over", "ignored")} == {
        "created": 1,
        "refused": 1,
        "over": 1,
        "ignored": 1,
    }
    taken, refused, over, ignored = found["items"]
    assert (taken["result"], taken["name"], taken["uid"]) == ("created", "Event 0", "0")
    assert taken["ignored"] == ["ATTENDEE", "VALARM"]
    (schedule,) = taken["schedules"]
    assert schedule["next_run_at"] == "2040-01-02T08:00:00Z"
    assert schedule["timezone"] == "Europe/Berlin"
    assert refused["reason"].startswith("BYMONTH: 13")
    assert over["reason"] == "all of its occurrences have passed"
    assert ignored["reason"] == "its STATUS is CANCELLED"
    stored = client.get(f"/api/schedules/{schedule['id']}").get_json()
    assert (stored["name"], stored["callback_url"]) == ("Event 0", CALLBACK["callback_url"])
    assert "secret-value" not in json.dumps(found)


def test_a_file_imported_again_makes_nothing_twice(client: FlaskClient) -> None:
    first = ask(client, calendar(ZONED))
    again = ask(client, calendar(ZONED))
    assert [again[name] for name in COUNTS] == [0, 0, 1, 0, 0]
    (part,) = again["items"][0]["schedules"]
    assert (again["items"][0]["result"], part["status"], part["result"]) == ("unchanged", 200, "unchanged")
    differs = ask(client, calendar(LATER))
    assert [differs[name] for name in COUNTS] == [0, 0, 0, 0, 1]
    (part,) = differs["items"][0]["schedules"]
    assert (part["status"], part["problem"]["status"]) == (409, 409)
    assert "update" in part["problem"]["detail"]
    other = ask(client, calendar(ZONED), id_prefix="second")
    assert other["created"] == 1
    assert other["items"][0]["schedules"][0]["id"].startswith("second-")
    assert len(client.get("/api/schedules").get_json()["schedules"]) == 2
    assert first["items"][0]["schedules"][0]["id"].startswith("ics-")


def test_schedules_follow_a_newer_file(client: FlaskClient) -> None:
    first = ask(client, calendar(ZONED, ZONED, ZONED))
    ids = [each["schedules"][0]["id"] for each in first["items"]]
    newer = calendar(ZONED, LATER, f"{ZONED}\nSTATUS:CANCELLED", ZONED)
    dry = ask(client, newer, "?dry_run=true", update=True)
    assert dry.pop("dry_run") is True
    assert client.get(f"/api/schedules/{ids[1]}").get_json()["version"] == 1
    done = ask(client, newer, update=True)
    assert done == dry
    assert [done[name] for name in COUNTS] == [1, 1, 1, 1, 0]
    assert [each["result"] for each in done["items"]] == ["unchanged", "changed", "ignored", "created"]
    assert done["items"][2]["removed"] == [ids[2]]
    assert client.get(f"/api/schedules/{ids[1]}").get_json()["next_run_at"] == "2040-01-02T09:00:00Z"
    assert client.get(f"/api/schedules/{ids[2]}").status_code == 404
    # The third event comes back, under the id that it had.
    back = ask(client, calendar(ZONED, LATER, ZONED, ZONED), update=True)
    assert [back[name] for name in COUNTS] == [1, 0, 3, 0, 0]
    assert back["items"][2]["schedules"][0]["id"] == ids[2]


def test_a_series_that_is_whole_again_is_one_schedule_again(client: FlaskClient) -> None:
    weekly = "DTSTART:20400102T090000Z\nRRULE:FREQ=WEEKLY"
    onwards = (
        "BEGIN:VEVENT\nUID:0\nSUMMARY:Event 0\nRECURRENCE-ID;RANGE=THISANDFUTURE:20400116T090000Z\n"
        "DTSTART:20400116T110000Z\nEND:VEVENT\n"
    )
    split = calendar(weekly).replace("END:VCALENDAR", f"{onwards}END:VCALENDAR")
    first = ask(client, split)
    parts = [each["id"] for each in first["items"][0]["schedules"]]
    assert len(parts) == 2
    whole = ask(client, calendar(weekly), update=True)
    assert whole["items"][0]["removed"] == [parts[1]]
    assert (whole["items"][0]["result"], whole["changed"], whole["removed"]) == ("changed", 1, 1)
    assert [each["id"] for each in client.get("/api/schedules").get_json()["schedules"]] == [parts[0]]


def test_an_item_that_cannot_be_read_keeps_its_schedule(client: FlaskClient) -> None:
    first = ask(client, calendar(ZONED))
    done = ask(client, calendar("DTSTART:20400101T000000Z\nRRULE:FREQ=DAILY;BYMONTH=13"), update=True)
    assert [done[name] for name in COUNTS] == [0, 0, 0, 0, 1]
    assert client.get(f"/api/schedules/{first['items'][0]['schedules'][0]['id']}").status_code == 200


def test_a_dry_run_answers_the_same_and_creates_nothing(client: FlaskClient) -> None:
    dry = ask(client, calendar(ZONED), "?dry_run=true")
    assert dry.pop("dry_run") is True
    assert client.get("/api/schedules").get_json()["schedules"] == []
    assert ask(client, calendar(ZONED)) == dry


def test_a_request_sent_again_under_its_key_is_answered_the_same(client: FlaskClient) -> None:
    body = {"ics": calendar(ZONED), "schedule": CALLBACK | {"signing": True}}
    answers = [
        client.post("/api/schedules/import", json=body, headers={"Idempotency-Key": "k"}) for _ in range(2)
    ]
    assert [each.get_json()["created"] for each in answers] == [1, 1]
    secrets = [each.get_json()["items"][0]["schedules"][0]["signing_secret"] for each in answers]
    assert secrets[0].startswith("whsec_")
    assert secrets[1] == "********"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"ics": "BEGIN:VCALENDAR\nEND:VCALENDAR\n"}, "/schedule"),
        ({"ics": "hello", "schedule": CALLBACK}, "/ics"),
        ({"ics": "BEGIN:VCALENDAR\n", "schedule": CALLBACK}, "/ics"),
        ({"ics": calendar(ZONED), "schedule": CALLBACK, "timezone": "Mars"}, "/timezone"),
        ({"ics": calendar(ZONED), "schedule": CALLBACK, "id_prefix": "-a"}, "/id_prefix"),
        ({"ics": calendar(ZONED), "schedule": {}}, "/schedule/callback_url"),
        ({"ics": calendar(ZONED), "schedule": CALLBACK | {"rrule": "FREQ=DAILY"}}, "/schedule/rrule"),
        (
            {"ics": calendar(ZONED), "schedule": CALLBACK | {"callback_url": "ftp://x/"}},
            "/schedule/callback_url",
        ),
    ],
)
def test_what_is_wrong_with_the_whole_request_is_named(
    client: FlaskClient, body: dict[str, Any], pointer: str
) -> None:
    answer = client.post("/api/schedules/import", json=body)
    assert answer.status_code == 422, answer.text
    assert pointer in [each["pointer"] for each in answer.get_json()["errors"]]


def test_a_calendar_s_days_come_of_a_file(client: FlaskClient) -> None:
    text = calendar("DTSTART;VALUE=DATE:20400102\nDTEND;VALUE=DATE:20400104")
    made = client.put("/api/calendars/school", json={"ics": text, "dates": [{"date": "2040-05-01"}]})
    assert made.status_code == 201, made.text
    days = client.get("/api/calendars/school/days?from=2040-01-02&to=2040-01-04").get_json()["days"]
    assert [(each["date"], each["name"]) for each in days] == [
        ("2040-01-02", "Event 0"),
        ("2040-01-03", "Event 0"),
    ]
    refused = client.put("/api/calendars/school", json={"ics": calendar(ZONED)})
    assert refused.status_code == 422
    assert refused.get_json()["errors"][0]["pointer"] == "/ics"


def test_a_file_of_10_mb_is_refused_unread(client: FlaskClient) -> None:
    size = 10_000_000
    assert size > max_body_bytes("/api/schedules/import")
    answer = client.post("/api/schedules/import", data=b"{" + b" " * size, content_type="application/json")
    assert answer.status_code == 413


def test_a_file_that_takes_too_long_to_read_is_refused(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ics_import, "MAX_READ_SECONDS", -1.0)
    answer = client.post("/api/schedules/import", json={"ics": calendar(ZONED), "schedule": CALLBACK})
    assert answer.status_code == 422
    assert "takes too long to read, after 0 items" in answer.get_json()["errors"][0]["detail"]
    holidays = client.put("/api/calendars/school", json={"ics": calendar("DTSTART;VALUE=DATE:20400101")})
    assert holidays.status_code == 422
    assert "takes too long to read" in holidays.get_json()["errors"][0]["detail"]
