"""Business days: Monday to Friday by themselves, and the calendar's where the schedule names one."""

from datetime import timedelta

import pytest

from scheduler_app.domain.calendars import Calendar, days_of
from scheduler_app.domain.recurrence import Observance, Recurrence
from scheduler_app.domain.triggers import NotUnderstood, Translation, TriggerContext, new_trigger
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


#: With the day of the month on which each falls in Zurich, from December 2026 on. Good Friday of 2027 is
#: 26 March; 2 January, which is a holiday there, is a Saturday.
COUNTED = [
    ("second business day of the month at 9:00", "12-02 01-05 02-02 03-02 04-02 05-04"),
    ("the third business day of the month at 9:00", "12-03 01-06 02-03 03-03 04-05 05-05"),
    ("every month on the 3rd working day at 9:00", "12-03 01-06 02-03 03-03 04-05 05-05"),
    ("monthly on the tenth business day at 9:00", "12-14 01-15 02-12 03-12 04-14 05-18"),
    ("first and last business day of the month at 9:00", "11-30 12-01 12-31 01-04 01-29 02-01"),
    ("first two business days of each month at 9:00", "12-01 12-02 01-04 01-05 02-01 02-02"),
    ("the last 2 business days of every month at 9:00", "11-27 11-30 12-30 12-31 01-28 01-29"),
    ("third to last business day of the month at 9:00", "11-26 12-29 01-27 02-24 03-25 04-28"),
    ("second business day of january and april at 9:00", "01-05 04-02 01-04 04-04 01-03 04-04"),
    ("the fifth business day of each quarter at 9:00", "01-08 04-07 07-07 10-07 01-07 04-07"),
    ("20th business day of the year at 9:00", "01-29 01-28 01-29 01-29 01-29 01-29"),
    ("third business day of the month at 9:00, 2 times", "12-03 01-06"),
    ("second business day of the month at 9:00 starting 5 december", "01-05 02-02 03-02 04-02 05-04 06-02"),
    ("last 2 business days of the month at 9:00 starting 1 december", "12-30 12-31 01-28 01-29 02-25 02-26"),
]


@pytest.mark.parametrize(("phrase", "expected"), COUNTED)
def test_a_calendar_counts_its_open_days(phrase: str, expected: str) -> None:
    context = TriggerContext(SAID, "Europe/Zurich", calendar=True)
    trigger = new_trigger({"phrase": phrase}, context)
    assert trigger.on_holiday == "uncounted"
    recurrence = trigger.recurrence(SAID)
    assert isinstance(recurrence, Recurrence)
    zurich = days_of(Calendar.of(country="CH", subdivision="ZH"))
    observed = recurrence.observing(Observance("zurich", zurich, trigger.on_holiday))
    found = observed.occurrences(SAID, SAID + timedelta(days=9_000), limit=6)
    assert [f"{each.local:%m-%d}" for each in found] == expected.split()
    assert {f"{each.local:%H:%M}" for each in found} == {"09:00"}
    assert not [each for each in observed.warnings if "DTSTART" in each]


def test_so_many_times_on_business_days_are_so_many_open_days() -> None:
    assert said("every business day at 9:00, 10 times", calendar=True).on_holiday == "uncounted"


@pytest.mark.parametrize(
    ("phrase", "words"),
    [
        ("first monday and last business day of the month at 9:00", "two schedules"),
        ("second business day of every other month at 9:00", "name the months"),
        ("every business day at 9:00 and 17:30, 10 times", "several times of day"),
        ("30th business day of the month at 9:00", "no month has so many"),
    ],
)
def test_what_a_calendar_cannot_count_is_refused(phrase: str, words: str) -> None:
    with pytest.raises(NotUnderstood, match=words) as refused:
        said(phrase, calendar=True)
    assert bool(refused.value.readings) == ("no month" not in words)


@pytest.mark.parametrize(
    "phrase", ["the 1st or the business day before", "every 31st or the business day before"]
)
def test_a_business_day_that_may_lie_in_another_month_is_refused(phrase: str) -> None:
    with pytest.raises(NotUnderstood, match="calendar"):
        said(f"{phrase} at 9:00 every month")


@pytest.mark.parametrize(
    ("phrase", "rule", "warned"),
    [
        ("every weekday at 9:00 except public holidays", "WEEKLY;BYDAY=MO,TU,WE,TH,FR", False),
        ("every monday at 9:00 except holidays", "WEEKLY;BYDAY=MO", False),
        ("every weekday at 9:00 but not on bank holidays", "WEEKLY;BYDAY=MO,TU,WE,TH,FR", False),
        ("weekdays at 9:00 excluding holidays", "WEEKLY;BYDAY=MO,TU,WE,TH,FR", False),
        ("every day at 9:00 except weekends and holidays", "WEEKLY;BYDAY=MO,TU,WE,TH,FR", False),
        ("first monday of the month at 9:00 except holidays", "MONTHLY;BYDAY=1MO", False),
        ("every day at 9:00 except holidays", "DAILY", True),
        ("every day at 9:00 except holidays and sundays", "WEEKLY;BYDAY=MO,TU,WE,TH,FR,SA", True),
        ("every saturday at 9:00 without holidays", "WEEKLY;BYDAY=SA", True),
        ("every 15th at 9:00 except on public holidays", "MONTHLY;BYMONTHDAY=15", True),
    ],
)
def test_holidays_are_those_of_the_calendar(phrase: str, rule: str, warned: bool) -> None:
    """Its weekend days are closed as its holidays are: where a rule may fall on them, that is said."""
    found = said(phrase, calendar=True)
    assert found.recurrence == f"RRULE:FREQ={rule};BYHOUR=9;BYMINUTE=0;BYSECOND=0"
    assert found.on_holiday == "skip"
    assert bool([text for text in found.warnings if "weekend days" in text]) == warned


def test_holidays_need_a_calendar() -> None:
    with pytest.raises(NotUnderstood, match="give the schedule one") as refused:
        said("every weekday at 9:00 except public holidays")
    assert refused.value.not_understood == ("holidays",)


def test_the_first_of_several_hours_is_not_counted_by_bysetpos() -> None:
    found = times_of(said("first business day of the month at 9:00 and 17:00"))[:2]
    assert [str(moment) for moment in found] == ["2026-12-01 09:00:00", "2026-12-01 17:00:00"]
