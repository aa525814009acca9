"""A list of occurrences for a person has a bound in all, and not for each occurrence alone."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from scheduler_app.domain.calendars import Calendar, days_of
from scheduler_app.domain.recurrence import InvalidRecurrence, Observance, OnHoliday, Recurrence, timeline
from tests.unit.recurrence.everyday_sets import everyday_set
from tests.unit.recurrence.random_sets import random_set

START, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


def test_a_list_that_takes_too_many_steps_together_names_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Recurrence.parse("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU;BYHOUR=9", created_at=START)
    assert len(rule.occurrences(START, END, 20)) == 20
    monkeypatch.setattr(timeline, "LISTING_LIMIT", 100)
    with pytest.raises(InvalidRecurrence, match="ask for fewer") as refused:
        rule.occurrences(START, END, 20)
    assert refused.value.field == "limit"
    assert len(rule.between(START, END, 20)) == 20


@pytest.mark.parametrize("rules", [20, pytest.param(300, marks=pytest.mark.long)])
def test_a_count_is_the_length_of_the_list(rules: int) -> None:
    random = Random(3)
    counted = 0
    while counted < rules:
        text, zone = random.choice([everyday_set, random_set])(random)
        gap, overlap = random.choice(["shift", "skip"]), random.choice(["first", "last"])
        try:
            found = Recurrence.parse(text, created_at=START, timezone=zone, gap=gap, overlap=overlap)
            since = random.choice([START + timedelta(days=90), found.dtstart])
            since += timedelta(seconds=random.randrange(-90_000, 90_000))
            until = since + timedelta(seconds=random.choice([0, 1, 3_600, 86_400, 100_000]))
            listed = found.between(since, until)
        except InvalidRecurrence:
            continue
        assert found.count(since, until) == len(listed), (text, zone, since, until)
        counted += 1


def test_a_count_of_a_month_of_seconds_walks_through_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Recurrence.parse("DTSTART:20260101T000000Z\nRRULE:FREQ=SECONDLY", created_at=START)
    monkeypatch.setattr(timeline, "LISTING_LIMIT", 100)
    assert found.count(START + timedelta(days=1), START + timedelta(days=31)) == 30 * 86_400


def test_a_count_of_what_a_calendar_moves_is_right_too() -> None:
    rule = Recurrence.parse("DTSTART:20260101T090000Z\nRRULE:FREQ=HOURLY", created_at=START)
    weekends = days_of(Calendar.of(weekend=(5, 6)))
    ways: tuple[OnHoliday, ...] = ("skip", "next", "previous")
    for way in ways:
        observed = rule.observing(Observance("office", weekends, way))
        span = START + timedelta(days=3), START + timedelta(days=33)
        assert observed.count(*span) == len(observed.between(*span))
