"""The dates that a single day can mean, seen from a day: one, or the likelier of two first."""

from datetime import date

import pytest
from dateutil.easter import easter

from scheduler_app.domain.triggers import NotUnderstood, TriggerContext
from scheduler_app.domain.triggers.phrase.clause_bag import PhraseRefused
from scheduler_app.domain.triggers.phrase.clauses import (
    BUSINESS_DAY,
    DAY,
    Date,
    Day,
    DayNumber,
    DaysAway,
    EasterDay,
    EndOf,
    Later,
    MonthOfYear,
    NamedDay,
    NthDay,
    NumericDate,
)
from scheduler_app.domain.triggers.phrase.dates import date_or_none, dates_of, months_later
from scheduler_app.domain.triggers.phrase.translation import translate
from tests.unit.triggers.phrase.judged import SAID

WEDNESDAY, FRIDAY = "2026-11-18", "2026-11-20"
SATURDAY, SUNDAY = "2026-11-21", "2026-11-22"
MON, TUE, WED, THU, FRI, SAT, SUN = range(7)

MEANT: list[tuple[Day, str, list[str]]] = [
    (DaysAway(0), WEDNESDAY, [WEDNESDAY]),
    (DaysAway(3), WEDNESDAY, [SATURDAY]),
    (NamedDay(WED), WEDNESDAY, [WEDNESDAY]),
    (NamedDay(TUE), WEDNESDAY, ["2026-11-24"]),
    (NamedDay(FRI), WEDNESDAY, [FRIDAY]),
    (NamedDay(WED, "next"), WEDNESDAY, ["2026-11-25"]),
    (NamedDay(TUE, "next"), WEDNESDAY, ["2026-11-24"]),
    (NamedDay(FRI, "next"), WEDNESDAY, [FRIDAY, "2026-11-27"]),
    (NamedDay(SUN, "next"), WEDNESDAY, [SUNDAY, "2026-11-29"]),
    (NamedDay(MON, "next week"), WEDNESDAY, ["2026-11-23"]),
    (NamedDay(FRI, "next week"), WEDNESDAY, ["2026-11-27"]),
    # Weeks may begin with Monday, or with Sunday.
    (NamedDay(SUN, "next week"), WEDNESDAY, [SUNDAY, "2026-11-29"]),
    (NamedDay(FRI, "next week"), SUNDAY, ["2026-11-27", "2026-12-04"]),
    (NamedDay(SUN, "next week"), SUNDAY, ["2026-11-29"]),
    (Date(11, 18), WEDNESDAY, [WEDNESDAY]),
    (Date(11, 17), WEDNESDAY, ["2027-11-17"]),
    (Date(2, 29), WEDNESDAY, ["2028-02-29"]),
    # 2100 is no leap year: eight years lie between two.
    (Date(2, 29), "2096-03-01", ["2104-02-29"]),
    (Date(11, 17, 2026), WEDNESDAY, ["2026-11-17"]),
    (Date(12, 25, 2026, FRI), WEDNESDAY, ["2026-12-25"]),
    (NumericDate(3, 4, None), WEDNESDAY, ["2027-03-04", "2027-04-03"]),
    (NumericDate(4, 3, 2030), WEDNESDAY, ["2030-03-04", "2030-04-03"]),
    (NumericDate(5, 5, None), WEDNESDAY, ["2027-05-05"]),
    (DayNumber(18), WEDNESDAY, [WEDNESDAY]),
    (DayNumber(17), WEDNESDAY, ["2026-12-17"]),
    (DayNumber(31), WEDNESDAY, ["2026-12-31"]),
    (DayNumber(31), "2026-02-01", ["2026-03-31"]),
    (DayNumber(30), "2027-01-31", ["2027-03-30"]),
    (DayNumber(5, "this"), WEDNESDAY, ["2026-11-05"]),
    (DayNumber(5, "next"), WEDNESDAY, ["2026-12-05"]),
    (DayNumber(31, "next"), "2026-11-30", ["2026-12-31"]),
    (DayNumber(5, "next"), "2026-12-31", ["2027-01-05"]),
    # The days of August 2026 begin with a Saturday, and its last Monday is the fifth.
    (NthDay(1, BUSINESS_DAY, 8, 2026), WEDNESDAY, ["2026-08-03"]),
    (NthDay(-1, BUSINESS_DAY, 8, 2026), WEDNESDAY, ["2026-08-31"]),
    (NthDay(1, DAY, 8, 2026), WEDNESDAY, ["2026-08-01"]),
    (NthDay(31, DAY, 8, 2026), WEDNESDAY, ["2026-08-31"]),
    (NthDay(5, MON, 8, 2026), WEDNESDAY, ["2026-08-31"]),
    (NthDay(-5, MON, 8, 2026), WEDNESDAY, ["2026-08-03"]),
    (NthDay(2, TUE, "this"), WEDNESDAY, ["2026-11-10"]),
    (NthDay(2, TUE, "next"), "2026-01-31", ["2026-02-10"]),
    (NthDay(1, DAY, "next"), WEDNESDAY, ["2026-12-01"]),
    (NthDay(1, MON, 8, 2028), WEDNESDAY, ["2028-08-07"]),
    (EasterDay(0), "2026-04-04", ["2026-04-05"]),
    (EasterDay(0), "2026-04-05", ["2026-04-05"]),
    (EasterDay(0), "2026-04-06", ["2027-03-28"]),
    (EasterDay(-2), "2026-04-04", ["2027-03-26"]),
    (EasterDay(39, 2027), WEDNESDAY, ["2027-05-06"]),
    (EasterDay(0), "9997-01-01", ["9997-04-20"]),
    (Later(1, "week", NamedDay(WED)), WEDNESDAY, ["2026-11-25", "2026-12-02"]),
    (Later(1, "week", NamedDay(TUE)), WEDNESDAY, ["2026-12-01"]),
    (Later(-3, "day", Date(12, 25)), WEDNESDAY, ["2026-12-22"]),
    (Later(10_000, "day", DaysAway(0)), WEDNESDAY, ["2054-04-05"]),
    (Later(-10_000, "day", DaysAway(0)), WEDNESDAY, ["1999-07-03"]),
    (MonthOfYear(3, None), WEDNESDAY, ["2027-03-01"]),
    (MonthOfYear(11, None), WEDNESDAY, ["2027-11-01"]),
    (MonthOfYear(11, 2026), WEDNESDAY, ["2026-11-01"]),
    (EndOf("day"), WEDNESDAY, [WEDNESDAY]),
    (EndOf("week"), WEDNESDAY, [FRIDAY, SUNDAY]),
    (EndOf("week"), FRIDAY, [FRIDAY, SUNDAY]),
    (EndOf("week"), SATURDAY, [SUNDAY]),
    (EndOf("week"), SUNDAY, [SUNDAY]),
    (EndOf("month"), WEDNESDAY, ["2026-11-30"]),
    (EndOf("month"), "2028-02-29", ["2028-02-29"]),
    (EndOf("quarter"), "2026-10-01", ["2026-12-31"]),
    (EndOf("quarter"), "2026-09-30", ["2026-09-30"]),
    (EndOf("quarter"), "2026-01-01", ["2026-03-31"]),
    (EndOf("year"), "2026-01-01", ["2026-12-31"]),
    (EndOf("year"), "2026-12-31", ["2026-12-31"]),
]


@pytest.mark.parametrize(("day", "today", "meant"), MEANT)
def test_a_day_means_these_dates(day: Day, today: str, meant: list[str]) -> None:
    assert [each.isoformat() for each in dates_of(day, date.fromisoformat(today))] == meant


@pytest.mark.parametrize(
    ("day", "why"),
    [
        (Date(2, 30), "there is no such date"),
        (Date(2, 29, 2027), "there is no such date"),
        (Date(13, 1), "there is no such date"),
        (NumericDate(31, 4, None), "there is no such date"),
        (Date(12, 25, None, MON), "25 December 2026 is a Friday"),
        (Date(12, 25, 2026, MON), "25 December 2026 is a Friday"),
        (DayNumber(31, "this"), "this month has no day 31"),
        (DayNumber(32), "there is no day 32 in the next months"),
        (NthDay(5, TUE, 8, 2026), "that month has no such day"),
        (NthDay(-5, TUE, 8, 2026), "that month has no such day"),
        (NthDay(32, DAY, 8, 2026), "that month has no such day"),
        (EasterDay(0, 1582), "Easter is known from 1583 on"),
        (EasterDay(0, 9999), "Easter is known from 1583 on"),
        (Later(10_001, "day", DaysAway(0)), "this is too far away"),
        (Later(-10_001, "day", DaysAway(0)), "this is too far away"),
    ],
)
def test_a_day_that_does_not_exist_is_refused(day: Day, why: str) -> None:
    with pytest.raises(PhraseRefused, match=why):
        dates_of(day, date.fromisoformat(WEDNESDAY))


def test_easter_is_that_of_the_gregorian_calendar() -> None:
    today = date(2026, 11, 18)
    years = range(1583, 9_999)
    assert [dates_of(EasterDay(0, year), today) for year in years] == [[easter(year)] for year in years]


@pytest.mark.parametrize(
    ("day", "months", "later"),
    [
        ("2026-01-31", 1, "2026-02-28"),
        ("2028-01-31", 1, "2028-02-29"),
        ("2026-12-15", 1, "2027-01-15"),
        ("2026-11-30", 0, "2026-11-30"),
        ("2026-11-30", 13, "2027-12-30"),
        ("9998-11-30", 1, "9998-12-30"),
    ],
)
def test_months_later_is_the_same_day_or_the_last_one(day: str, months: int, later: str) -> None:
    assert months_later(date.fromisoformat(day), months) == date.fromisoformat(later)


def test_what_lies_beyond_the_year_9998_is_no_date() -> None:
    with pytest.raises(PhraseRefused, match="beyond the year 9998"):
        months_later(date(9998, 12, 1), 1)
    assert date_or_none(9998, 12, 31) == date(9998, 12, 31)
    assert date_or_none(1, 1, 1) == date(1, 1, 1)
    assert [
        date_or_none(9999, 1, 1),
        date_or_none(0, 1, 1),
        date_or_none(2026, 0, 1),
        date_or_none(2026, 13, 1),
    ] == [None] * 4
    assert [date_or_none(2026, 11, 0), date_or_none(2026, 11, 31), date_or_none(2026, 11, 30)] == [
        None,
        None,
        date(2026, 11, 30),
    ]


def test_a_weekday_that_its_date_does_not_have_is_refused_with_either() -> None:
    with pytest.raises(NotUnderstood, match="25 December 2026 is a Friday") as refused:
        translate("on monday 25 december 2026 at 9", TriggerContext(SAID))
    told = [each.recurrence or "" for each in refused.value.readings]
    assert [each.rpartition("RDATE:")[2] for each in told] == ["20261225T090000", "20261123T090000"]


def test_a_day_that_a_month_does_not_have_is_refused_with_what_is_left_without_it() -> None:
    with pytest.raises(NotUnderstood, match="that month has no such day") as refused:
        translate("on the fifth tuesday of november 2026 at 9", TriggerContext(SAID))
    assert [each.recurrence for each in refused.value.readings] == ["RDATE:20261119T090000"]


@pytest.mark.parametrize(
    ("phrase", "readings"),
    [
        ("on next friday at 9", ["RDATE:20261120T090000", "RDATE:20261127T090000"]),
        ("on 3/4 at 9", ["RDATE:20270304T090000", "RDATE:20270403T090000"]),
        ("every day until next friday at 9", ["UNTIL=20261120T235959Z", "UNTIL=20261127T235959Z"]),
        ("every day from 3/4 at 9", ["DTSTART:20270304T090000", "DTSTART:20270403T090000"]),
    ],
)
def test_a_day_of_two_dates_is_refused_with_both(phrase: str, readings: list[str]) -> None:
    with pytest.raises(NotUnderstood, match="the day can be read in two ways") as refused:
        translate(phrase, TriggerContext(SAID))
    told = [each.recurrence or "" for each in refused.value.readings]
    assert len(told) == 2
    assert all(wanted in found for wanted, found in zip(readings, told, strict=True)), told
