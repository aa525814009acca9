"""A calendar that is deleted while a request writes a schedule that observes it."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.domain.calendars import Calendar
from scheduler_app.domain.errors import Conflict, InvalidField, NotFound
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store import Store
from scheduler_app.usecases.deeds.calendars import CalendarService
from scheduler_app.usecases.deeds.named import calendar_named
from scheduler_app.usecases.duties.expansion import Expansion
from scheduler_app.usecases.duties.housekeeping import CALENDAR_GRACE, Retention
from scheduler_app.usecases.duties.remaking import Recalendaring
from tests.builders import draft

ZURICH = WholeId("zurich")

#: A Monday.
NIGHT = datetime(2026, 3, 2, tzinfo=UTC)
AFTER = NIGHT + CALENDAR_GRACE + timedelta(seconds=1)
RULE = "DTSTART;TZID=Europe/Zurich:20260101T090000\nRRULE:FREQ=DAILY"


@pytest.fixture
def calendars(store: Store) -> CalendarService:
    made = CalendarService(store)
    made.put(ZURICH, Calendar.of(), NIGHT)
    return made


def read_before_the_deletion(store: Store) -> Schedule:
    known = calendar_named(ZURICH, store)
    asked = draft(rrule=RULE, calendar="zurich", on_holiday="next", named_calendar=known)
    return asked.schedule("s1", NIGHT, max_retries=3)


def documents(store: Store) -> int:
    return store.mongo.collection("calendars").count_documents({})


def test_a_schedule_that_is_written_after_the_deletion_keeps_the_calendar(
    store: Store, calendars: CalendarService
) -> None:
    late = read_before_the_deletion(store)
    calendars.delete(ZURICH, NIGHT)
    store.schedules.insert(late)
    with pytest.raises(NotFound):
        calendars.get(ZURICH)
    with pytest.raises(InvalidField):
        calendar_named(ZURICH, store)
    (event,) = Expansion(store, timeframe_seconds=86_400).expand_page(NIGHT).events
    assert event.run_time == NIGHT + timedelta(hours=8)
    Retention(store, retention_days=7).prune_calendars(AFTER)
    assert calendars.get(ZURICH).calendar == Calendar.of()
    with pytest.raises(Conflict):
        calendars.delete(ZURICH, AFTER)
    found = store.schedules.get("s1")
    assert isinstance(found, Schedule)
    assert found.state is ScheduleState.ACTIVE


def test_a_deleted_calendar_is_removed_when_no_request_can_know_it(
    store: Store, calendars: CalendarService
) -> None:
    calendars.delete(ZURICH, NIGHT)
    retention = Retention(store, retention_days=7)
    retention.prune_calendars(NIGHT + CALENDAR_GRACE)
    assert documents(store) == 1
    retention.prune_calendars(AFTER)
    assert documents(store) == 0


def test_one_that_is_made_again_moves_who_observes_the_old_days(
    store: Store, calendars: CalendarService
) -> None:
    late = read_before_the_deletion(store)
    calendars.delete(ZURICH, NIGHT)
    store.schedules.insert(late)
    again, created = calendars.put(ZURICH, Calendar.of(weekend=(0,)), NIGHT)
    assert (created, again.version, again.days_version) == (True, 2, 2)
    assert again == calendars.get(ZURICH)
    assert Recalendaring(store).remake_page(NIGHT)
    moved = store.schedules.get("s1")
    assert isinstance(moved, Schedule)
    assert moved.next_run_at == NIGHT + timedelta(hours=32)
    Retention(store, retention_days=7).prune_calendars(AFTER)
    assert documents(store) == 1


def test_nobody_deletes_twice(calendars: CalendarService) -> None:
    calendars.delete(ZURICH, NIGHT)
    with pytest.raises(NotFound):
        calendars.delete(ZURICH, NIGHT)
