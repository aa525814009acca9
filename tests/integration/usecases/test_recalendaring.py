"""A calendar that changes under schedules which observe it."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.calendars import Calendar, NamedCalendar, NamedDate, holiday_data_key
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store import Store
from scheduler_app.usecases.deeds.calendars import CalendarService
from scheduler_app.usecases.deeds.named import calendar_named
from scheduler_app.usecases.duties.expansion import Expansion
from scheduler_app.usecases.duties.owed_expansion import OwedExpansion
from scheduler_app.usecases.duties.remaking import RECALENDAR_GRACE, SCHEDULES_A_PAGE, Recalendaring
from tests.builders import draft

ZURICH = WholeId("zurich")

#: A Monday.
NIGHT = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
RULE = "DTSTART;TZID=Europe/Zurich:20260101T090000\nRRULE:FREQ=DAILY"
WEEKENDS = Calendar.of()
MONDAY_OFF = Calendar.of(dates=(NamedDate(date(2026, 3, 2), "Our day"),))


@pytest.fixture
def expansion(store: Store) -> Expansion:
    return Expansion(store, timeframe_seconds=86_400)


@pytest.fixture
def calendars(store: Store) -> CalendarService:
    made = CalendarService(store)
    made.put(ZURICH, WEEKENDS, NIGHT)
    return made


def made(
    store: Store, schedule_id: str = "s1", on_holiday: str = "next", rrule: str = RULE, **fields: Any
) -> Schedule:
    known = calendar_named(ZURICH, store)
    asked = draft(rrule=rrule, calendar="zurich", on_holiday=on_holiday, named_calendar=known, **fields)
    schedule = asked.schedule(schedule_id, NIGHT, max_retries=3)
    store.schedules.insert(schedule)
    return schedule


def stored(store: Store, schedule_id: str = "s1") -> Schedule:
    found = store.schedules.get(schedule_id)
    assert isinstance(found, Schedule)
    return found


def shown(calendars: CalendarService) -> tuple[int, int, int]:
    named = calendars.get(ZURICH)
    return named.remade.moved, named.remade.unchanged, calendars.store.calendars.schedules_to_recompute(named)


def test_a_future_that_moves_is_made_anew(
    store: Store, expansion: Expansion, calendars: CalendarService
) -> None:
    made(store)
    (first, *_) = expansion.expand_page(NIGHT).events
    assert first.run_time == NIGHT + 8 * HOUR
    calendars.put(ZURICH, MONDAY_OFF, NIGHT + HOUR)
    assert shown(calendars) == (0, 0, 1)
    recalendaring = Recalendaring(store)
    assert recalendaring.remake_page(NIGHT + HOUR)
    after = stored(store)
    assert (after.revision, after.version, after.next_run_at) == (2, 1, NIGHT + 32 * HOUR)
    withdrawn = store.events.get(first.id)
    assert withdrawn is not None
    assert withdrawn.state == "cancelled"
    assert "calendar zurich" in withdrawn.status[-1]["message"]
    assert shown(calendars) == (1, 0, 0)
    assert not recalendaring.remake_page(NIGHT + HOUR)


def test_a_future_that_stays_the_same_is_left_alone(
    store: Store, expansion: Expansion, calendars: CalendarService
) -> None:
    made(store)
    expansion.expand_page(NIGHT)
    calendars.put(ZURICH, Calendar.of(dates=(NamedDate(date(2030, 1, 1)),)), NIGHT + HOUR)
    assert Recalendaring(store).remake_page(NIGHT + HOUR)
    assert stored(store).revision == 1
    assert shown(calendars) == (0, 1, 0)


@pytest.mark.parametrize("state", ["completed", "cancelled"])
def test_an_event_that_is_over_already_is_no_difference(
    store: Store, expansion: Expansion, calendars: CalendarService, state: str
) -> None:
    made(store)
    (first, *_) = expansion.expand_page(NIGHT).events
    # Sent while its page was compared, or withdrawn by a person.
    over = {"$set": {"state": state, "archived_at": NIGHT}, "$unset": {"due_at": ""}}
    store.mongo.collection("events").update_one({"_id": first.id}, over)
    calendars.put(ZURICH, Calendar.of(dates=(NamedDate(date(2030, 1, 1)),)), NIGHT + HOUR)
    Recalendaring(store).remake_page(NIGHT + HOUR)
    assert shown(calendars) == (0, 1, 0)


def test_a_schedule_that_two_beats_look_at_is_counted_once(
    store: Store, calendars: CalendarService, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(store)
    calendars.put(ZURICH, Calendar.of(dates=(NamedDate(date(2030, 1, 1)),)), NIGHT + HOUR)
    named = calendars.get(ZURICH)
    both = store.remakes.with_other_days(named, NIGHT + HOUR, limit=10)
    # The second beat has read the same page as the first.
    monkeypatch.setattr(store.remakes, "with_other_days", lambda *_, **__: both)
    Recalendaring(store).remake_page(NIGHT + HOUR)
    Recalendaring(store).remake_page(NIGHT + HOUR)
    assert shown(calendars) == (0, 1, 0)


def test_pages_go_on_until_nobody_is_left_and_settle_after_the_grace(
    store: Store, calendars: CalendarService
) -> None:
    count = SCHEDULES_A_PAGE + 5
    for number in range(count):
        made(store, f"s{number}")
    calendars.put(ZURICH, MONDAY_OFF, NIGHT + HOUR)
    recalendaring = Recalendaring(store)
    assert recalendaring.remake_page(NIGHT + HOUR)
    assert shown(calendars) == (SCHEDULES_A_PAGE, 0, 5)
    assert recalendaring.remake_page(NIGHT + HOUR)
    assert shown(calendars) == (count, 0, 0)
    # A request that had read the calendar before the change is found as long as it may come.
    late = replace(stored(store, "s0"), id="late", cut_pending=False)
    assert late.calendar is not None
    store.schedules.insert(replace(late, calendar=replace(late.calendar, days_version=1)))
    assert recalendaring.remake_page(NIGHT + HOUR)
    assert not recalendaring.remake_page(NIGHT + HOUR + RECALENDAR_GRACE)
    assert calendars.get(ZURICH).changed_at is None
    assert shown(calendars) == (count, 1, 0)


def test_a_second_change_moves_what_waits_since_the_first(
    store: Store, expansion: Expansion, calendars: CalendarService
) -> None:
    """Nobody expands a schedule whose next run is days ahead: its first cut is still pending then."""
    days_ahead = "DTSTART;TZID=Europe/Zurich:20260316T090000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=16"
    made(store, rrule=days_ahead)
    recalendaring = Recalendaring(store)
    closed = [NamedDate(date(2026, 3, 16)), NamedDate(date(2026, 3, 17))]
    for number, runs_on in ((1, 17), (2, 18)):
        now = NIGHT + number * HOUR
        calendars.put(ZURICH, Calendar.of(dates=tuple(closed[:number])), now)
        assert recalendaring.remake_page(now)
        assert shown(calendars) == (1, 0, 0)
        after = stored(store)
        assert after.cut_pending
        assert after.next_run_at == datetime(2026, 3, runs_on, 8, tzinfo=UTC)


def test_what_is_due_by_now_is_expanded_before_it_is_compared(
    store: Store, expansion: Expansion, calendars: CalendarService
) -> None:
    made(store)
    late = NIGHT + 10 * HOUR
    calendars.put(ZURICH, MONDAY_OFF, NIGHT + 9 * HOUR)
    assert not Recalendaring(store).remake_page(late)
    assert stored(store).revision == 1
    expansion.expand_page(late)
    assert Recalendaring(store).remake_page(late)


def test_newer_holiday_data_are_a_change(store: Store, calendars: CalendarService) -> None:
    calendars.put(ZURICH, Calendar.of(country="CH"), NIGHT)
    made(store)
    collection = store.mongo.collection("calendars")
    collection.update_one({"name": "zurich"}, {"$set": {"holiday_data": holiday_data_key("0.1")}})
    recalendaring = Recalendaring(store)
    assert recalendaring.renew_holidays(NIGHT) == 1
    assert calendars.get(ZURICH).holiday_data == holiday_data_key()
    assert recalendaring.renew_holidays(NIGHT) == 0
    assert recalendaring.remake_page(NIGHT)
    assert shown(calendars) == (0, 1, 0)


def test_a_beat_with_older_holiday_data_leaves_the_schedules_alone(
    store: Store, calendars: CalendarService
) -> None:
    calendars.put(ZURICH, Calendar.of(country="CH"), NIGHT)
    made(store)
    calendars.put(ZURICH, Calendar.of(country="US"), NIGHT)
    newer = {"$set": {"holiday_data": holiday_data_key("999.0")}}
    store.mongo.collection("calendars").update_one({"name": "zurich"}, newer)
    recalendaring = Recalendaring(store)
    assert recalendaring.renew_holidays(NIGHT) == 0
    assert not recalendaring.remake_page(NIGHT)
    assert shown(calendars) == (0, 0, 1)


def test_a_schedule_whose_calendar_is_gone_is_set_aside_alone(
    store: Store, expansion: Expansion, calendars: CalendarService
) -> None:
    made(store, "gone")
    store.schedules.insert(draft(rrule=RULE).schedule("plain", NIGHT, max_retries=3))
    store.mongo.collection("calendars").delete_many({})
    assert {each.schedule_id for each in expansion.expand_page(NIGHT).events} == {"plain"}
    aside = stored(store, "gone")
    assert aside.state is ScheduleState.ERROR
    assert "there is no calendar zurich" in str(aside.reason)
    assert stored(store, "plain").state is ScheduleState.ACTIVE


def test_what_an_edit_leaves_to_beats_observes_the_calendar(
    store: Store, expansion: Expansion, calendars: CalendarService
) -> None:
    known = calendar_named(ZURICH, store)
    friday = datetime(2026, 3, 6, 20, tzinfo=UTC)
    asked = draft(
        rrule=f"DTSTART:{friday:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=MINUTELY", calendar="zurich", named_calendar=known
    )
    store.schedules.insert(asked.schedule("s1", friday - HOUR, max_retries=3))
    sunday = friday + 2 * DAY
    left = expansion.expand_up_to(stored(store), sunday).left_to_beats
    assert left is not None
    before = stored(store)
    assert store.schedules.revise(before.revise(sunday), version=1, owed=left)
    owed = OwedExpansion(store)
    while owed.expand_page(sunday):
        pass
    # From 20:00 to midnight on Friday, and nothing on the weekend.
    events = store.mongo.collection("events")
    assert events.count_documents({"schedule_id": "s1", "revision": 1}) == 240
    assert (
        events.count_documents({"run_time": {"$gte": datetime(2026, 3, 7, tzinfo=UTC)}, "revision": 1}) == 0
    )


def test_calendars_are_read_once_for_each_version(store: Store, calendars: CalendarService) -> None:
    made(store)
    first = stored(store).calendar
    second = stored(store).calendar
    assert first is not None
    assert second is not None
    assert first.known is second.known
    calendars.put(ZURICH, MONDAY_OFF, NIGHT)
    third = stored(store).calendar
    assert third is not None
    assert isinstance(third.known, NamedCalendar)
    assert third.known.calendar == MONDAY_OFF
