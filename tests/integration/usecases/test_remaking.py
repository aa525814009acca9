"""Pages of schedules that are made anew together: what comes between, and what a crash leaves."""

from datetime import UTC, date, datetime, timedelta

import pytest

from scheduler_app.domain.calendars import Calendar, NamedDate
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store import Store
from scheduler_app.usecases.deeds.calendars import CalendarService
from scheduler_app.usecases.deeds.named import calendar_named
from scheduler_app.usecases.duties import remaking
from scheduler_app.usecases.duties.expansion import Expansion
from scheduler_app.usecases.duties.remaking import Recalendaring
from tests.builders import draft

ZURICH = WholeId("zurich")

#: A Monday.
NIGHT = datetime(2026, 3, 2, tzinfo=UTC)
LATER = NIGHT + timedelta(hours=1)
RULE = "DTSTART;TZID=Europe/Zurich:20260101T090000\nRRULE:FREQ=DAILY"
HOURLY = "DTSTART;TZID=Europe/Zurich:20260101T090000\nRRULE:FREQ=HOURLY"
MONDAY_OFF = Calendar.of(dates=(NamedDate(date(2026, 3, 2), "Our day"),))


@pytest.fixture
def calendars(store: Store) -> CalendarService:
    made = CalendarService(store)
    made.put(ZURICH, Calendar.of(), NIGHT)
    return made


def insert(store: Store, *ids: str, rrule: str = RULE) -> None:
    known = calendar_named(ZURICH, store)
    asked = draft(rrule=rrule, calendar="zurich", on_holiday="next", named_calendar=known)
    store.schedules.insert_many([asked.schedule(each, NIGHT, max_retries=3) for each in ids])


def expand(store: Store, now: datetime = NIGHT) -> None:
    expansion = Expansion(store, timeframe_seconds=86_400)
    while expansion.expand_page(now).claimed:
        pass


def stored(store: Store, schedule_id: str) -> Schedule:
    found = store.schedules.get(schedule_id)
    assert isinstance(found, Schedule)
    return found


def living(store: Store, revision: int) -> int:
    which = {"revision": revision, "state": "ready_queue"}
    return store.mongo.collection("events").count_documents(which)


def test_an_edit_that_comes_between_is_kept_and_the_others_are_cut(
    store: Store, calendars: CalendarService, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(store, "a", "b", "c")
    calendars.put(ZURICH, MONDAY_OFF, LATER)
    cut = store.remakes.cut

    def edited_before(revised: list[Schedule], token: str) -> set[str]:
        before = stored(store, "b")
        paused = before.revise(LATER, state=ScheduleState.PAUSED)
        assert store.schedules.revise(paused, version=before.version)
        return cut(revised, token)

    monkeypatch.setattr(store.remakes, "cut", edited_before)
    assert Recalendaring(store).remake_page(LATER)
    assert [stored(store, each).state for each in "abc"] == ["active", "paused", "active"]
    assert [stored(store, each).revision for each in "abc"] == [2, 2, 2]
    assert stored(store, "b").next_run_at is None
    assert calendars.get(ZURICH).remade.moved == 2


def test_what_a_beat_holds_no_other_compares(store: Store, calendars: CalendarService) -> None:
    insert(store, "a", "b")
    calendars.put(ZURICH, MONDAY_OFF, LATER)
    store.cursors.claim_written([stored(store, "a")], lease_seconds=600)
    assert Recalendaring(store).remake_page(LATER)
    assert not Recalendaring(store).remake_page(LATER)
    assert [stored(store, each).revision for each in "ab"] == [1, 2]


def test_nothing_stays_claimed(store: Store, calendars: CalendarService) -> None:
    insert(store, "moves")
    insert(store, "stays", rrule=RULE.replace("DAILY", "DAILY;BYDAY=TU"))
    calendars.put(ZURICH, MONDAY_OFF, LATER)
    Recalendaring(store).remake_page(LATER)
    assert [stored(store, each).revision for each in ("moves", "stays")] == [2, 1]
    assert not store.mongo.collection("schedules").count_documents({"owner": {"$exists": True}})
    assert not store.mongo.collection("schedules").count_documents({"row": {"$exists": True}})


def test_a_beat_that_dies_after_the_cut_leaves_the_rest_to_the_next_expansion(
    store: Store, calendars: CalendarService, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(store, "a", "b")
    expand(store)
    calendars.put(ZURICH, MONDAY_OFF, LATER)

    def dies(*_: object) -> int:
        raise SystemExit

    monkeypatch.setattr(store.cancellations, "cancel_these_past_cut", dies)
    with pytest.raises(SystemExit):
        Recalendaring(store).remake_page(LATER)
    assert living(store, 1) == 2
    assert all(stored(store, each).is_cancelled_by_edit(1, NIGHT + timedelta(hours=8)) for each in "ab")
    expand(store, NIGHT + timedelta(days=1))
    assert (living(store, 1), living(store, 2)) == (0, 2)


def test_schedules_whose_events_are_too_many_for_one_part_follow(
    store: Store, calendars: CalendarService, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(store, "a", "b", "c", rrule=HOURLY)
    expand(store)
    of_each = store.mongo.collection("events").count_documents({"schedule_id": "a"})
    monkeypatch.setattr(remaking, "EVENTS_A_PART", 2 * of_each)
    calendars.put(ZURICH, Calendar.of(dates=(NamedDate(date(2030, 1, 1)),)), NIGHT)
    recalendaring = Recalendaring(store)
    assert recalendaring.remake_page(NIGHT)
    assert calendars.get(ZURICH).remade.unchanged == 2
    assert recalendaring.remake_page(NIGHT)
    assert calendars.get(ZURICH).remade.unchanged == 3


def test_a_schedule_with_more_events_than_a_part_reads_is_cut(
    store: Store, calendars: CalendarService, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(store, "a", "b", rrule=HOURLY)
    expand(store)
    monkeypatch.setattr(remaking, "EVENTS_A_PART", 3)
    calendars.put(ZURICH, Calendar.of(dates=(NamedDate(date(2030, 1, 1)),)), NIGHT)
    recalendaring = Recalendaring(store)
    while recalendaring.remake_page(NIGHT):
        pass
    assert calendars.get(ZURICH).remade.moved == 2
