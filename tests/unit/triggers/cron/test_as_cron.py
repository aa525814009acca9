"""The way back, from a recurrence to a cron expression: exactly the same times, or none."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.triggers import TriggerContext, new_trigger
from scheduler_app.domain.triggers.cron.as_cron import as_cron
from tests.unit.triggers.cron.random_crons import random_cron

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
PARIS = "Europe/Paris"
NINE = "BYHOUR=9;BYMINUTE=0;BYSECOND=0"
EXACT = [
    (f"FREQ=DAILY;{NINE}", PARIS, "0 9 * * *"),
    (f"FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;{NINE}", PARIS, "0 9 * * 1-5"),
    (f"FREQ=DAILY;BYDAY=MO,TU,WE,TH,FR;{NINE}", PARIS, "0 9 * * 1-5"),
    (f"FREQ=MONTHLY;BYMONTHDAY=1,15,-1;{NINE}", PARIS, "0 9 1,15,L * *"),
    (f"FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=25;{NINE}", PARIS, "0 9 25 12 *"),
    (f"FREQ=MONTHLY;BYDAY=2MO;{NINE}", PARIS, "0 9 * * 1#2"),
    (f"FREQ=MONTHLY;BYDAY=MO;BYMONTHDAY=8,9,10,11,12,13,14;{NINE}", PARIS, "0 9 * * 1#2"),
    (f"FREQ=MONTHLY;BYDAY=-1FR;{NINE}", PARIS, "0 9 * * 5L"),
    (f"FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;{NINE}", PARIS, "0 9 LW * *"),
    (f"FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1;{NINE}", PARIS, "0 9 1W * *"),
    (f"FREQ=MONTHLY;BYMONTHDAY=1,2,3,4,5,6,7;BYDAY=SU;{NINE}", PARIS, "0 9 * * 0#1"),
    ("DTSTART;TZID=Europe/Paris:20260105T090000\nRRULE:FREQ=WEEKLY", PARIS, "0 9 * * 1"),
    ("DTSTART;TZID=Europe/Paris:20260105T090000\nRRULE:FREQ=YEARLY", PARIS, "0 9 5 1 *"),
    ("FREQ=HOURLY;BYMINUTE=0,15,30,45;BYSECOND=0", PARIS, "*/15 * * * *"),
    ("FREQ=MINUTELY;BYSECOND=0", PARIS, "* * * * *"),
    ("FREQ=DAILY;BYHOUR=8,10,12;BYMINUTE=30;BYSECOND=0", PARIS, "30 8-12/2 * * *"),
    # In UTC it does not matter whether a rule steps in elapsed time.
    ("FREQ=HOURLY;BYHOUR=9;BYMINUTE=0;BYSECOND=0", "UTC", "0 9 * * *"),
    ("FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=30", PARIS, "30 0 9 * * ?"),
    ("FREQ=WEEKLY;BYDAY=MO;BYHOUR=9;BYMINUTE=0;BYSECOND=30", PARIS, "30 0 9 * * MON"),
]
NONE = [
    ("FREQ=HOURLY;BYHOUR=9;BYMINUTE=0;BYSECOND=0", PARIS),
    (f"FREQ=DAILY;INTERVAL=2;{NINE}", "UTC"),
    (f"FREQ=DAILY;COUNT=5;{NINE}", "UTC"),
    (f"FREQ=DAILY;UNTIL=20270101T000000Z;{NINE}", "UTC"),
    (f"FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13;{NINE}", "UTC"),
    (f"FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO;{NINE}", "UTC"),
    (f"FREQ=YEARLY;BYYEARDAY=100;{NINE}", "UTC"),
    (f"FREQ=YEARLY;BYDAY=20MO;{NINE}", "UTC"),
    (f"FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=2;{NINE}", "UTC"),
    (f"RRULE:FREQ=DAILY;{NINE}\nRRULE:FREQ=DAILY;BYHOUR=17;BYMINUTE=30;BYSECOND=0", "UTC"),
    (f"RRULE:FREQ=DAILY;{NINE}\nEXDATE:20260105T090000Z", "UTC"),
    (f"RRULE:FREQ=DAILY;{NINE}\nRDATE:20260105T100000Z", "UTC"),
    ("DTSTART:20260101T090000Z", "UTC"),
    ("RSCALE=GREGORIAN;FREQ=MONTHLY;BYMONTHDAY=31;SKIP=BACKWARD;" + NINE, "UTC"),
]


@pytest.mark.parametrize(("text", "zone", "cron"), EXACT)
def test_a_recurrence_is_the_cron_expression_that_fires_with_it(text: str, zone: str, cron: str) -> None:
    recurrence = Recurrence.parse(text, created_at=CREATED, timezone=zone)
    assert as_cron(recurrence) == cron
    back = new_trigger({"cron": cron}, TriggerContext(CREATED, zone)).recurrence(CREATED)
    span = recurrence.dtstart, CREATED + timedelta(days=4_000)
    assert back.between(*span, 500) == recurrence.between(*span, 500)


@pytest.mark.parametrize(("text", "zone"), NONE)
def test_what_cron_cannot_say_is_none(text: str, zone: str) -> None:
    assert as_cron(Recurrence.parse(text, created_at=CREATED, timezone=zone)) is None


def test_a_position_that_a_skipped_time_leaves_to_another_day_is_none() -> None:
    """BYSETPOS=-1 falls back to the day before where the time is missing on the last weekday; LW does not."""
    text = f"FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;{NINE}"
    assert as_cron(Recurrence.parse(text, created_at=CREATED, timezone=PARIS, gap="skip")) is None
    assert as_cron(Recurrence.parse(text, created_at=CREATED, timezone="UTC", gap="skip")) == "0 9 LW * *"


@pytest.mark.parametrize("expressions", [30, pytest.param(80, marks=pytest.mark.long)])
def test_a_random_expression_comes_back_with_the_same_occurrences_or_not_at_all(expressions: int) -> None:
    there = back = 0
    for index in range(expressions):
        text, seconds = random_cron(Random(index))
        given = {"cron": text} if seconds is None else {"cron": text, "cron_seconds": seconds}
        context = TriggerContext(CREATED, random_zone(index))
        try:
            first = new_trigger(given, context).recurrence(CREATED)
        except InvalidField:
            continue
        there += 1
        assert isinstance(first, Recurrence)
        again = as_cron(first)
        if again is not None:
            back += 1
            second = new_trigger({"cron": again}, context).recurrence(CREATED)
            for year in (2026, 2028, 2031):
                span = datetime(year, 2, 20, tzinfo=UTC), datetime(year, 4, 20, tzinfo=UTC)
                assert second.between(*span, 300) == first.between(*span, 300), (text, again)
    assert back / there > 0.85


def random_zone(index: int) -> str:
    return ["UTC", PARIS, "America/New_York", "Australia/Lord_Howe"][index % 4]
