"""The eight examples that the product's first description lists, with exactly the dates listed there."""

from datetime import UTC, datetime

import pytest

from scheduler_app.domain.recurrence import Recurrence

EXAMPLES = [
    (
        "daily-at-half-past-eight",
        "DTSTART:20250101T083000Z\nRRULE:FREQ=DAILY;INTERVAL=1",
        ["2025-01-01 08:30", "2025-01-02 08:30", "2025-01-03 08:30"],
        False,
    ),
    (
        "weekly-on-three-days",
        "DTSTART:20250101T151500Z\nRRULE:FREQ=WEEKLY;INTERVAL=1;BYDAY=MO,WE,FR",
        ["2025-01-01 15:15", "2025-01-03 15:15", "2025-01-06 15:15"],
        False,
    ),
    (
        "monthly-on-the-1st-and-15th",
        "DTSTART:20250101T100000Z\nRRULE:FREQ=MONTHLY;INTERVAL=1;BYMONTHDAY=1,15",
        ["2025-01-01 10:00", "2025-01-15 10:00", "2025-02-01 10:00", "2025-02-15 10:00"],
        False,
    ),
    (
        "yearly-at-christmas",
        "DTSTART:20250101T070000Z\nRRULE:FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=25",
        ["2025-12-25 07:00", "2026-12-25 07:00"],
        False,
    ),
    (
        "five-times",
        "DTSTART:20250101T184500Z\nRRULE:FREQ=DAILY;INTERVAL=1;COUNT=5",
        [f"2025-01-0{day} 18:45" for day in range(1, 6)],
        True,
    ),
    (
        "until-the-tenth",
        "DTSTART:20250101T170000Z\nRRULE:FREQ=DAILY;UNTIL=20250110T170000Z",
        [f"2025-01-{day:02d} 17:00" for day in range(1, 11)],
        True,
    ),
    (
        "every-three-hours",
        "DTSTART:20250101T020000Z\nRRULE:FREQ=HOURLY;INTERVAL=3",
        ["2025-01-01 02:00", "2025-01-01 05:00", "2025-01-01 08:00", "2025-01-01 11:00"],
        False,
    ),
    (
        "second-monday",
        "DTSTART:20250101T233000Z\nRRULE:FREQ=MONTHLY;BYDAY=MO;BYSETPOS=2",
        ["2025-01-13 23:30", "2025-02-10 23:30", "2025-03-10 23:30"],
        False,
    ),
]


@pytest.mark.parametrize(
    ("text", "expected", "ends"), [row[1:] for row in EXAMPLES], ids=[e[0] for e in EXAMPLES]
)
def test_a_listed_example_gives_the_listed_dates(text: str, expected: list[str], ends: bool) -> None:
    recurrence = Recurrence.parse(text, created_at=datetime(2025, 1, 1, tzinfo=UTC))
    found = recurrence.between(recurrence.dtstart, datetime(2030, 1, 1, tzinfo=UTC), len(expected) + 1)
    assert [instant.strftime("%Y-%m-%d %H:%M") for instant in found[: len(expected)]] == expected
    assert (len(found) == len(expected)) is ends
