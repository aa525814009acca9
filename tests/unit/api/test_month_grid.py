"""The days on which something runs, in small months."""

from datetime import UTC, date, datetime, timedelta

from scheduler_app.api.pages.month_grid import MarkedDay, end_of_months, firing_days, months
from scheduler_app.domain.recurrence import Recurrence

SAID = datetime(2026, 11, 20, 12, tzinfo=UTC)


def fires(rule: str, zone: str = "UTC") -> dict[date, datetime]:
    recurrence = Recurrence.parse(f"RRULE:{rule}", created_at=SAID, timezone=zone)
    return firing_days(recurrence, SAID, datetime(2027, 1, 1, tzinfo=UTC), zone)


def test_a_day_is_marked_once_however_often_it_fires_within_it() -> None:
    found = fires("FREQ=SECONDLY")
    assert list(found) == [date(2026, 11, 20) + timedelta(days=number) for number in range(42)]
    assert found[date(2026, 11, 21)].time().isoformat() == "00:00:00"


def test_days_are_those_of_the_zone() -> None:
    # 23:30 in New York is the next day in UTC.
    found = fires("FREQ=DAILY;BYHOUR=23;BYMINUTE=30;BYSECOND=0", "America/New_York")
    assert min(found) == date(2026, 11, 20)
    assert found[min(found)].hour == 23


def marked(number: int) -> MarkedDay:
    shown = months(
        date(2026, 11, 20),
        fires("FREQ=MONTHLY;BYMONTHDAY=30;BYHOUR=9;BYMINUTE=0;BYSECOND=0"),
        gone={date(2026, 11, 27)},
        closed=lambda day: "Thanksgiving" if day == date(2026, 11, 26) else "",
    )
    assert [each.title for each in shown] == ["November 2026", "December 2026"]
    (found,) = (day for week in shown[0].weeks for day in week if day and day.number == number)
    return found


def test_each_day_says_what_marks_it() -> None:
    assert marked(30) == MarkedDay(30, "hit2", "Runs 30 November at 09:00")
    assert marked(27) == MarkedDay(27, "gone", "No longer")
    assert marked(26) == MarkedDay(26, "cl", "Closed: Thanksgiving")
    assert marked(28) == MarkedDay(28, "wk", "")
    assert marked(25) == MarkedDay(25, "", "")


def test_the_months_of_a_year_s_end_go_on_in_the_next_one() -> None:
    assert end_of_months(date(2026, 12, 5)) == date(2027, 2, 1)
    assert end_of_months(date(2026, 10, 31)) == date(2026, 12, 1)
