"""Rolled occurrences around each kind of clock change: all cases of a small world against the day counter."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from scheduler_app.domain.calendars import Calendar, NamedDate, days_of
from scheduler_app.domain.recurrence import Observance, OnHoliday, Recurrence
from tests.drawn import SEED, drawn
from tests.unit.calendars.day_counter import Clock, Occurrence, by_the_clock, elapsed, rolled

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
#: Each with the day around which its clocks change: back from midnight to 23:00, back at 1:00 and at 2:00 or
#: 3:00, forward from midnight, forward at 2:00, by half an hour, and over a whole day.
CHANGES = [
    ("America/Sao_Paulo", date(2018, 2, 17)),
    ("America/Havana", date(2020, 11, 1)),
    ("Europe/Zurich", date(2026, 10, 25)),
    ("America/Sao_Paulo", date(2017, 10, 15)),
    ("Europe/Zurich", date(2026, 3, 29)),
    ("Australia/Lord_Howe", date(2026, 10, 4)),
    ("Pacific/Apia", date(2011, 12, 30)),
]
TIMES = [time(hour, minute) for hour in (0, 2, 23) for minute in (0, 30)]
#: The days that are closed, counted from that of the change.
CLOSED = [(0,), (-1,), (1,), (-1, 0)]


def recurrence(text: str, clock: Clock, closed: list[date], on_holiday: OnHoliday) -> Recurrence:
    parsed = Recurrence.parse(
        text,
        created_at=datetime(1990, 1, 1, tzinfo=UTC),
        timezone=clock.zone.key,
        gap="skip" if clock.skip_gap else "shift",
        overlap="last" if clock.last else "first",
    )
    calendar = Calendar.of(dates=tuple(map(NamedDate, closed)), weekend=())
    return parsed.observing(Observance("test", days_of(calendar), on_holiday))


def merged(*lists: list[Occurrence]) -> list[Occurrence]:
    """In order; of those of one instant, the one of the last list."""
    found = {each.instant: each for of in lists for each in of}
    return [found[instant] for instant in sorted(found)]


def own_occurrences(kind: str, clock: Clock, first: date, last: date) -> tuple[str, list[Occurrence]]:
    """The rule's text, and its occurrences before any is rolled."""
    if kind == "hourly":
        start = datetime.combine(first, time(), clock.zone).astimezone(UTC)
        text = f"DTSTART;TZID={clock.zone.key}:{first:%Y%m%d}T000000\nRRULE:FREQ=HOURLY"
        return text, elapsed(clock, start, HOUR, datetime.combine(last, time(), UTC))
    rule = "FREQ=DAILY;BYHOUR=0,2,23;BYMINUTE=0,30;BYSECOND=0"
    text = f"DTSTART;TZID={clock.zone.key}:{first:%Y%m%d}T000000\nRRULE:{rule}"
    daily = by_the_clock(clock, first, last, lambda day: True, TIMES)
    if kind == "daily":
        return text, daily
    start = datetime.combine(first, time(), clock.zone).astimezone(UTC)
    hourly = elapsed(clock, start, 7 * HOUR, datetime.combine(last, time(), UTC))
    return f"{text}\nRRULE:FREQ=HOURLY;INTERVAL=7", merged(hourly, daily)


@pytest.mark.parametrize(
    "share",
    [
        pytest.param(4, id=f"why for a part, drawn by {SEED}"),
        pytest.param(1, id="why for all", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("kind", ["hourly", "daily", "both"])
@pytest.mark.parametrize(("zone", "change"), CHANGES, ids=[f"{zone} {day}" for zone, day in CHANGES])
@pytest.mark.parametrize("on_holiday", ["next", "previous"])
def test_all_small_cases_are_as_counted(
    kind: str, zone: str, change: date, on_holiday: OnHoliday, share: int
) -> None:
    """`why` is asked for one in `share` of the occurrences on closed days."""
    begin, end = (datetime.combine(change + days * DAY, time(), UTC) for days in (-3, 4))
    for skip_gap, last in ((False, False), (True, True)):
        clock = Clock(ZoneInfo(zone), skip_gap, last)
        text, own = own_occurrences(kind, clock, change - 4 * DAY, change + 5 * DAY)
        instants = {each.instant for each in own}
        for days in CLOSED:
            closed = [change + each * DAY for each in days]
            found = recurrence(text, clock, closed, on_holiday)
            case = f"{kind} {clock} {closed}, with FAULTS_SEED={SEED}"
            expected = [
                each for each in rolled(clock, own, closed.__contains__, on_holiday) if begin <= each < end
            ]
            assert found.between(begin, end) == expected, case
            for begun in (change, change + DAY):
                middle = datetime.combine(begun, time(3, 30), UTC)
                assert found.between(middle, end) == [each for each in expected if each >= middle], case
            sources: dict[datetime, list[datetime]] = {}
            rolling = []
            for each in own:
                day = each.instant.astimezone(clock.zone).date()
                if day in closed:
                    rolling.append(each.instant)
                    for instant in rolled(clock, [each], closed.__contains__, on_holiday):
                        sources.setdefault(instant, []).append(datetime.combine(day, each.written))
            # This takes longer than all the rest.
            for asked in drawn(rolling, case, share) if rolling else ():
                fires = found.why(asked).fires
                assert fires == (asked in expected) or not begin <= asked < end, case
            for seen in found.occurrences(begin, end):
                if seen.instant in instants:
                    assert seen.rolled_from is None, case
                    continue
                assert seen.rolled_from is not None, case
                written = seen.rolled_from.replace(tzinfo=None)
                moved = sources[seen.instant]
                assert written in moved, f"{case}: {seen}"
                assert written == min(each for each in moved if each.time() == written.time()), case
