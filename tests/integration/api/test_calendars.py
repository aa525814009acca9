"""Calendars over HTTP: made, edited, looked at, observed, deleted."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.integration.api.conftest import ToldTime

ZURICH = {"country": "CH", "subdivision": "ZH", "dates": [{"date": "2041-01-02", "name": "Berchtoldstag"}]}
RULE = "DTSTART;TZID=Europe/Zurich:20400101T090000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=1"

Create = Callable[..., dict[str, Any]]


def put(client: FlaskClient, name: str = "zurich", **fields: Any) -> Any:
    return client.put(f"/api/calendars/{name}", json=fields or ZURICH)


def test_a_calendar_is_made_shown_edited_and_deleted(client: FlaskClient) -> None:
    made = put(client)
    assert made.status_code == 201, made.text
    assert made.headers["Location"] == "/api/calendars/zurich"
    shown = client.get("/api/calendars/zurich").get_json()
    assert shown["dates"] == [{"date": "2041-01-02", "name": "Berchtoldstag"}]
    assert (shown["country"], shown["subdivision"], shown["weekend"]) == ("CH", "ZH", ["SA", "SU"])
    assert (shown["version"], shown["used_by"]) == (1, 0)
    assert shown["remade"] == {"moved": 0, "unchanged": 0, "left": 0}
    again = put(client)
    assert (again.status_code, again.get_json()["result"], again.get_json()["version"]) == (
        200,
        "unchanged",
        1,
    )
    changed = put(client, country="CH")
    assert (changed.get_json()["result"], changed.get_json()["version"]) == ("changed", 2)
    assert "subdivision" not in client.get("/api/calendars/zurich").get_json()
    assert client.delete("/api/calendars/zurich").status_code == 200
    assert client.get("/api/calendars/zurich").status_code == 404


def test_days_say_what_is_closed_and_why(client: FlaskClient) -> None:
    put(client)
    found = client.get("/api/calendars/zurich/days?from=2040-12-31&to=2041-01-05").get_json()["days"]
    assert found == [
        {"date": "2041-01-01", "name": "New Year's Day", "kind": "holiday"},
        {"date": "2041-01-02", "name": "Berchtoldstag", "kind": "holiday"},
        {"date": "2041-01-05", "name": "Saturday", "kind": "weekend"},
    ]
    for query, field in (
        ("from=2041-01-05&to=2041-01-01", "to"),
        ("from=2041-01-05&to=2099-01-01", "to"),
        ("from=2100-12-31&to=2101-01-01", "from"),
        ("from=2041-01-05", "to"),
    ):
        refused = client.get(f"/api/calendars/zurich/days?{query}")
        assert refused.status_code == 422, query
        assert refused.get_json()["errors"][0]["pointer"].strip("/") == field


@pytest.mark.parametrize(
    ("fields", "pointer", "words"),
    [
        ({"country": "Switzerlnd"}, "/country", "perhaps CH"),
        ({"weekend": ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]}, "/weekend", "all seven days"),
        ({"dates": [{"date": "2041-02-30"}]}, "/dates/0/date", ""),
        ({"holidays": []}, "/holidays", "Unknown field"),
        ({"weekend": []}, "/dates", "no day is closed"),
    ],
)
def test_a_wrong_calendar_is_refused_with_its_field(
    client: FlaskClient, fields: dict[str, Any], pointer: str, words: str
) -> None:
    refused = put(client, **fields)
    assert refused.status_code == 422, refused.text
    (error,) = refused.get_json()["errors"]
    assert error["pointer"] == pointer
    assert words in error["detail"]
    assert client.get("/api/calendars/zurich").status_code == 404


def test_a_name_that_is_no_name_is_refused(client: FlaskClient) -> None:
    assert put(client, "a b", country="CH").status_code == 422


def test_stale_edits_are_refused(client: FlaskClient) -> None:
    tag = put(client).headers["ETag"]
    stale = {"If-Match": '"7"'}
    assert client.put("/api/calendars/zurich", json={"country": "CH"}, headers=stale).status_code == 412
    assert client.delete("/api/calendars/zurich", headers=stale).status_code == 412
    only_new = {"If-None-Match": "*"}
    assert client.put("/api/calendars/zurich", json={"country": "CH"}, headers=only_new).status_code == 412
    assert client.get("/api/calendars/zurich", headers={"If-None-Match": tag}).status_code == 304
    changed = client.put("/api/calendars/zurich", json={"country": "CH"}, headers={"If-Match": tag})
    assert changed.status_code == 200
    assert (
        client.put("/api/calendars/none", json={"country": "CH"}, headers={"If-Match": tag}).status_code
        == 412
    )


def test_a_dry_run_changes_nothing(client: FlaskClient, create: Create) -> None:
    dry = client.put("/api/calendars/zurich?dry_run=true", json=ZURICH)
    assert (dry.status_code, dry.get_json()["dry_run"]) == (201, True)
    assert client.get("/api/calendars/zurich").status_code == 404
    put(client)
    dry = client.put("/api/calendars/zurich?dry_run=true", json={"country": "CH"})
    assert (dry.status_code, dry.get_json()["result"]) == (200, "changed")
    assert client.delete("/api/calendars/zurich?dry_run=true").status_code == 200
    assert client.get("/api/calendars/zurich").get_json()["version"] == 1
    client.delete("/api/calendars/zurich")
    assert client.put("/api/calendars/zurich?dry_run=true", json=ZURICH).status_code == 201
    assert client.get("/api/calendars/zurich").status_code == 404
    again = put(client)
    assert (again.status_code, again.get_json()["version"]) == (201, 2)
    assert again.headers["ETag"] == client.get("/api/calendars/zurich").headers["ETag"]


def test_the_list_goes_on_by_cursor(client: FlaskClient) -> None:
    for number in range(5):
        put(client, f"c{number}", country="CH")
    seen, cursor = [], ""
    while True:
        page = client.get(f"/api/calendars?limit=2{cursor}").get_json()
        seen += [each["name"] for each in page["calendars"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert sorted(seen) == ["c0", "c1", "c2", "c3", "c4"]


def test_a_schedule_observes_a_calendar(client: FlaskClient, create: Create) -> None:
    put(client)
    made = create(rrule=RULE, calendar="zurich", on_holiday="next")
    shown = client.get(f"/api/schedules/{made['id']}").get_json()
    # 1 January 2040 is a Sunday, and a holiday.
    assert (shown["calendar"], shown["on_holiday"]) == ("zurich", "next")
    assert shown["next_run_at"] == "2040-01-02T08:00:00Z"
    assert "the next business day" in shown["description"]
    preview = client.get(f"/api/schedules/{made['id']}/preview?limit=1").get_json()
    assert preview["occurrences"] == [
        {
            "run_time": "2040-01-02T08:00:00Z",
            "local": "2040-01-02T09:00:00+01:00",
            "rolled_from": "2040-01-01T09:00:00+01:00",
            "reason": "New Year's Day",
        }
    ]
    refused = client.delete("/api/calendars/zurich")
    assert refused.status_code == 409
    assert "1 schedule observes" in refused.get_json()["detail"]
    assert client.get("/api/calendars/zurich").get_json()["used_by"] == 1


def test_the_third_business_day_of_a_calendar_is_the_same_wherever_it_is_asked_about(
    client: FlaskClient, create: Create, time: ToldTime
) -> None:
    """In Zurich, 6 May 2027 is Ascension Day, and 1 August a Sunday."""
    time.at = datetime(2027, 4, 20, 10, tzinfo=UTC)
    put(client, country="CH", subdivision="ZH")
    phrase = "third business day of the month at 9:00"
    made = create(phrase=phrase, calendar="zurich", timezone="Europe/Zurich")
    path = f"/api/schedules/{made['id']}"
    shown = client.get(path).get_json()
    assert (shown["on_holiday"], shown["next_run_at"]) == ("uncounted", "2027-05-05T07:00:00Z")
    assert "not counting a holiday or weekend day of the calendar zurich" in shown["description"]
    preview = client.get(f"{path}/preview?limit=5").get_json()
    days = [each["local"][:10] for each in preview["occurrences"]]
    assert days == ["2027-05-05", "2027-06-03", "2027-07-05", "2027-08-04", "2027-09-03"]
    reasons = {"2027-05-05": None, "2027-05-03": "BYSETPOS", "2027-05-01": "holiday", "2027-05-06": "holiday"}
    for day, code in reasons.items():
        answer = client.get(f"{path}/why?at={day}T09:00").get_json()
        assert answer["fires"] == (code is None)
        assert code is None or answer["reason"]["code"] == code
    forecast = {
        day: client.get(f"/api/forecast?from=2027-05-{day:02}T00:00:00Z").get_json()["count"]
        for day in (3, 4, 5, 6)
    }
    assert forecast == {3: 0, 4: 0, 5: 1, 6: 0}


def test_an_edit_changes_or_takes_away_the_calendar(client: FlaskClient, create: Create) -> None:
    put(client)
    made = create(rrule=RULE, calendar="zurich")
    path = f"/api/schedules/{made['id']}"
    assert client.get(path).get_json()["on_holiday"] == "skip"
    revision = client.get(path).get_json()["revision"]
    same = client.put(path, json={"calendar": "zurich", "rrule": RULE}).get_json()
    assert (same["result"], same["revision"]) == ("unchanged", revision)
    rolled = client.put(path, json={"on_holiday": "next"}).get_json()
    assert (rolled["next_run_at"], rolled["revision"]) == ("2040-01-02T08:00:00Z", revision + 1)
    renamed = client.put(path, json={"name": "other"}).get_json()
    assert (renamed["on_holiday"], renamed["revision"]) == ("next", revision + 1)
    without = client.put(path, json={"calendar": None}).get_json()
    assert without["next_run_at"] == "2040-01-01T08:00:00Z"
    assert "calendar" not in without
    assert client.delete("/api/calendars/zurich").status_code == 200


def test_holidays_that_end_are_warned_of_wherever_they_are_looked_at(
    client: FlaskClient, create: Create
) -> None:
    """The holidays package knows Sri Lanka's, which follow the moon and a proclamation, until 2026."""
    made = client.put("/api/calendars/lanka", json={"country": "LK"}).get_json()
    ends = (
        "The holidays of LK are known until 2026: from 2027 on none of them is closed. A newer"
        " holidays package"
        " may know more; give later ones as dates."
    )
    assert made["warnings"] == [ends]
    assert client.get("/api/calendars/lanka").get_json()["warnings"] == [ends]

    def days(first: str, last: str) -> list[str]:
        query = {"from": first, "to": last}
        found: list[str] = client.get("/api/calendars/lanka/days", query_string=query).get_json()["warnings"]
        return found

    assert days("2026-01-01", "2026-12-31") == []
    assert days("2026-12-01", "2027-01-31") == [ends]
    assert days("1999-01-01", "2004-01-01") == [
        "The holidays of LK are known from 2003 on: before, none is closed."
    ]
    rule = {"rrule": "DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY", "calendar": "lanka"}
    shown = client.post("/api/schedules/preview", json=rule).get_json()
    assert f"The calendar lanka: {ends}" in shown["warnings"]
    assert f"The calendar lanka: {ends}" in create(**rule)["warnings"]


def test_a_preview_beyond_the_last_year_with_holidays_says_so(client: FlaskClient) -> None:
    made = client.put("/api/calendars/ch", json={"country": "CH"}).get_json()
    assert made["warnings"] == []
    rule = {"rrule": "DTSTART:20260303T090000Z\nRRULE:FREQ=YEARLY", "calendar": "ch"}
    near = client.post("/api/schedules/preview", json=rule).get_json()
    far = client.post("/api/schedules/preview", json=rule | {"after": "2095-01-01T00:00:00Z"}).get_json()
    said = "The calendar ch: The holidays of CH are known until 2100: from 2101 on none of them is closed."
    assert [warning for warning in far["warnings"] if warning.startswith(said)]
    assert not [warning for warning in near["warnings"] if warning.startswith(said)]


def test_a_calendar_names_the_categories_of_its_holidays_and_opens_working_weekends(
    client: FlaskClient,
) -> None:
    def closed(day: str, **fields: Any) -> bool:
        answer = client.put("/api/calendars/c", json=fields)
        assert answer.status_code in (200, 201), answer.text
        query = {"from": day, "to": day}
        return bool(client.get("/api/calendars/c/days", query_string=query).get_json()["days"])

    # Turkey works half a day on the eve of Republic Day.
    assert not closed("2027-10-28", country="TR")
    assert closed("2027-10-28", country="TR", categories=["public", "half_day"])
    shown = client.get("/api/calendars/c").get_json()
    assert shown["categories"] == ["half_day", "public"]
    # China worked on Sunday 26 January 2025, before the days of the Spring Festival.
    assert closed("2025-01-26", country="CN")
    assert not closed("2025-01-26", country="CN", working_weekends=True)
    assert client.get("/api/calendars/c").get_json()["working_weekends"] is True
    own = [{"date": "2025-01-26"}]
    assert closed("2025-01-26", country="CN", working_weekends=True, dates=own)
    assert closed("2025-01-25", country="CN", working_weekends=True)


@pytest.mark.parametrize(
    ("given", "pointer", "words"),
    [
        ({"country": "TR", "categories": ["banking"]}, "/categories", "it has half_day or public"),
        ({"country": "TH", "categories": ["workday"]}, "/categories", "no holidays of the category"),
        ({"categories": ["public"]}, "/categories", "give country too"),
        ({"exchange": "NYSE", "working_weekends": True}, "/working_weekends", "give country too"),
    ],
)
def test_what_a_country_does_not_have_is_refused(
    client: FlaskClient, given: dict[str, Any], pointer: str, words: str
) -> None:
    answer = client.put("/api/calendars/c", json=given)
    assert answer.status_code == 422
    (error,) = answer.get_json()["errors"]
    assert error["pointer"] == pointer
    assert words in str(error)


@pytest.mark.parametrize(
    ("fields", "pointer", "words"),
    [
        ({"calendar": "zurick"}, "/calendar", "or take zurich"),
        ({"on_holiday": "next"}, "/on_holiday", "give calendar too"),
        ({"calendar": "zurich", "on_holiday": "never"}, "/on_holiday", ""),
        ({"calendar": "zurich", "run_at": "2040-01-01T00:00:00Z"}, "/calendar", "triggers that repeat"),
    ],
)
def test_a_wrong_use_is_refused_with_its_field(
    client: FlaskClient, fields: dict[str, Any], pointer: str, words: str
) -> None:
    put(client)
    body = {"name": "test", "callback_url": "http://127.0.0.1:9/"} | fields
    if "run_at" not in fields:
        body["rrule"] = RULE
    refused = client.post("/api/schedules", json=body)
    assert refused.status_code == 422, refused.text
    (error,) = refused.get_json()["errors"]
    assert error["pointer"] == pointer
    assert words in error["detail"]


def test_a_preview_shows_what_is_skipped_and_why(client: FlaskClient) -> None:
    put(client)
    asked = {"rrule": RULE, "calendar": "zurich", "after": "2039-12-01T00:00:00Z", "limit": 2}
    preview = client.post("/api/schedules/preview", json=asked).get_json()
    assert [each["local"][:10] for each in preview["occurrences"]] == ["2040-02-01", "2040-03-01"]
    assert preview["skipped"] == [{"local": "2040-01-01T09:00:00+01:00", "reason": "New Year's Day"}]
    rolled = client.post("/api/schedules/preview", json=asked | {"on_holiday": "previous"}).get_json()
    assert rolled["occurrences"][0]["local"] == "2039-12-30T09:00:00+01:00"
    assert "skipped" not in rolled


def test_a_start_in_another_zone_than_the_schedule_s_is_warned_of(client: FlaskClient) -> None:
    put(client)
    asked = {"every_seconds": 3600, "calendar": "zurich", "timezone": "Europe/Zurich"}
    preview = client.post("/api/schedules/preview", json=asked).get_json()
    assert "on the days of UTC" in preview["warnings"][-1]
    local = asked | {"start_at": "2040-01-01T00:00:00"}
    preview = client.post("/api/schedules/preview", json=local).get_json()
    assert not any("on the days of" in each for each in preview["warnings"])
    # 1 January 2040 is a Sunday, 2 January a Monday.
    assert preview["occurrences"][0]["local"] == "2040-01-02T00:00:00+01:00"


def test_a_bent_calendar_harms_only_who_observes_it(app: Flask, client: FlaskClient, create: Create) -> None:
    put(client)
    made, other = create(rrule=RULE, calendar="zurich"), create(rrule=RULE)
    calendars = app.extensions["scheduler"].store.mongo.collection("calendars")
    calendars.update_one({"name": "zurich"}, {"$set": {"weekend": "SA", "days_version": 9}})
    shown = client.get(f"/api/schedules/{made['id']}").get_json()
    assert "weekend" in shown["warnings"][0]
    assert client.get(f"/api/schedules/{other['id']}").get_json()["next_run_at"] == "2040-01-01T08:00:00Z"
    refused = client.get("/api/calendars/zurich")
    assert refused.status_code == 409
    assert "weekend" in refused.get_json()["detail"]
    (listed,) = client.get("/api/calendars").get_json()["calendars"]
    assert "weekend" in listed["reason"]


def test_an_export_names_the_calendar(client: FlaskClient, create: Create) -> None:
    put(client)
    create(rrule=RULE, calendar="zurich", on_holiday="previous")
    line = client.get("/api/schedules/export").text
    assert '"calendar":"zurich"' in line
    assert '"on_holiday":"previous"' in line


def test_a_phrase_means_the_business_days_of_the_calendar(client: FlaskClient, create: Create) -> None:
    """1 and 2 January 2041 are closed, and the 5th is a Saturday; without the calendar the 1st is open."""
    put(client)
    phrase = {"phrase": "first business day of the year at 9:00", "timezone": "Europe/Zurich"}
    asked = phrase | {"after": "2040-12-01T00:00:00Z", "limit": 1}

    def first(**fields: Any) -> dict[str, Any]:
        answer = client.post("/api/schedules/preview", json=asked | fields)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.get_json()["occurrences"][0]
        return found

    assert first()["local"] == "2041-01-01T09:00:00+01:00"
    rolled = first(calendar="zurich")
    assert (rolled["local"], rolled["rolled_from"]) == (
        "2041-01-03T09:00:00+01:00",
        "2041-01-01T09:00:00+01:00",
    )
    made = create(rrule=None, **phrase, calendar="zurich")
    shown = client.get(f"/api/schedules/{made['id']}").get_json()
    assert (shown["phrase"], shown["on_holiday"]) == (phrase["phrase"], "next")
    without = client.put(f"/api/schedules/{made['id']}", json={"calendar": None})
    assert without.status_code == 200, without.text
    again = client.get(f"/api/schedules/{made['id']}").get_json()
    assert "calendar" not in again
    assert again["recurrence"] != shown["recurrence"]


def test_the_readings_of_an_ambiguous_phrase_observe_the_calendar(client: FlaskClient) -> None:
    """2 January 2041 is a holiday in Zurich, and 5 January a Saturday."""
    put(client)
    asked = {"phrase": "every day at 6", "timezone": "Europe/Zurich", "at": "2040-12-31T12:00:00Z"}
    fields = {"calendar": "zurich", "on_holiday": "next"}

    def local(**given: Any) -> list[list[str]]:
        answer = client.post("/api/schedules/preview", json=asked | given)
        assert answer.status_code == 422
        return [[each["local"] for each in one["occurrences"]] for one in answer.get_json()["readings"]]

    assert local()[0][:2] == ["2041-01-01T06:00:00+01:00", "2041-01-02T06:00:00+01:00"]
    assert local(**fields)[0] == [
        "2041-01-03T06:00:00+01:00",
        "2041-01-04T06:00:00+01:00",
        "2041-01-07T06:00:00+01:00",
    ]
    assert local(calendar="zurich")[1][1] == "2041-01-03T18:00:00+01:00"
    refused = client.post(
        "/api/schedules",
        json=fields | {"phrase": "every day at 6", "name": "n", "callback_url": "https://example.com/"},
    )
    assert refused.status_code == 422
    assert "the calendar zurich" in refused.get_json()["readings"][0]["description"]


def test_an_export_with_a_calendar_is_taken_back(client: FlaskClient, create: Create) -> None:
    put(client)
    made = create(rrule=None, phrase="last business day of the month at 9:00", calendar="zurich")
    (line,) = (json.loads(each) for each in client.get("/api/schedules/export").text.splitlines())
    assert (line["phrase"], line["calendar"], line["on_holiday"]) == (made["phrase"], "zurich", "previous")
    taken = client.post("/api/schedules", json=line | {"id": "again"})
    assert taken.status_code == 201, taken.text
    assert taken.get_json()["next_run_at"] == made["next_run_at"]


def test_why_tells_the_holiday(client: FlaskClient, create: Create) -> None:
    put(client)
    made = create(rrule=RULE.replace("MONTHLY;BYMONTHDAY=1", "DAILY"), calendar="zurich")
    closed, open_ = (
        client.get(f"/api/schedules/{made['id']}/why?at=2041-01-{day}T09:00:00").get_json()
        for day in ("02", "03")
    )
    assert (closed["fires"], closed["reason"]["code"], open_["fires"]) == (False, "holiday", True)


def test_a_bulk_asks_for_each_calendar_once(app: Flask, client: FlaskClient) -> None:
    put(client, "one")
    put(client, "two")
    database = app.extensions["scheduler"].store.mongo.db
    names = ["one", "two", "missing"]
    items = [
        {"name": "n", "callback_url": "https://example.com/", "rrule": RULE, "calendar": names[number % 3]}
        for number in range(60)
    ]
    database.command("profile", 2)
    try:
        answer = client.post("/api/schedules/bulk", json={"schedules": items}).get_json()
    finally:
        database.command("profile", 0)
    assert answer["created"] == 40
    assert sum(each["status"] == 422 for each in answer["results"]) == 20
    asked = database["system.profile"].count_documents({"ns": f"{database.name}.calendars"})
    # The two that exist and the one that does not, its names that come near, and those of the expansion.
    assert asked <= 8
