"""Three phrases of business days in three places over five years, counted by hand on printed calendars.

Each line is a year: the day of the month on which each occurrence falls.
"""

from datetime import UTC, date, datetime

import pytest

from scheduler_app.domain.calendars import Calendar, days_of
from scheduler_app.domain.recurrence import Observance, OnHoliday, Recurrence

PLACES = {
    "Zurich": (Calendar.of(country="CH", subdivision="ZH"), "Europe/Zurich"),
    "New York": (Calendar.of(exchange="NYSE"), "America/New_York"),
    "Tokyo": (Calendar.of(country="JP"), "Asia/Tokyo"),
}
QUARTER = ("FREQ=MONTHLY;INTERVAL=3;BYMONTHDAY=1", "next", (1, 4, 7, 10))
LAST_DAY = ("FREQ=MONTHLY;BYMONTHDAY=-1", "previous", range(1, 13))
FIFTEENTH = ("FREQ=MONTHLY;BYMONTHDAY=15", "previous", range(1, 13))

# In Zurich, Easter Monday of 2029 is 2 April. 1 January 2028 is a Saturday, which nobody observes later.
FIRST_OF_QUARTER = {
    "Zurich": ["2 1 1 1", "2 1 1 1", "4 1 1 1", "3 3 3 2", "2 3 2 1"],
    "New York": ["2 1 1 1", "2 1 1 1", "4 1 1 1", "3 3 3 2", "2 2 2 1"],
    "Tokyo": ["2 1 1 1", "2 1 1 1", "4 1 1 1", "3 3 3 2", "2 2 2 1"],
}
# Memorial Day of 2027 is 31 May; Good Friday of 2029 is 30 March; Showa Day of 2029 is a Sunday, and Monday,
# 30 April, takes its place.
LAST_OF_MONTH = {
    "Zurich": [
        "31 28 31 30 30 30 31 29 30 31 28 31",
        "30 27 31 30 29 30 31 31 30 30 30 31",
        "29 26 31 30 31 30 30 31 30 29 30 31",
        "31 29 31 28 31 30 31 31 29 31 30 29",
        "31 28 29 30 31 29 31 31 28 31 30 31",
    ],
    "New York": [
        "31 28 31 30 30 30 31 29 30 31 28 31",
        "30 27 31 30 29 30 31 31 30 30 30 31",
        "29 26 31 30 28 30 30 31 30 29 30 31",
        "31 29 31 28 31 30 31 31 29 31 30 29",
        "31 28 29 30 31 29 31 31 28 31 30 31",
    ],
    "Tokyo": [
        "31 28 31 30 30 30 31 29 30 31 28 31",
        "30 27 31 30 29 30 31 31 30 30 30 31",
        "29 26 31 30 31 30 30 31 30 29 30 31",
        "31 29 31 28 31 30 31 31 29 31 30 29",
        "31 28 30 27 31 29 31 31 28 31 30 31",
    ],
}
# Respect for the Aged Day of 2025 is 15 September; Washington's Birthday of 2027 is 15 February; Good Friday
# of 2028 is 14 April, a day before the 15th; Martin Luther King's Day of 2029 is 15 January.
FIFTEENTH_OR_BEFORE = {
    "Zurich": [
        "15 14 14 15 15 13 15 15 15 15 14 15",
        "15 13 13 15 15 15 15 14 15 15 13 15",
        "15 15 15 15 14 15 15 13 15 15 15 15",
        "14 15 15 13 15 15 14 15 15 13 15 15",
        "15 15 15 13 15 15 13 15 14 15 15 14",
    ],
    "New York": [
        "15 14 14 15 15 13 15 15 15 15 14 15",
        "15 13 13 15 15 15 15 14 15 15 13 15",
        "15 12 15 15 14 15 15 13 15 15 15 15",
        "14 15 15 13 15 15 14 15 15 13 15 15",
        "12 15 15 13 15 15 13 15 14 15 15 14",
    ],
    "Tokyo": [
        "15 14 14 15 15 13 15 15 12 15 14 15",
        "15 13 13 15 15 15 15 14 15 15 13 15",
        "15 15 15 15 14 15 15 13 15 15 15 15",
        "14 15 15 14 15 15 14 15 15 13 15 15",
        "15 15 15 13 15 15 13 15 14 15 15 14",
    ],
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("phrase", "counted"),
    [(QUARTER, FIRST_OF_QUARTER), (LAST_DAY, LAST_OF_MONTH), (FIFTEENTH, FIFTEENTH_OR_BEFORE)],
    ids=["first business day of each quarter", "last business day of the month", "15th or before"],
)
def test_business_days_fall_where_a_hand_counted_them(
    place: str, phrase: tuple[str, OnHoliday, tuple[int, ...]], counted: dict[str, list[str]]
) -> None:
    rule, on_holiday, months = phrase
    calendar, zone = PLACES[place]
    parsed = Recurrence.parse(
        f"DTSTART:20250101T093000\nRRULE:{rule}",
        created_at=datetime(2024, 12, 1, tzinfo=UTC),
        timezone=zone,
    )
    observed = parsed.observing(Observance(place, days_of(calendar), on_holiday))
    expected = [
        date(year, month, int(day))
        for year, line in zip(range(2025, 2030), counted[place], strict=True)
        for month, day in zip(months, line.split(), strict=True)
    ]
    found = observed.occurrences(datetime(2025, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC))
    assert [each.local.date() for each in found] == expected
    assert {f"{each.local:%H:%M}" for each in found} == {"09:30"}
