"""Calendars of schedules: what they show, and who may read them."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import icalendar
import pytest
import vobject
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.api.services import Services
from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.usecases.questions import calendar_feeds
from tests.builders import event
from tests.integration.api.conftest import ToldTime

KEY = "a-key-of-16-letters"
AUTH = {"X-API-Key": KEY}
#: The rules of these tests that begin in 2040 begin after it, and none has an instant near it.
A_MONTH_BEFORE = datetime(2039, 12, 1, tzinfo=UTC)
DAILY = "DTSTART;TZID=Europe/Berlin:20200106T090000\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE"
RULES = {
    "fortnightly": DAILY,
    "with-exceptions": f"{DAILY}\nEXDATE;TZID=Europe/Berlin:20400109T090000\nRDATE:20600101T120000Z",
    "counted": "DTSTART:20400101T000000Z\nRRULE:FREQ=DAILY;COUNT=20",
    "until": "DTSTART;TZID=America/New_York:20200101T180000\n"
    "RRULE:FREQ=MONTHLY;BYDAY=-1FR;UNTIL=20450101T000000Z",
    "last-workday": "DTSTART:20200101T080000Z\nRRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
    "leap-day": "DTSTART:20200229T080000Z\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29",
    "hourly-in-utc": "DTSTART:20200101T003000Z\nRRULE:FREQ=HOURLY;INTERVAL=7",
}


@pytest.fixture
def keyed(make_api: Callable[..., Flask]) -> Flask:
    return make_api(api_keys=(KEY,))


def create(client: FlaskClient, **fields: Any) -> dict[str, Any]:
    body = {"name": "test", "callback_url": "http://127.0.0.1:9/"} | fields
    answer = client.post("/api/schedules", json=body, headers=AUTH)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.get_json()
    return found


def calendar(client: FlaskClient, path: str, **options: Any) -> str:
    answer = client.get(path, **options)
    assert answer.status_code == 200, answer.text
    assert answer.content_type == "text/calendar; charset=utf-8"
    return answer.text


def only_event(text: str) -> Any:
    (found,) = icalendar.Calendar.from_ical(text).walk("VEVENT")
    return found


def times_of(text: str, uid: str, count: int) -> list[datetime]:
    """The first occurrences of a schedule, as vobject and dateutil read them: of one event, or of several
    whose UIDs go on with the instant."""
    read = vobject.readOne(text).vevent_list
    found = [each for each in read if each.uid.value == uid or each.uid.value.startswith(f"{uid}-2")]
    dates = (date for each in found for date in each.getrruleset(addRDate=True) or [each.dtstart.value])
    return [each.astimezone(UTC) for each in islice(dates, count)]


@pytest.mark.parametrize("name", RULES)
def test_an_independent_reader_sees_the_same_occurrences(
    client: FlaskClient, time: ToldTime, name: str
) -> None:
    made = create(client, id=name, rrule=RULES[name])
    text = calendar(client, f"/api/schedules/{name}.ics")
    rule = Recurrence.parse(made["recurrence"], created_at=time.at)
    expected = rule.between(time.at, time.at + timedelta(days=366 * 400), 90)
    assert len(expected) >= 20
    assert times_of(text, name, 90) == expected
    (parsed,) = [each for each in icalendar.Calendar.from_ical(text).walk("VEVENT") if each["UID"] == name]
    assert "RRULE" in parsed


@pytest.mark.parametrize(
    "rrule",
    [
        "DTSTART;TZID=Europe/Berlin:20400101T000000\nRRULE:FREQ=HOURLY;INTERVAL=6;COUNT=12",
        "DTSTART:20400101T000000Z\nRRULE:FREQ=DAILY;COUNT=9\nEXRULE:FREQ=WEEKLY",
        "DTSTART:20400101T000000Z\nRRULE:FREQ=DAILY;COUNT=3\nRRULE:FREQ=WEEKLY;COUNT=3",
        "DTSTART:20400101T000000Z\nRRULE:FREQ=MONTHLY;COUNT=9;BYDAY=MO,TU;BYSETPOS=2",
        "DTSTART:20400101T000000Z\nRRULE:RSCALE=GREGORIAN;FREQ=MONTHLY;COUNT=9;BYMONTHDAY=31;SKIP=BACKWARD",
    ],
)
def test_what_readers_disagree_about_is_written_as_instants(
    client: FlaskClient, time: ToldTime, rrule: str
) -> None:
    time.at = A_MONTH_BEFORE
    made = create(client, id="s", rrule=rrule)
    text = calendar(client, "/api/schedules/s.ics")
    rule = Recurrence.parse(made["recurrence"], created_at=time.at)
    assert not {"RRULE", "RDATE"} & {line.split(":")[0] for line in text.split("\r\n")}
    assert times_of(text, "s", 1_000) == rule.between(time.at, time.at + timedelta(days=366))


def test_instants_are_bounded_and_the_calendar_says_up_to_when(client: FlaskClient) -> None:
    create(client, id="s", rrule="DTSTART;TZID=Europe/Berlin:20400101T000000\nRRULE:FREQ=SECONDLY")
    assert len(times_of(calendar(client, "/api/schedules/s.ics"), "s", 5_000)) == 1
    create(client, id="now", rrule="DTSTART;TZID=Europe/Berlin:19700101T000000\nRRULE:FREQ=SECONDLY")
    client.post("/api/schedules/now/pause")
    assert "UID:now\r\n" not in calendar(client, "/api/schedules/now.ics")
    create(
        client, id="hourly", tags=["t"], rrule="DTSTART;TZID=Europe/Berlin:19700101T000000\nRRULE:FREQ=HOURLY"
    )
    assert len(times_of(calendar(client, "/api/schedules/hourly.ics"), "hourly", 5_000)) == 1_000
    text = calendar(client, "/api/calendar.ics?tag=t")
    assert len(times_of(text, "hourly", 5_000)) == 100
    assert "Shown up to " in text.replace("\r\n ", "")


def test_the_instants_of_all_schedules_of_a_feed_are_bounded_together(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calendar_feeds, "MAX_INSTANTS_OF_ALL", 10)
    for name in ("a", "b"):
        create(client, id=name, rrule="DTSTART;TZID=Europe/Berlin:19700101T000000\nRRULE:FREQ=HOURLY")
    create(client, id="daily", rrule=DAILY)
    text = calendar(client, "/api/calendar.ics")
    assert [len(times_of(text, name, 50)) for name in ("a", "b", "daily")] == [5, 5, 50]
    # Not fewer than one of each, however many schedules there are.
    monkeypatch.setattr(calendar_feeds, "MAX_INSTANTS_OF_ALL", 1)
    assert len(times_of(calendar(client, "/api/calendar.ics"), "b", 50)) == 1


def test_a_calendar_that_has_not_changed_is_not_sent_again(client: FlaskClient, time: ToldTime) -> None:
    time.at = A_MONTH_BEFORE
    path = f"/api/schedules/{create(client, rrule=DAILY)['id']}"
    for file in ("/api/calendar.ics", f"{path}.ics"):
        first = client.get(file)
        tag = first.headers["ETag"]
        time.at += timedelta(seconds=5)
        again = client.get(file, headers={"If-None-Match": tag})
        assert (again.status_code, again.data) == (304, b"")
        assert again.headers["ETag"] == tag
        assert again.headers["Cache-Control"] == first.headers["Cache-Control"]
        assert client.put(path, json={"name": f"changed {file}"}).status_code == 200
        changed = client.get(file, headers={"If-None-Match": tag})
        assert changed.status_code == 200
        assert changed.headers["ETag"] != tag


def test_programs_are_told_how_often_to_ask_and_which_version_of_an_event_they_have(
    client: FlaskClient, time: ToldTime
) -> None:
    made = create(client, id="s", rrule=DAILY)
    text = calendar(client, "/api/calendar.ics")
    assert "REFRESH-INTERVAL;VALUE=DURATION:PT1H\r\n" in text
    assert "X-PUBLISHED-TTL:PT1H\r\n" in text
    shown = only_event(text)
    assert int(shown["SEQUENCE"]) == 0
    created_at = datetime.fromisoformat(made["created_at"]).replace(microsecond=0)
    assert shown["LAST-MODIFIED"].dt == shown["DTSTAMP"].dt == created_at
    time.at += timedelta(minutes=5)
    client.put("/api/schedules/s", json={"name": "renamed"})
    shown = only_event(calendar(client, "/api/calendar.ics"))
    assert int(shown["SEQUENCE"]) == 1
    assert shown["LAST-MODIFIED"].dt == time.at.replace(microsecond=0)


def test_past_events_have_their_outcome(client: FlaskClient, app: Flask) -> None:
    create(client, id="s", name="Backup; nightly", run_at="2040-01-01T00:00:00Z", tags=["t"])
    store: Store = app.extensions["scheduler"].store
    now = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    dead = event(now, "s")
    store.events.insert([dead], now, "made")
    token, _ = store.claims.claim([dead.id], until=now, now=now, lease_seconds=9, worker="w")
    attempt = {"number": 1, "error": "connection refused"}
    ended = OutcomeRecord(dead.id, token, State.ERROR, "Gave up: connection refused", None, attempt, now)
    assert store.outcomes.record([ended]) == []
    for path in ("/api/schedules/s.ics", "/api/calendar.ics?tag=t", "/api/calendar.ics"):
        text = calendar(client, path)
        found = {str(each["UID"]): each for each in icalendar.Calendar.from_ical(text).walk("VEVENT")}
        assert set(found) == {"s", dead.id}
        assert str(found[dead.id]["SUMMARY"]) == "Backup; nightly: error"
        assert "connection refused" in str(found[dead.id]["DESCRIPTION"])
        assert found[dead.id].decoded("DTSTART") == now
    assert "VEVENT" not in calendar(client, "/api/calendar.ics?tag=other")


def test_a_feed_s_token_opens_its_calendar_and_nothing_else(keyed: Flask) -> None:
    client = keyed.test_client()
    create(client, id="mine", tags=["t"], rrule=DAILY)
    create(client, id="other", rrule=DAILY)
    made = client.post("/api/calendar-feeds", json={"name": "ops", "tag": "t"}, headers=AUTH)
    assert made.status_code == 201, made.text
    feed = made.get_json()
    token = feed["token"]
    text = calendar(client, feed["path"])
    assert ("UID:mine" in text, "UID:other" in text) == (True, False)
    assert client.get(f"/api/calendar.ics?token={token}&tag=x").status_code == 403
    for path in ("/api/schedules", "/api/schedules/mine.ics", "/api/calendar-feeds", "/api/events"):
        assert client.get(f"{path}?token={token}").status_code == 401
        assert client.get(path, headers={"X-API-Key": token}).status_code == 401
        assert client.get(f"{path}?token={token}", headers=AUTH).status_code == 422
    assert client.get("/api/calendar.ics").status_code == 401
    assert client.get(f"/api/calendar.ics?token={KEY}").status_code == 401
    assert client.get(f"/api/calendar.ics?token={token[:-1]}").status_code == 401
    assert client.get(f"/api/calendar.ics?token={feed['id']}").status_code == 401
    assert "UID:other" in calendar(client, "/api/calendar.ics", headers=AUTH)
    listed = client.get("/api/calendar-feeds", headers=AUTH).get_json()["feeds"]
    assert [(each["id"], each["name"], each["tag"]) for each in listed] == [(feed["id"], "ops", "t")]
    assert token not in str(listed)
    deleted = client.delete(f"/api/calendar-feeds/{feed['id']}", headers=AUTH)
    assert deleted.status_code == 200
    assert client.get(feed["path"]).status_code == 401
    assert client.delete(f"/api/calendar-feeds/{feed['id']}", headers=AUTH).status_code == 404


def test_a_token_is_stored_hashed_and_is_in_no_log(
    keyed: Flask, store: Store, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    client = keyed.test_client()
    with caplog.at_level(logging.DEBUG):
        answers = [
            client.post("/api/calendar-feeds", json={"name": "x"}, headers=AUTH | {"Idempotency-Key": "k"})
            for _ in range(2)
        ]
        token = answers[0].get_json()["token"]
        calendar(client, f"/api/calendar.ics?token={token}")
        client.delete(f"/api/calendar-feeds/{answers[0].get_json()['id']}", headers=AUTH)
        client.get(f"/api/calendar.ics?token={token}")
    assert answers[1].get_json()["token"] == "********"
    secret = token.partition(".")[2]
    names = store.mongo.db.list_collection_names()
    assert secret not in "".join(repr(list(store.mongo.db[name].find())) for name in names)
    said = capfd.readouterr()
    assert secret not in caplog.text + said.out + said.err


def test_a_dry_run_makes_no_feed_and_deletes_none(keyed: Flask) -> None:
    client = keyed.test_client()
    dry = client.post("/api/calendar-feeds?dry_run=true", json={"name": "x"}, headers=AUTH).get_json()
    assert (dry["token"], dry["dry_run"]) == ("********", True)
    feed = client.post("/api/calendar-feeds", json={"name": "x"}, headers=AUTH).get_json()
    path = f"/api/calendar-feeds/{feed['id']}"
    assert client.delete(f"{path}?dry_run=true", headers=AUTH).status_code == 200
    assert len(client.get("/api/calendar-feeds", headers=AUTH).get_json()["feeds"]) == 1
    assert client.delete("/api/calendar-feeds/none?dry_run=true", headers=AUTH).status_code == 404


def test_feeds_are_bounded_and_a_corrupt_one_opens_nothing(keyed: Flask, store: Store) -> None:
    client = keyed.test_client()
    feed = client.post("/api/calendar-feeds", json={"name": "x"}, headers=AUTH).get_json()
    rows = store.mongo.collection("calendar_feeds")
    rows.update_one({"_id": feed["id"]}, {"$set": {"tag": 7}})
    (listed,) = client.get("/api/calendar-feeds", headers=AUTH).get_json()["feeds"]
    assert listed == {"id": feed["id"], "reason": "tag is an int, not text"}
    assert client.get(feed["path"]).status_code == 401
    one = rows.find_one({"_id": feed["id"]})
    assert one is not None
    rows.insert_many([one | {"_id": f"f{number}"} for number in range(199)])
    refused = client.post("/api/calendar-feeds", json={"name": "x"}, headers=AUTH)
    assert refused.status_code == 409
    services: Services = keyed.extensions["scheduler"]
    assert len(services.calendar_feeds.all("default")) == 200
