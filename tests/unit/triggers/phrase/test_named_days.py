"""The rules that phrases of named days become, part by part, and which phrases name days in no one way."""

from datetime import UTC, datetime

import pytest

from scheduler_app.domain.triggers import NotUnderstood, TriggerContext
from scheduler_app.domain.triggers.phrase import clauses
from scheduler_app.domain.triggers.phrase.clause_bag import NAMES
from scheduler_app.domain.triggers.phrase.clauses import (
    Clause,
    ExceptedClause,
    HolidaysClause,
    RepeatingClause,
)
from scheduler_app.domain.triggers.phrase.translation import translate
from tests.unit.triggers.phrase.judged import SAID

AT_NINE = ";BYHOUR=9;BYMINUTE=0;BYSECOND=0"
WORKDAYS = "BYDAY=MO,TU,WE,TH,FR"

#: The rule without its time of day, and what it does where a day is no business day. They are said on
#: Wednesday, 18 November 2026.
UNDERSTOOD = [
    (
        "on the 15th of every month or the next business day",
        f"MONTHLY;{WORKDAYS};BYMONTHDAY=15,16,17;BYSETPOS=1",
        "next",
    ),
    (
        "every month on the 15th or the business day before",
        f"MONTHLY;{WORKDAYS};BYMONTHDAY=13,14,15;BYSETPOS=-1",
        "previous",
    ),
    (
        "the last day of the month or the business day before",
        f"MONTHLY;{WORKDAYS};BYMONTHDAY=-3,-2,-1;BYSETPOS=-1",
        "previous",
    ),
    (
        "the first day of every month or the next business day",
        f"MONTHLY;{WORKDAYS};BYMONTHDAY=1,2,3;BYSETPOS=1",
        "next",
    ),
    (
        "the last day of march or the business day before",
        f"MONTHLY;BYMONTH=3;{WORKDAYS};BYMONTHDAY=-3,-2,-1;BYSETPOS=-1",
        "previous",
    ),
    (
        "the last day of every 2 months or the business day before",
        f"MONTHLY;{WORKDAYS};BYMONTHDAY=-3,-2,-1;BYSETPOS=-1;INTERVAL=2 from 20261130",
        "previous",
    ),
    ("every quarter on the 1st", "MONTHLY;BYMONTH=1,4,7,10;BYMONTHDAY=1", None),
    ("every day in q1", "DAILY;BYMONTH=1,2,3", None),
    ("every monday in q1", "WEEKLY;BYMONTH=1,2,3;BYDAY=MO", None),
    ("every monday of the month", "WEEKLY;BYDAY=MO", None),
    ("every week on friday", "WEEKLY;BYDAY=FR", None),
    ("every 3 weeks on friday", "WEEKLY;BYDAY=FR;INTERVAL=3 from 20261120", None),
    ("every 2 weeks on monday and friday", "WEEKLY;BYDAY=MO,FR;INTERVAL=2 from 20261120", None),
    ("every monday every 2 weeks", "WEEKLY;BYDAY=MO;INTERVAL=2 from 20261123", None),
    ("every other monday every week", "WEEKLY;BYDAY=MO;INTERVAL=2 from 20261123", None),
    ("every day every monday", "WEEKLY;BYDAY=MO", None),
    ("every december 25 every day", "YEARLY;BYMONTH=12;BYMONTHDAY=25", None),
    ("every year on monday and friday of week 12", "YEARLY;BYWEEKNO=12;BYDAY=MO,FR", None),
    ("every year on monday of week 12", "YEARLY;BYWEEKNO=12;BYDAY=MO", None),
    ("every month on mondays between the 8th and the 9th", "MONTHLY;BYMONTHDAY=8,9;BYDAY=MO", None),
    ("in march and april", "DAILY;BYMONTH=3,4", None),
    (
        "every month on the first monday of every other month",
        "MONTHLY;BYDAY=1MO;INTERVAL=2 from 20261207",
        None,
    ),
    ("every 2 months on the first monday of the month", "MONTHLY;BYDAY=1MO;INTERVAL=2 from 20261207", None),
    ("every 2 weeks on monday in march", "WEEKLY;BYMONTH=3;BYDAY=MO;INTERVAL=2 from 20270301", None),
    ("every 3 months on the 15th", "MONTHLY;BYMONTHDAY=15;INTERVAL=3 from 20261215", None),
    ("the 10th of every other month", "MONTHLY;BYMONTHDAY=10;INTERVAL=2 from 20261210", None),
    ("every year in march on the 10th", "MONTHLY;BYMONTH=3;BYMONTHDAY=10", None),
    ("every day on the 10th in march", "MONTHLY;BYMONTH=3;BYMONTHDAY=10", None),
    ("every day on the 10th", "MONTHLY;BYMONTHDAY=10", None),
    ("the 5th of every month in march", "MONTHLY;BYMONTH=3;BYMONTHDAY=5", None),
    ("every year on december 25", "YEARLY;BYMONTH=12;BYMONTHDAY=25", None),
    ("every 2 years on december 25", "YEARLY;BYMONTH=12;BYMONTHDAY=25;INTERVAL=2 from 20261225", None),
    ("the first monday of every month", "MONTHLY;BYDAY=1MO", None),
    ("the first monday of every 2 months", "MONTHLY;BYDAY=1MO;INTERVAL=2 from 20261207", None),
    ("the first monday of march", "MONTHLY;BYMONTH=3;BYDAY=1MO", None),
    ("first monday of the quarter", "MONTHLY;BYMONTH=1,4,7,10;BYDAY=1MO", None),
    ("every first monday", "MONTHLY;BYDAY=1MO", None),
    ("every last friday", "MONTHLY;BYDAY=-1FR", None),
    ("every day on the first monday", "MONTHLY;BYDAY=1MO", None),
    ("the first business day of every quarter", f"MONTHLY;BYMONTH=1,4,7,10;{WORKDAYS};BYSETPOS=1", "next"),
    ("every friday the 13th", "MONTHLY;BYDAY=FR;BYMONTHDAY=13", None),
    ("every friday the 13th in march", "MONTHLY;BYMONTH=3;BYDAY=FR;BYMONTHDAY=13", None),
    ("every day on friday the 13th", "MONTHLY;BYDAY=FR;BYMONTHDAY=13", None),
    ("every 2 months on friday the 13th", "MONTHLY;BYDAY=FR;BYMONTHDAY=13;INTERVAL=2 from 20270813", None),
    ("every 2 weeks starting monday", "WEEKLY;BYDAY=MO;INTERVAL=2 from 20261123", None),
    ("every week starting january 31", "WEEKLY;BYDAY=SU from 20270131", None),
    ("every month starting january 28", "MONTHLY;BYMONTHDAY=28 from 20270128", None),
    ("every 3 months starting january 28", "MONTHLY;BYMONTHDAY=28;INTERVAL=3 from 20270128", None),
    ("every year starting march 3", "YEARLY;BYMONTH=3;BYMONTHDAY=3 from 20270303", None),
]

REFUSED = [
    ("every monday and the 15th", "named in two ways"),
    ("the first monday between the 8th and the 14th", "named in two ways"),
    ("every december 25 between the 8th and the 14th", "named in two ways"),
    ("the 20th between the 8th and the 14th", "the part of the month does not go together with the rest"),
    ("the 20th in week 12", "the week of the year does not go together with the rest"),
    ("every monday between the 8th and the 14th of every year", "go together with every month only"),
    ("mondays from the 8th to the 14th every 2 months", "go together with every month only"),
    ("every monday in week 12 in march", "weeks of the year go together with days of the week only"),
    ("first monday of the month in week 12", "weeks of the year go together with days of the week only"),
    ("every month on monday in week 12", "weeks of the year go together with every year only"),
    ("in q1", "on which days of the quarter"),
    ("every monday or the next business day", "needs a day of the month before it"),
    ("the second day of the month or the next business day", "needs a day of the month before it"),
    ("the first monday of the month or the next business day", "needs a day of the month before it"),
    ("the first day of every quarter or the next business day", "needs a day of the month before it"),
    ("every monday of every other month", "say on which day of the month"),
    ("every year on the 15th", "say of which month the day is"),
    ("every 2 days on the 10th", "does not go together with several days or weeks"),
    ("the 10th every week", "does not go together with several days or weeks"),
    ("every 2 years on friday the 13th", "goes together with months only"),
    ("every 2 weeks on friday the 13th", "goes together with months only"),
    ("every december 25 in march", "dates do not go together"),
    ("every december 25 every 2 days", "dates do not go together"),
    ("every december 25 every month", "dates do not go together"),
    ("every month on december 25", "one day does not go together with what repeats"),
    ("every 2 years on monday of week 12", "weeks of the year go together with every year only"),
    ("every year on next monday of week 12", "weeks of the year go together with days of the week only"),
    ("every year on monday or friday of week 12", "weeks of the year go together with days of the week only"),
    ("every monday in week 12 of the month", "weeks are numbered within the year only"),
    ("every year on december 25 of week 12", "weeks of the year go together with days of the week only"),
    ("every month every monday", "days of the week go together with weeks only"),
    ("every 2 days every monday", "days of the week go together with weeks only"),
    ("every 2 quarters on the 1st", "so many of these units cannot be skipped"),
    ("the 10th of every other month in march", "the months are named in two ways"),
    ("every year on monday", "one day does not go together with what repeats"),
    ("every week on next friday", "one day does not go together with what repeats"),
    ("every week on monday or friday", "one day does not go together with what repeats"),
    ("every year on 25 december 2026", "one day does not go together with what repeats"),
    ("every 2 days on monday", "one day does not go together with what repeats"),
    ("every other weekday every 2 weeks", "two intervals are given"),
    ("first monday of every quarter in march", "quarters and named months do not go together"),
    ("every quarter in march on the 10th", "quarters and named months do not go together"),
    ("the 10th of every year in march", "the months are named in two ways"),
    ("every 2 years on the first monday of the month", "two units are named"),
    ("every 2 months on the first monday of every other month", "two units are named"),
    ("every week on the first monday", "the ordinal needs a month, a quarter or a year"),
    ("every 3 weeks on the first monday", "the ordinal needs a month, a quarter or a year"),
    ("every 2 quarters on the first day", "so many of these units cannot be skipped"),
    ("the first monday of every 2 years", "so many of these units cannot be skipped"),
    # The first day is one of the year, the last one that of a month.
    ("the first and last day of every 2 years", "so many of these units cannot be skipped"),
    ("every 3 months on the 15th in march", "several months apart and named months"),
    ("every 2 days in march", "several days apart and named months"),
    ("every 2 months in march", "say on which day"),
    ("every month in march starting january 15", "say on which day"),
    ("every month starting january 29", "not every month has that day"),
    ("every year starting february 29", "not every month has that day"),
]

UNCLEAR = [
    ("every other weekday", ["WEEKLY;BYDAY=MO,WE,FR", f"WEEKLY;{WORKDAYS};INTERVAL=2 from 20261119"]),
    ("every second monday", ["MONTHLY;BYDAY=2MO", "WEEKLY;BYDAY=MO;INTERVAL=2 from 20261123"]),
    ("the second monday", ["MONTHLY;BYDAY=2MO"]),
    ("the first monday in q1", ["MONTHLY;BYMONTH=1;BYDAY=1MO", "MONTHLY;BYMONTH=1,2,3;BYDAY=1MO"]),
    ("in q1", ["DAILY;BYMONTH=1,2,3"]),
    ("every first and third monday", ["MONTHLY;BYDAY=1MO,3MO"]),
    ("first monday and tuesday of the month", ["MONTHLY;BYDAY=1MO,1TU"]),
    ("every third weekday", [f"MONTHLY;{WORKDAYS};BYSETPOS=3"]),
    # The first or the last one may be that of each week, too.
    ("every first business day", [f"MONTHLY;{WORKDAYS};BYSETPOS=1", "WEEKLY;BYDAY=MO"]),
    ("every last business day", [f"MONTHLY;{WORKDAYS};BYSETPOS=-1", "WEEKLY;BYDAY=FR"]),
    ("every second business day", [f"MONTHLY;{WORKDAYS};BYSETPOS=2"]),
    ("every week", ["WEEKLY;BYDAY=MO", "WEEKLY;BYDAY=WE", "WEEKLY;BYDAY=TH"]),
    ("every month", ["MONTHLY;BYMONTHDAY=1", "MONTHLY;BYMONTHDAY=18"]),
    ("every quarter", ["MONTHLY;BYMONTH=1,4,7,10;BYMONTHDAY=1", "MONTHLY;BYMONTH=3,6,9,12;BYMONTHDAY=-1"]),
    (
        "every quarter starting january 15",
        [
            "MONTHLY;BYMONTH=1,4,7,10;BYMONTHDAY=1 from 20270401",
            "MONTHLY;BYMONTH=3,6,9,12;BYMONTHDAY=-1 from 20270331",
        ],
    ),
    ("every year", ["YEARLY;BYMONTH=1;BYMONTHDAY=1", "YEARLY;BYMONTH=11;BYMONTHDAY=18"]),
]


def recurrence(short: str) -> str:
    rule, _, start = short.partition(" from ")
    parts, _, interval = rule.partition(";INTERVAL=")
    told = f"RRULE:FREQ={parts}{AT_NINE}" + (f";INTERVAL={interval}" if interval else "")
    return f"DTSTART:{start}T090000\n{told}" if start else told


@pytest.mark.parametrize(("phrase", "short", "on_holiday"), UNDERSTOOD)
def test_named_days_become_the_parts_of_a_rule(phrase: str, short: str, on_holiday: str | None) -> None:
    meaning = translate(f"{phrase} at 9", TriggerContext(SAID))
    assert (meaning.recurrence, meaning.on_holiday) == (recurrence(short), on_holiday)


@pytest.mark.parametrize(("phrase", "why"), REFUSED)
def test_days_that_do_not_go_together_are_refused_with_the_reason(phrase: str, why: str) -> None:
    with pytest.raises(NotUnderstood) as refused:
        translate(f"{phrase} at 9", TriggerContext(SAID))
    assert why in refused.value.message


@pytest.mark.parametrize(("phrase", "readings"), UNCLEAR)
def test_days_that_can_be_meant_in_two_ways_are_refused_with_all_of_them(
    phrase: str, readings: list[str]
) -> None:
    with pytest.raises(NotUnderstood) as refused:
        translate(f"{phrase} at 9", TriggerContext(SAID))
    assert [each.recurrence for each in refused.value.readings] == [recurrence(each) for each in readings]


def test_the_day_that_follows_sunday_is_monday() -> None:
    sunday = datetime(2026, 11, 22, 10, tzinfo=UTC)
    with pytest.raises(NotUnderstood) as refused:
        translate("every week at 9", TriggerContext(sunday))
    told = [each.recurrence for each in refused.value.readings]
    assert told == [recurrence("WEEKLY;BYDAY=MO"), recurrence("WEEKLY;BYDAY=SU")]


def test_a_refusal_has_words_for_every_kind_of_clause() -> None:
    kinds = {kind for kind in vars(clauses).values() if isinstance(kind, type) and issubclass(kind, Clause)}
    # Holidays only stand behind "except", which is named as a whole.
    assert set(NAMES) == kinds - {Clause, ExceptedClause, HolidaysClause, RepeatingClause}


@pytest.mark.parametrize(
    ("phrase", "why", "readings"),
    [
        (
            "the 15th of every month or the nearest business day",
            "say the business day before or the one after",
            [("MONTHLY;BYMONTHDAY=15", "previous"), ("MONTHLY;BYMONTHDAY=15", "next")],
        ),
        (
            "the first monday and the last business day of the month",
            "business days and other days need two schedules",
            [("MONTHLY;BYMONTHDAY=-1", "previous"), ("MONTHLY;BYDAY=1MO", None)],
        ),
        # The calendar may close a week's Monday.
        ("every first business day", "say of which week", [("MONTHLY;BYMONTHDAY=1", "next")]),
    ],
)
def test_what_a_calendar_cannot_say_at_once_is_refused_with_each_part(
    phrase: str, why: str, readings: list[tuple[str, str | None]]
) -> None:
    with pytest.raises(NotUnderstood) as refused:
        translate(f"{phrase} at 9", TriggerContext(SAID, calendar=True))
    assert why in refused.value.message
    told = [(each.recurrence, each.on_holiday) for each in refused.value.readings]
    assert told == [(recurrence(rule), on_holiday) for rule, on_holiday in readings]


def test_the_nearest_weekday_needs_no_calendar() -> None:
    phrase = "the 15th of every month or the nearest weekday at 9"
    context = TriggerContext(SAID, calendar=True)
    assert translate(phrase, context).recurrence == translate(phrase, TriggerContext(SAID)).recurrence
