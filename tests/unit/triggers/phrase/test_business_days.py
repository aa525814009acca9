"""Business days: Monday to Friday by themselves, and the calendar's where the schedule names one."""

import pytest

from scheduler_app.domain.triggers import NotUnderstood, Translation, TriggerContext
from scheduler_app.domain.triggers.phrase.translation import translate
from tests.unit.triggers.phrase.judged import SAID, times_of


def said(phrase: str, *, calendar: bool = False) -> Translation:
    return translate(phrase, TriggerContext(SAID, calendar=calendar))


def days(phrase: str) -> list[str]:
    return [f"{moment:%Y-%m-%d}" for moment in times_of(said(phrase))[:8]]


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        # 1 January 2028 and 1 July 2028 are Saturdays, 1 October 2028 is a Sunday.
        (
            "first business day of each quarter at 9am",
            "2027-01-01 2027-04-01 2027-07-01 2027-10-01 2028-01-03 2028-04-03 2028-07-03 2028-10-02",
        ),
        # 31 January and 28 February 2027 are Sundays, 31 July is a Saturday.
        (
            "last business day of the month at 16:30",
            "2026-11-30 2026-12-31 2027-01-29 2027-02-26 2027-03-31 2027-04-30 2027-05-31 2027-06-30",
        ),
        # 15 May and 15 August 2027 fall on a weekend.
        (
            "every 15th, or the business day before, at 9:00",
            "2026-12-15 2027-01-15 2027-02-15 2027-03-15 2027-04-15 2027-05-14 2027-06-15 2027-07-15",
        ),
        (
            "every 15th or the business day after at 9:00",
            "2026-12-15 2027-01-15 2027-02-15 2027-03-15 2027-04-15 2027-05-17 2027-06-15 2027-07-15",
        ),
    ],
)
def test_without_a_calendar_they_are_monday_to_friday(phrase: str, expected: str) -> None:
    assert days(phrase) == expected.split()


@pytest.mark.parametrize(
    ("phrase", "rule", "on_holiday"),
    [
        ("last business day of the month at 9:00", "FREQ=MONTHLY;BYMONTHDAY=-1", "previous"),
        ("first business day of the month at 9:00", "FREQ=MONTHLY;BYMONTHDAY=1", "next"),
        (
            "first business day of each quarter at 9:00",
            "FREQ=MONTHLY;BYMONTH=1,4,7,10;BYMONTHDAY=1",
            "next",
        ),
        ("every 15th or the business day before at 9:00", "FREQ=MONTHLY;BYMONTHDAY=15", "previous"),
        ("the 1st or the next working day at 9:00 every month", "FREQ=MONTHLY;BYMONTHDAY=1", "next"),
        ("every business day at 9:00", "FREQ=DAILY", "skip"),
    ],
)
def test_with_a_calendar_the_rule_rolls(phrase: str, rule: str, on_holiday: str) -> None:
    """The calendar knows its weekend too, so the rule names days that it moves."""
    found = said(phrase, calendar=True)
    assert found.recurrence == f"RRULE:{rule};BYHOUR=9;BYMINUTE=0;BYSECOND=0"
    assert found.on_holiday == on_holiday
    assert said(phrase).on_holiday == on_holiday


@pytest.mark.parametrize("phrase", ["every weekday at 9:00", "last weekday of the month at 9:00"])
def test_weekdays_are_no_business_days(phrase: str) -> None:
    assert said(phrase) == said(phrase, calendar=True)
    assert said(phrase).on_holiday is None


@pytest.mark.parametrize(
    ("phrase", "words"),
    [
        ("second business day of the month at 9:00", "only the first and the last"),
        ("first and last business day of the month at 9:00", "two schedules"),
    ],
)
def test_what_a_calendar_cannot_count_is_refused(phrase: str, words: str) -> None:
    assert times_of(said(phrase))
    with pytest.raises(NotUnderstood, match=words):
        said(phrase, calendar=True)


@pytest.mark.parametrize(
    "phrase", ["the 1st or the business day before", "every 31st or the business day before"]
)
def test_a_business_day_that_may_lie_in_another_month_is_refused(phrase: str) -> None:
    with pytest.raises(NotUnderstood, match="calendar"):
        said(f"{phrase} at 9:00 every month")


def test_holidays_need_a_calendar() -> None:
    with pytest.raises(NotUnderstood, match="calendar") as refused:
        said("every weekday at 9:00 except public holidays")
    assert refused.value.not_understood == ("holidays",)


def test_the_first_of_several_hours_is_not_counted_by_bysetpos() -> None:
    found = times_of(said("first business day of the month at 9:00 and 17:00"))[:2]
    assert [str(moment) for moment in found] == ["2026-12-01 09:00:00", "2026-12-01 17:00:00"]
