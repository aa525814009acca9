"""Which schedules newer zone or holiday data would move, told before beats make it so."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.domain.calendars import Calendar, holiday_data_key, holiday_data_version
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.recurrence import zone_data_version
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import Store
from scheduler_app.usecases.deeds.calendars import CalendarService
from scheduler_app.usecases.deeds.named import calendar_named
from tests.builders import schedule

CREATED = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
RULE = "DTSTART;TZID=Europe/Zurich:20400102T090000\nRRULE:FREQ=DAILY"


def computed_with_old_data(store: Store, schedule_id: str, moved: timedelta) -> Schedule:
    """A schedule that some older release computed, with an offset that was `moved` since."""
    made = schedule(CREATED, schedule_id, rrule=RULE, name=schedule_id)
    assert made.next_run_at is not None
    old = replace(made, zone_data="2020a", next_run_at=made.next_run_at + moved)
    assert store.schedules.insert(old)
    return old


def check(client: FlaskClient, **query: Any) -> dict[str, Any]:
    answer = client.get("/api/tzdata/check", query_string=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.get_json()
    return found


def test_a_schedule_that_would_move_is_told_with_its_moves(client: FlaskClient, store: Store) -> None:
    computed_with_old_data(store, "moves", HOUR)
    computed_with_old_data(store, "stays", timedelta(0))
    store.schedules.insert(schedule(CREATED, "current", rrule=RULE))
    assert check(client) == {
        "zone_data": zone_data_version(),
        "holiday_data": holiday_data_version(),
        "checked": 2,
        "moved": [
            {
                "id": "moves",
                "name": "moves",
                "timezone": "UTC",
                "zone_data": "2020a",
                "moves": [
                    {"before": "2040-01-02T09:00:00Z", "after": "2040-01-02T08:00:00Z", "seconds": -3600}
                ],
            }
        ],
        "next_cursor": None,
    }


def observing(store: Store, schedule_id: str, moved: timedelta, calendar: str = "swiss") -> Schedule:
    """A schedule whose calendar an older release of the `holidays` package computed."""
    known = calendar_named(WholeId(calendar), store)
    made = schedule(
        *(CREATED, schedule_id),
        rrule="DTSTART:20400102T090000Z\nRRULE:FREQ=DAILY",
        name=schedule_id,
        calendar=calendar,
        on_holiday="next",
        named_calendar=known,
    )
    assert made.next_run_at is not None
    old = replace(made, next_run_at=made.next_run_at + moved)
    assert store.schedules.insert(old)
    return old


def test_what_newer_holiday_data_would_move_is_told(client: FlaskClient, store: Store) -> None:
    calendars = CalendarService(store)
    calendars.put(WholeId("swiss"), Calendar.of(country="CH"), CREATED)
    calendars.put(WholeId("own"), Calendar.of(), CREATED)
    stored = store.mongo.collection("calendars")
    stored.update_one({"name": "swiss"}, {"$set": {"holiday_data": holiday_data_key("0.9")}})
    observing(store, "moves", -timedelta(days=1))
    observing(store, "stays", timedelta(0))
    observing(store, "other", -timedelta(days=1), calendar="own")
    found = check(client)
    assert (found["checked"], found["holiday_data"]) == (2, holiday_data_version())
    (moves,) = found["moved"]
    assert (moves["id"], moves["holiday_data"], moves["calendar"]) == ("moves", "0.9", "swiss")
    assert moves["moves"] == [
        {"before": "2040-01-01T09:00:00Z", "after": "2040-01-02T09:00:00Z", "seconds": 86400}
    ]
    assert "zone_data" not in moves
    # As a beat with those data finds it afterwards.
    renewed = {"$set": {"holiday_data": holiday_data_key("999.0")}, "$inc": {"days_version": 1}}
    stored.update_one({"name": "swiss"}, renewed)
    assert check(client)["checked"] == 0


def test_the_check_changes_nothing(client: FlaskClient, store: Store) -> None:
    old = computed_with_old_data(store, "moves", HOUR)
    check(client)
    found = store.schedules.get("moves")
    assert isinstance(found, Schedule)
    assert (found.revision, found.zone_data, found.next_run_at) == (1, "2020a", old.next_run_at)


def test_the_check_goes_on_page_by_page(client: FlaskClient, store: Store) -> None:
    for number in range(5):
        computed_with_old_data(store, f"s{number}", HOUR)
    found, query = list[str](), dict[str, Any](limit=2)
    while True:
        page = check(client, **query)
        assert page["checked"] <= 2
        found += [each["id"] for each in page["moved"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert sorted(found) == [f"s{number}" for number in range(5)]


def test_a_schedule_that_no_longer_evaluates_is_told_beside_the_others(
    client: FlaskClient, store: Store
) -> None:
    computed_with_old_data(store, "moves", HOUR)
    bent = computed_with_old_data(store, "bent", HOUR)
    store.mongo.collection("schedules").update_one({"_id": bent.id}, {"$set": {"pinned": "RRULE:FREQ=NEVER"}})
    moved = {each["id"]: each for each in check(client)["moved"]}
    assert moved["moves"]["moves"]
    assert "error" in moved["bent"]


def test_a_paused_schedule_is_not_looked_at(
    client: FlaskClient, create: Callable[..., dict[str, Any]]
) -> None:
    made = create(rrule=RULE)["id"]
    client.post(f"/api/schedules/{made}/pause")
    assert check(client)["checked"] == 0


@pytest.mark.parametrize("limit", [0, 201, "many"])
def test_a_page_is_bounded(client: FlaskClient, limit: object) -> None:
    assert client.get("/api/tzdata/check", query_string={"limit": limit}).status_code == 422
