"""Positions and counts among the open days of a calendar, against an evaluator that lists days."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler_app.domain.calendars import Calendar, NamedDate, days_of
from scheduler_app.domain.recurrence import InvalidRecurrence, Observance, Recurrence
from scheduler_app.domain.recurrence.rules.open_days import on_open_days
from scheduler_app.domain.recurrence.timeline import FIRST_SECOND, StepBudget, to_datetime
from tests.unit.calendars.day_counter import Clock

CREATED = datetime(2025, 12, 1, tzinfo=UTC)
DAY = timedelta(days=1)
EARLIEST, FIRST, LAST = date(2025, 1, 1), date(2026, 1, 1), date(2027, 12, 31)
CODES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
ALL = ",".join(CODES)
SWISS = Calendar.of(country="CH", subdivision="ZH")


#: A machine that stands still is no fault of an example.
EVERY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Case(NamedTuple):
    """A rule, and what the evaluator needs of it."""

    text: str
    clock: Clock
    calendar: Calendar
    expected: list[datetime]


def observing(text: str, calendar: Calendar, zone: str = "UTC", overlap: str = "first") -> Recurrence:
    parsed = Recurrence.parse(text, created_at=CREATED, timezone=zone, overlap=overlap)
    return parsed.observing(Observance("test", days_of(calendar), "uncounted"))


def period_of(freq: str, day: date) -> object:
    """What tells one period from the next."""
    if freq == "DAILY":
        return day
    if freq == "WEEKLY":
        return day - timedelta(day.weekday())
    return (day.year, day.month) if freq == "MONTHLY" else day.year


def days_from(first: date) -> Iterator[date]:
    while first <= LAST:
        yield first
        first += DAY


@st.composite
def cases(draw: st.DrawFn) -> Case:
    zone = draw(st.sampled_from(["UTC", "Europe/Zurich", "America/New_York", "Australia/Lord_Howe"]))
    clock = Clock(ZoneInfo(zone), last=draw(st.booleans()))
    anywhere = st.integers(0, (LAST - FIRST).days).map(lambda days: FIRST + timedelta(days=days))
    early = st.integers(0, 40).map(lambda days: FIRST + timedelta(days=days))
    dates = draw(st.lists(st.one_of(anywhere, early), max_size=60))
    calendar = Calendar.of(
        dates=tuple(map(NamedDate, dates)), weekend=draw(st.sampled_from([(5, 6), (4, 5), (6,), (0, 2, 4)]))
    )
    closed = {day for day in days_from(EARLIEST) if day in dates or day.weekday() in calendar.weekend}
    freq = draw(st.sampled_from(["DAILY", "WEEKLY", "MONTHLY", "YEARLY"]))
    weekdays = draw(st.one_of(st.just(set(range(7))), st.sets(st.integers(0, 6), min_size=1)))
    hours = sorted(draw(st.sets(st.sampled_from([0, 2, 9, 23]), min_size=1, max_size=2)))
    largest = len(hours) * {"DAILY": 1, "WEEKLY": len(weekdays), "MONTHLY": 20, "YEARLY": 60}[freq]
    positions = draw(st.sets(st.integers(-largest, largest).filter(bool), max_size=3))
    start = draw(st.sampled_from([FIRST, FIRST + 17 * DAY]))
    found: list[datetime] = []
    named = [day for day in days_from(EARLIEST) if day.weekday() in weekdays and day not in closed]
    for _, period in groupby(named, key=lambda day: period_of(freq, day)):
        readings = [(day, time(hour)) for day in period for hour in hours]
        if positions:
            kept = {place - 1 if place > 0 else len(readings) + place for place in positions}
            readings = [each for index, each in enumerate(readings) if index in kept]
        found += [
            instant for day, at in readings if day >= start and (instant := clock.read(day, at)) is not None
        ]
    found = sorted(set(found))
    by_day = f";BYDAY={','.join(CODES[day] for day in sorted(weekdays))}"
    by_position = f";BYSETPOS={','.join(map(str, sorted(positions)))}" if positions else ""
    text = (
        f"DTSTART;TZID={zone}:{start:%Y%m%d}T000000\nRRULE:FREQ={freq}{by_day}{by_position}"
        f";BYHOUR={','.join(map(str, hours))};BYMINUTE=0;BYSECOND=0"
    )
    count = draw(st.one_of(st.none(), st.integers(1, 30)))
    if count is not None:
        text, found = f"{text};COUNT={count}", found[:count]
    return Case(text, clock, calendar, found)


@settings(EVERY, max_examples=20, derandomize=True, database=None)
@given(case=cases(), days=st.lists(st.integers(0, 600), min_size=2, max_size=2))
def test_open_days_are_counted_as_an_evaluator_counts_that_lists_them(case: Case, days: list[int]) -> None:
    check_counted(case, days)


def check_counted(case: Case, days: list[int]) -> None:
    try:
        found = observing(case.text, case.calendar, overlap="last" if case.clock.last else "first")
    except InvalidRecurrence:
        assert not case.expected  # no period has so many days, open or closed
        return
    begin, end = datetime(2026, 1, 1, tzinfo=UTC) - DAY, datetime(2027, 12, 1, tzinfo=UTC)
    expected = [each for each in case.expected if each < end]
    assert found.between(begin, end) == expected
    soon = begin + timedelta(days=40)
    assert found.count(begin, soon) == len([each for each in expected if each < soon])
    assert [each.instant for each in found.occurrences(begin, end)] == expected
    for asked in (begin + timedelta(days=each, hours=3) for each in days):
        following = next((each for each in case.expected if each > asked), None)
        if following is not None and following < end:
            assert found.after(asked) == following
            assert found.why(following).fires
        assert found.why(asked).fires == (asked in case.expected)


@pytest.mark.long
@pytest.mark.timeout(600)
@settings(EVERY, max_examples=300)
@given(case=cases(), days=st.lists(st.integers(0, 600), min_size=2, max_size=2))
def test_the_same_holds_for_three_hundred_rules(case: Case, days: list[int]) -> None:
    check_counted(case, days)


def test_the_third_business_day_of_the_month_in_zurich() -> None:
    """2 January 2027 is a Saturday; 26 and 29 March 2027 are Good Friday and Easter Monday; 1 August is a
    Sunday."""
    found = observing(f"FREQ=MONTHLY;BYDAY={ALL};BYSETPOS=3;BYHOUR=9;BYMINUTE=0;BYSECOND=0", SWISS)
    days = found.between(datetime(2027, 1, 1, tzinfo=UTC), datetime(2027, 9, 1, tzinfo=UTC))
    assert [f"{each:%m-%d}" for each in days] == [
        "01-06",
        "02-03",
        "03-03",
        "04-05",
        "05-05",
        "06-03",
        "07-05",
        "08-04",
    ]
    assert found.description == (
        "Every month on the third day at 09:00 (UTC),"
        " not counting a holiday or weekend day of the calendar test"
    )


def test_a_count_counts_open_days_alone() -> None:
    """So each of ten times comes; with `skip`, days that are closed are counted too."""
    text = "DTSTART:20270101T090000Z\nRRULE:FREQ=DAILY;COUNT=10"
    found = observing(text, SWISS)
    assert len(found.between(CREATED, CREATED + timedelta(days=900))) == 10
    late = datetime(2027, 1, 8, tzinfo=UTC)
    assert found.checkpoint(late) is None
    assert len(found.between(late, late + timedelta(days=900))) == 6


def test_hours_pass_over_closed_days() -> None:
    found = observing("DTSTART:20270108T220000Z\nRRULE:FREQ=HOURLY;COUNT=4", SWISS)
    assert [f"{each:%dT%H}" for each in found.between(CREATED, CREATED + timedelta(days=900))] == [
        "08T22",
        "08T23",
        "11T00",
        "11T01",
    ]


@pytest.mark.parametrize(
    ("instant", "code", "words"),
    [
        ("2027-05-05T09:00", "", "days on which the calendar test is closed are not counted"),
        ("2027-05-03T09:00", "BYSETPOS", "of those on which the calendar test is open"),
        ("2027-05-01T09:00", "holiday", "The calendar test is closed on Saturday 1 May 2027"),
        ("2027-03-26T09:00", "holiday", "Good Friday"),
        ("2027-05-05T10:00", "BYHOUR", "does not name the hour 10"),
    ],
)
def test_why_says_that_closed_days_are_not_counted(instant: str, code: str, words: str) -> None:
    found = observing(f"FREQ=MONTHLY;BYDAY={ALL};BYSETPOS=3;BYHOUR=9;BYMINUTE=0;BYSECOND=0", SWISS)
    answer = found.why(datetime.fromisoformat(instant).replace(tzinfo=UTC))
    (reason,) = answer.reasons or answer.causes
    assert answer.fires == (not code)
    assert reason.code == (code or "RRULE")
    assert words in reason.message


def test_a_rule_that_has_ended_is_found_to_have_ended_once() -> None:
    """What is asked after its last occurrence costs nothing any more."""
    parsed = Recurrence.parse("DTSTART:99991229T090000Z\nRRULE:FREQ=DAILY", created_at=CREATED)
    of = on_open_days(parsed._set, Observance("test", days_of(SWISS), "uncounted"))
    (rule,) = of.rules
    *_, last = rule.bound.instants(FIRST_SECOND, StepBudget())
    assert to_datetime(last) == datetime(9999, 12, 31, 9, tzinfo=UTC)
    steps = StepBudget()
    assert list(rule.bound.instants(last + 1, steps)) == []
    assert steps.steps_left == steps.limit
    assert list(rule.bound.instants(last, StepBudget())) == [last]
    # Asked for the first time after its end, it searches once, too.
    (rule,) = on_open_days(parsed._set, Observance("test", days_of(SWISS), "uncounted")).rules
    assert list(rule.bound.instants(last + 3_600, steps)) == []
    assert steps.steps_left < steps.limit
    steps = StepBudget()
    assert list(rule.bound.instants(last + 3_600, steps)) == []
    assert steps.steps_left == steps.limit


def test_a_position_that_no_month_has_is_warned_of() -> None:
    found = observing("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYSETPOS=6;BYHOUR=9", SWISS)
    assert found.after(CREATED) is None
    assert any("leaves this rule no days, or fewer than it counts" in each for each in found.warnings)


def test_a_date_on_a_closed_day_is_left_out() -> None:
    found = observing("DTSTART:20270101T090000Z\nRDATE:20270101T090000Z,20270104T090000Z", SWISS)
    assert found.between(CREATED, CREATED + timedelta(days=900)) == [datetime(2027, 1, 4, 9, tzinfo=UTC)]
    (reason,) = found.why(datetime(2027, 1, 1, 9, tzinfo=UTC)).reasons
    assert reason.code == "holiday"
    assert "on_holiday=uncounted leaves it out" in reason.message
