"""The witness's evaluator beside the scheduler's: two readings of one rule, by code that shares nothing."""

from datetime import UTC, date, datetime, timedelta
from random import Random

import pytest

from scheduler_app.domain.calendars import Calendar, NamedDate
from scheduler_app.domain.calendars.calendar import days_of
from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.recurrence import Observance, OnHoliday, Recurrence
from scheduler_app.witness.evaluator import OwedRule, Unjudged
from tests.unit.recurrence.everyday_sets import everyday_set
from tests.unit.recurrence.random_sets import random_set

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
#: Hours around clock changes of the zones that the random sets use.
CHANGES = [
    datetime(2026, 3, 8, 6, tzinfo=UTC),
    datetime(2026, 11, 1, 5, tzinfo=UTC),
    datetime(2026, 3, 29, 0, tzinfo=UTC),
    datetime(2026, 10, 25, 0, tzinfo=UTC),
    datetime(2026, 4, 4, 14, tzinfo=UTC),
]


def compare(seeds: range) -> tuple[int, int]:
    """Compares hours of random sets; returns how many agreed, and how many were not judged."""
    agreed = unjudged = 0
    for seed in seeds:
        random = Random(seed)
        text, zone = (everyday_set if seed % 4 else random_set)(random)
        gap, overlap = random.choice(["shift", "skip"]), random.choice(["first", "last"])
        try:
            rule = Recurrence.parse(text, created_at=CREATED, timezone=zone, gap=gap, overlap=overlap)
        except InvalidRecurrence:
            continue
        following = rule.after(CREATED + timedelta(days=random.randrange(2000)))
        starts = [random.choice(CHANGES) + HOUR, CREATED + random.randrange(50_000) * HOUR]
        for start in starts + ([following - HOUR / 2] if following else []):
            try:
                found = OwedRule(rule.text, gap, overlap).instants(start, start + HOUR)
            except Unjudged:
                unjudged += 1
                continue
            agreed += 1
            assert found == rule.between(start, start + HOUR), f"{seed}: {rule.text}\n{gap} {overlap} {start}"
    return agreed, unjudged


def test_two_evaluators_agree_on_random_sets() -> None:
    agreed, unjudged = compare(range(60))
    assert agreed > 5 * unjudged


@pytest.mark.long
def test_two_evaluators_agree_on_thousands_of_random_sets() -> None:
    agreed, unjudged = compare(range(1_000, 4_000))
    assert agreed > 5 * unjudged


@pytest.mark.parametrize("on_holiday", ["skip", "next", "previous"])
def test_two_evaluators_agree_on_what_a_calendar_moves(on_holiday: OnHoliday) -> None:
    for seed in range(30):
        random = Random(seed)
        dates = {date(2026, 3, 25) + timedelta(days=random.randrange(12)) for _ in range(5)}
        calendar = Calendar.of(dates=tuple(map(NamedDate, dates)))
        text = f"DTSTART;TZID=Europe/Zurich:20260101T0{random.randrange(4)}3000\nRRULE:FREQ=" + random.choice(
            ["DAILY", "WEEKLY;BYDAY=SA,SU,WE", "MONTHLY;BYMONTHDAY=28,29,30,31,-1", "HOURLY;INTERVAL=5"]
        )
        gap, overlap = random.choice(["shift", "skip"]), random.choice(["first", "last"])
        rule = Recurrence.parse(text, created_at=CREATED, gap=gap, overlap=overlap)
        observed = rule.observing(Observance("c", days_of(calendar), on_holiday))
        closed = {each.date for each in days_of(calendar).days(date(2026, 3, 1), date(2026, 5, 1))}
        owed = OwedRule(rule.text, gap, overlap, closed.__contains__, on_holiday)
        start, end = datetime(2026, 3, 20, tzinfo=UTC), datetime(2026, 4, 14, tzinfo=UTC)
        expected = observed.between(start, end)
        assert owed.instants(start, end) == expected, text
        # An hour alone gives what all of them together give.
        for each in expected[::7]:
            assert owed.instants(each, each + HOUR) == [
                other for other in expected if each <= other < each + HOUR
            ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("DTSTART:20260101T000000Z\nRRULE:FREQ=YEARLY;BYWEEKNO=1;BYDAY=MO", "weeks"),
        ("DTSTART:20260101T000000Z\nRRULE:RSCALE=GREGORIAN;FREQ=MONTHLY;BYMONTHDAY=31;SKIP=BACKWARD", "SKIP"),
        ("DTSTART:20000101T000000Z\nRRULE:FREQ=SECONDLY;BYMONTH=1;COUNT=10000000", "steps"),
        ("DTSTART;TZID=Mars/Olympus:20260101T000000\nRRULE:FREQ=DAILY", "zone"),
        ("RRULE:FREQ=DAILY", "DTSTART"),
    ],
)
def test_what_it_cannot_judge_it_says(text: str, why: str) -> None:
    with pytest.raises(Unjudged, match=why):
        OwedRule(text).instants(datetime(2026, 6, 1, tzinfo=UTC), datetime(2026, 6, 2, tzinfo=UTC))
