"""dateutil's `rrule` beside the evaluator: the same where it is right, and its known mistakes corrected."""

from datetime import UTC, datetime, timedelta

import pytest
from dateutil.rrule import rrulestr

from scheduler_app.domain.recurrence import Recurrence

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
SAME = [
    "FREQ=DAILY;INTERVAL=3",
    "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,TU;WKST=SU",
    "FREQ=MONTHLY;BYDAY=2TU,-1FR",
    "FREQ=MONTHLY;INTERVAL=5;BYMONTHDAY=31,-2",
    "FREQ=YEARLY;BYDAY=20MO,-1SU",
    "FREQ=YEARLY;BYWEEKNO=20,-10;BYDAY=WE",
    "FREQ=YEARLY;BYYEARDAY=1,-1,60",
    "FREQ=YEARLY;BYMONTH=5,2;BYMONTHDAY=13;BYDAY=FR",
    "FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR",
    "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
    "FREQ=HOURLY;INTERVAL=7;BYDAY=MO;BYHOUR=3,9",
    "FREQ=MINUTELY;INTERVAL=25;BYMINUTE=0,5",
    "FREQ=SECONDLY;INTERVAL=11;BYSECOND=0,7",
]


@pytest.mark.parametrize("rule", SAME)
def test_both_agree_on_rules_in_utc(rule: str) -> None:
    text = f"DTSTART:20240115T090000Z\nRRULE:{rule}"
    other = rrulestr(text)
    found = Recurrence.parse(text, created_at=CREATED)
    expected = [moment for moment, _ in zip(other, range(40), strict=False)]
    assert found.between(found.dtstart, expected[-1] + timedelta(seconds=1)) == expected


def test_a_position_is_counted_in_the_whole_first_period() -> None:
    # dateutil issue 1398: it cuts the month at DTSTART and takes the second Monday of the rest, the 27th.
    text = "DTSTART:20250114T090000Z\nRRULE:FREQ=MONTHLY;BYDAY=MO;BYSETPOS=2"
    found = Recurrence.parse(text, created_at=CREATED)
    assert found.after(found.dtstart, inclusive=True) == datetime(2025, 2, 10, 9, tzinfo=UTC)
    weekly = "DTSTART:20250115T090000Z\nRRULE:FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=1"
    assert Recurrence.parse(weekly, created_at=CREATED).after(CREATED - timedelta(days=900)) == datetime(
        2025, 1, 20, 9, tzinfo=UTC
    )


def test_the_first_days_of_january_are_in_the_week_that_iso_8601_says() -> None:
    # dateutil pull request 1537: it gives the last week of the previous year a number one too high.
    text = "DTSTART:20000101T090000Z\nRRULE:FREQ=YEARLY;BYWEEKNO={};BYDAY=MO,TU,WE,TH,FR,SA,SU"
    end = datetime(2100, 1, 1, tzinfo=UTC)
    for number in (1, 52, 53):
        found = Recurrence.parse(text.format(number), created_at=CREATED)
        instants = set(found.between(found.dtstart, end))
        day = found.dtstart
        while day < end:
            assert (day in instants) is (day.isocalendar().week == number), (number, day)
            day += timedelta(days=1)
