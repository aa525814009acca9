"""Nothing hangs: steps are counted, the calendar's cycle proves, and the edges of time are no cliffs."""

import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.domain.recurrence import InvalidRecurrence, Recurrence
from scheduler_app.domain.recurrence.timeline import PARSE_LIMIT, StepBudget

CREATED = datetime(2026, 11, 21, tzinfo=UTC)
MINUTES = ",".join(map(str, range(60)))
HOURS = ",".join(map(str, range(24)))
NEW_YORK = "DTSTART;TZID=America/New_York:20260101T020000\nRRULE:"
NASTY = [
    "DTSTART:19700101T000000Z\nRRULE:FREQ=SECONDLY;INTERVAL=7;BYSECOND=3;BYMONTH=2",
    "FREQ=SECONDLY;INTERVAL=86399;BYSECOND=3;BYMONTH=2",
    "FREQ=SECONDLY;INTERVAL=86399;BYHOUR=3,5;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
    f"{NEW_YORK}FREQ=SECONDLY;INTERVAL=86399;BYHOUR=3;BYMINUTE=7;BYSECOND=5;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
    f"{NEW_YORK}FREQ=SECONDLY;INTERVAL=604801;BYDAY=FR;BYHOUR=2;BYMINUTE=0;BYSECOND=1",
    f"{NEW_YORK}FREQ=SECONDLY;INTERVAL=604800;BYDAY=FR",
    f"{NEW_YORK}FREQ=HOURLY;INTERVAL=168;BYDAY=FR",
    f"{NEW_YORK}FREQ=HOURLY;INTERVAL=24;BYHOUR=3;BYMONTH=1",
    f"{NEW_YORK}FREQ=MINUTELY;INTERVAL=10079;BYHOUR=5;BYMINUTE=3;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
    "FREQ=HOURLY;INTERVAL=3506328;BYMONTH=2;BYMONTHDAY=29",
    "FREQ=DAILY;INTERVAL=1000;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
    "FREQ=DAILY;INTERVAL=1000000000",
    "FREQ=YEARLY;INTERVAL=1000000000",
    "FREQ=MONTHLY;INTERVAL=7;BYDAY=MO;BYSETPOS=6",
    f"FREQ=YEARLY;BYDAY=MO;BYHOUR={HOURS};BYMINUTE={MINUTES};BYSECOND={MINUTES};BYSETPOS=-366,366",
    f"FREQ=HOURLY;BYMINUTE={MINUTES};BYSECOND={MINUTES};BYSETPOS=-366,366",
    f"FREQ=HOURLY;INTERVAL=24;BYMINUTE={MINUTES};BYSECOND={MINUTES};BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
    "FREQ=SECONDLY\nEXRULE:FREQ=SECONDLY",
    "DTSTART:00010101T000000Z\nRRULE:FREQ=SECONDLY\nEXRULE:FREQ=SECONDLY;UNTIL=99991231T000000Z",
    "DTSTART:19000101T000000Z\nRRULE:FREQ=SECONDLY;BYSECOND=0,30;COUNT=100000",
    "\n".join(f"RRULE:FREQ=SECONDLY;INTERVAL={86_399 - n};BYSECOND=3;BYMINUTE=7" for n in range(16)),
    "FREQ=DAILY\nEXDATE:"
    + ",".join(f"2026{m:02d}{d:02d}T000000Z" for m in range(1, 13) for d in range(1, 29)),
    "FREQ=DAILY;" * 5_000,
    "FREQ=DAILY;BYDAY=" + "," * 60_000,
    'DTSTART;TZID="' + "A" * 60_000,
    "\n " * 30_000,
]


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_a_nasty_text_is_answered_at_once(text: str) -> None:
    begin = time.process_time()
    with suppress(InvalidRecurrence):
        Recurrence.parse(text, created_at=CREATED).after(CREATED)
    # It takes 150 ms at most, beside which what other tests have left may be collected; a hang or a walk
    # would take seconds even on a fast machine.
    assert time.process_time() - begin < 2


def test_the_steps_are_limited_and_the_reason_is_given() -> None:
    # Nothing is left, and positions are not reasoned about: each day is looked at.
    text = "DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY;BYHOUR=9\nEXRULE:FREQ=DAILY;BYHOUR=9;BYSETPOS=1"
    with pytest.raises(InvalidRecurrence, match=f"within {PARSE_LIMIT} steps"):
        Recurrence.parse(text, created_at=CREATED)


def test_a_rule_that_next_fires_decades_away_is_found() -> None:
    text = "DTSTART:20260101T000000Z\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO"
    assert Recurrence.parse(text, created_at=CREATED).after(CREATED) == datetime(2044, 2, 29, tzinfo=UTC)
    rule = "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=29;BYHOUR=12;BYMINUTE=0;BYSECOND=0"
    text = f"DTSTART:20960301T000000Z\nRRULE:{rule}"
    assert Recurrence.parse(text, created_at=CREATED).after(CREATED) == datetime(2104, 2, 29, 12, tzinfo=UTC)


def test_a_window_without_a_limit_is_not_filled_without_end() -> None:
    recurrence = Recurrence.parse("DTSTART:20260101T000000Z\nRRULE:FREQ=SECONDLY", created_at=CREATED)
    with pytest.raises(InvalidRecurrence, match="ask for fewer"):
        recurrence.between(CREATED, CREATED + timedelta(days=12))


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "America/New_York"])
@pytest.mark.parametrize("freq", ["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"])
def test_the_first_and_the_last_years_are_ordinary(freq: str, zone: str) -> None:
    first = datetime(1, 1, 1, tzinfo=UTC)
    last = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    early = Recurrence.parse(f"DTSTART;TZID={zone}:00010102T120000\nRRULE:FREQ={freq}", created_at=CREATED)
    assert early.after(first) == early.dtstart
    assert early.after(CREATED) is not None
    assert len(early.occurrences(CREATED, last, 3)) == 3
    late = Recurrence.parse(f"DTSTART;TZID={zone}:99991230T000000\nRRULE:FREQ={freq}", created_at=CREATED)
    assert late.after(CREATED) == late.dtstart
    assert late.after(last) is None


def test_a_recurrence_ends_with_the_calendar() -> None:
    recurrence = Recurrence.parse("DTSTART:99991231T235958Z\nRRULE:FREQ=SECONDLY", created_at=CREATED)
    last = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert recurrence.between(CREATED, last) == [last - timedelta(seconds=1)]
    assert recurrence.after(last - timedelta(seconds=1)) == last
    assert recurrence.after(last) is None


def test_a_rule_whose_every_time_lies_in_a_gap_is_found_year_by_year() -> None:
    # Summer time begins at 02:00 on the last Sunday of March: each occurrence is moved to 03:30.
    text = "DTSTART;TZID=Europe/Zurich:20260329T023000\nRRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU"
    lines = [text, *(f"RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU;BYMINUTE={minute}" for minute in range(9))]
    found = Recurrence.parse("\n".join(lines), created_at=CREATED)
    assert found.after(datetime(2027, 1, 1, tzinfo=UTC)) == datetime(2027, 3, 28, 1, 0, tzinfo=UTC)


def test_positions_of_the_last_year_beside_skipped_gaps_end() -> None:
    text = "DTSTART;TZID=Europe/Zurich:99980101T023000\nRRULE:FREQ=YEARLY;BYMONTH=12;BYDAY=FR;BYSETPOS=-1"
    found = Recurrence.parse(text, created_at=CREATED, gap="skip")
    assert found.after(datetime(9999, 1, 1, tzinfo=UTC)) == datetime(9999, 12, 31, 1, 30, tzinfo=UTC)
    assert found.after(datetime(9999, 12, 31, 2, tzinfo=UTC)) is None


def test_a_count_asked_for_at_the_end_of_time_costs_steps_and_not_the_length_of_numbers() -> None:
    zurich = "DTSTART;TZID=Europe/Zurich:20260329T023000\nRRULE:FREQ="
    for rule in ("YEARLY", "MONTHLY;BYDAY=MO,TU;BYSETPOS=-1", "DAILY;BYHOUR=1,2;BYSETPOS=-1"):
        found = Recurrence.parse(f"{zurich}{rule};COUNT=100000", created_at=CREATED)
        steps = StepBudget()
        next(found._set.instants(9998 * 146_097 // 400 * 86_400, steps), None)
        assert steps.limit - steps.steps_left < 20_000
