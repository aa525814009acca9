"""Skipped and rolled occurrences against a counter that walks day by day."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler_app.domain.calendars import Calendar, NamedDate, days_of
from scheduler_app.domain.recurrence import InvalidRecurrence, Observance, OnHoliday, Recurrence, recurrence
from scheduler_app.domain.recurrence.timeline import OutOfSteps, StepBudget
from tests.unit.calendars.day_counter import Clock, Occurrence, by_the_clock, elapsed, rolled

#: Zones, each with a day near a change of its clocks: by an hour, by half an hour, over midnight, at 00:01,
#: and by a whole day that Apia never had.
CHANGES = [
    ("Europe/Zurich", date(2026, 3, 29)),
    ("Europe/Zurich", date(2026, 10, 25)),
    ("Australia/Lord_Howe", date(2026, 10, 4)),
    ("America/Nuuk", date(2026, 3, 28)),
    ("America/St_Johns", date(2007, 11, 4)),
    ("America/St_Johns", date(2007, 3, 11)),
    ("Pacific/Apia", date(2011, 12, 30)),
    ("UTC", date(2028, 2, 29)),
]
TIMES = [
    time(0, 0),
    time(0, 0, 30),
    time(0, 30),
    time(2, 0),
    time(2, 30),
    time(9, 0),
    time(23, 1),
    time(23, 30),
]
BEFORE = 60
YEAR = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
NAMES = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]


class Case(NamedTuple):
    """A rule, and the same as the counter takes it."""

    text: str
    clock: Clock
    occurrences: list[Occurrence]
    calendar: Calendar
    change: date


def closed_by(calendar: Calendar) -> Callable[[date], bool]:
    dates = {each.date for each in calendar.dates}
    return lambda day: day in dates or day.weekday() in calendar.weekend


def observing(case: Case, on_holiday: OnHoliday) -> Recurrence:
    gap, overlap = "skip" if case.clock.skip_gap else "shift", "last" if case.clock.last else "first"
    start = datetime(2000, 1, 1, tzinfo=UTC)
    parsed = Recurrence.parse(
        case.text, created_at=start, timezone=case.clock.zone.key, gap=gap, overlap=overlap
    )
    return parsed.observing(Observance("test", days_of(case.calendar), on_holiday))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    zone, change = draw(st.sampled_from(CHANGES))
    clock = Clock(ZoneInfo(zone), draw(st.booleans()), draw(st.booleans()))
    first, last = change - timedelta(days=BEFORE), change + timedelta(days=BEFORE)
    near = st.integers(-8, 8).map(lambda days: change + timedelta(days=days))
    anywhere = st.integers(-BEFORE, BEFORE).map(lambda days: change + timedelta(days=days))
    dates = draw(st.lists(st.one_of(near, anywhere), max_size=25))
    weekend = draw(st.sampled_from([(5, 6), (4, 5), (6,), (), (0, 1, 2, 3, 4, 6)]))
    if not weekend and not dates:
        dates = [change]
    calendar = Calendar.of(dates=tuple(map(NamedDate, dates)), weekend=weekend)
    kind = draw(st.sampled_from(["DAILY", "WEEKLY", "MONTHLY", "HOURLY", "MINUTELY"]))
    if kind in ("HOURLY", "MINUTELY"):
        unit = timedelta(hours=1) if kind == "HOURLY" else timedelta(minutes=1)
        interval = draw(st.sampled_from([1, 5, 7, 24, 31] if kind == "HOURLY" else [30, 45, 1440, 997]))
        start = clock.read(first, time(0, 0)) or datetime.combine(first, time(1), UTC)
        text = f"DTSTART:{start:%Y%m%dT%H%M%SZ}\nRRULE:FREQ={kind};INTERVAL={interval}"
        # In UTC the days of a calendar would be UTC's: the zone is said by DTSTART.
        local = start.astimezone(clock.zone)
        text = f"DTSTART;TZID={zone}:{local:%Y%m%dT%H%M%S}\nRRULE:FREQ={kind};INTERVAL={interval}"
        found = elapsed(clock, start, interval * unit, datetime.combine(last, time(0), UTC))
    else:
        times = sorted(draw(st.sets(st.sampled_from(TIMES), min_size=1, max_size=4)))
        # BYSECOND and BYMINUTE are lists of their own: one time of day, or whole hours.
        if len(times) > 1:
            times = [time(hour) for hour in sorted({each.hour for each in times})]
        by = (
            f"BYHOUR={','.join(str(each.hour) for each in times)};"
            f"BYMINUTE={times[0].minute};BYSECOND={times[0].second}"
        )
        takes, part = draw(
            {
                "DAILY": st.integers(1, 3).map(
                    lambda step: (lambda day: (day - first).days % step == 0, f"INTERVAL={step};")
                ),
                "WEEKLY": st.sets(st.integers(0, 6), min_size=1).map(
                    lambda days: (
                        lambda day: day.weekday() in days,
                        f"BYDAY={','.join(NAMES[each] for each in sorted(days))};",
                    )
                ),
                "MONTHLY": st.sets(st.integers(1, 31), min_size=1, max_size=6).map(
                    lambda days: (
                        lambda day: day.day in days,
                        f"BYMONTHDAY={','.join(map(str, sorted(days)))};",
                    )
                ),
            }[kind]
        )
        text = f"DTSTART;TZID={zone}:{first:%Y%m%d}T000000\nRRULE:FREQ={kind};{part}{by}"
        found = by_the_clock(clock, first, last, takes, times)
    count = draw(st.one_of(st.none(), st.integers(1, 40)))
    if count is not None:
        text, found = f"{text};COUNT={count}", found[:count]
    elif draw(st.booleans()) and found:
        until = draw(st.sampled_from(found)).instant
        text, found = (
            f"{text};UNTIL={until:%Y%m%dT%H%M%SZ}",
            [each for each in found if each.instant <= until],
        )
    removed = draw(st.booleans()) and kind not in ("HOURLY", "MINUTELY") and found
    if removed:
        day = draw(st.sampled_from(found)).instant.astimezone(clock.zone).date()
        text += f"\nEXDATE;VALUE=DATE:{day:%Y%m%d}"
        found = [each for each in found if each.instant.astimezone(clock.zone).date() != day]
    return Case(text, clock, found, calendar, change)


@pytest.mark.parametrize("on_holiday", ["skip", "next", "previous"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases(), offsets=st.lists(st.integers(0, 20 * 86_400), min_size=2, max_size=2))
def test_rolled_occurrences_are_those_of_a_day_by_day_count(
    on_holiday: OnHoliday, case: Case, offsets: list[int]
) -> None:
    expected = rolled(case.clock, case.occurrences, closed_by(case.calendar), on_holiday)
    begin = datetime.combine(case.change, time(0), UTC) - timedelta(days=10)
    end = begin + timedelta(days=20)
    middle, other = (begin + timedelta(seconds=offset) for offset in offsets)
    try:
        observed = observing(case, on_holiday)
        found = observed.between(begin, end)
    except InvalidRecurrence:
        # An EXDATE of all that there is, or a start that does not exist: nothing to compare.
        assert not expected
        return
    assert found == [each for each in expected if begin <= each < end]
    assert found == observed.between(begin, middle) + observed.between(middle, end)
    following = observed.after(other)
    soon = begin + timedelta(days=40)
    nearest = next((each for each in expected if each > other), None)
    if nearest is not None and nearest < soon:
        assert following == nearest
    seen = observed.occurrences(begin, end)
    own = {each.instant for each in case.occurrences}
    assert [each.rolled_from is None for each in seen] == [each.instant in own for each in seen]


WEEKENDS = Calendar.of()


def fires(
    text: str, zone: str, on_holiday: OnHoliday, *, calendar: Calendar = WEEKENDS, gap: str = "shift"
) -> Recurrence:
    parsed = Recurrence.parse(text, created_at=datetime(2026, 1, 1, tzinfo=UTC), timezone=zone, gap=gap)
    return parsed.observing(Observance("test", days_of(calendar), on_holiday))


def test_a_time_that_a_gap_would_have_moved_is_kept_as_it_was_written() -> None:
    # On Sunday, 29 March 2026 there is no 02:30 in Zurich.
    sunday = fires("DTSTART:20260329T023000\nRRULE:FREQ=DAILY;COUNT=1", "Europe/Zurich", "next")
    assert [each.local.isoformat() for each in sunday.occurrences(*YEAR)] == ["2026-03-30T02:30:00+02:00"]
    friday = fires("DTSTART:20260328T233000\nRRULE:FREQ=DAILY;COUNT=1", "America/Nuuk", "previous")
    assert [each.local.isoformat() for each in friday.occurrences(*YEAR)] == ["2026-03-27T23:30:00-02:00"]


def test_the_gap_of_the_new_day_applies() -> None:
    holiday = Calendar.of(dates=(NamedDate(date(2026, 3, 28)),), weekend=())
    rule = "DTSTART:20260328T023000\nRRULE:FREQ=DAILY;COUNT=1"
    moved = fires(rule, "Europe/Zurich", "next", calendar=holiday).occurrences(*YEAR)
    assert [(each.local.isoformat(), each.dst) for each in moved] == [
        ("2026-03-29T03:30:00+02:00", "gap_shifted")
    ]
    assert moved[0].rolled_from == datetime(2026, 3, 28, 2, 30, tzinfo=ZoneInfo("Europe/Zurich"))
    assert fires(rule, "Europe/Zurich", "next", calendar=holiday, gap="skip").between(*YEAR) == []


def test_a_day_that_a_zone_never_had_is_no_business_day() -> None:
    holiday = Calendar.of(dates=(NamedDate(date(2011, 12, 29)),), weekend=(5, 6))
    rule = "DTSTART:20111229T090000\nRRULE:FREQ=DAILY;COUNT=1"
    found = fires(rule, "Pacific/Apia", "next", calendar=holiday)
    first = found.after(datetime(2011, 12, 1, tzinfo=UTC))
    # Friday, 30 December 2011 was left out, and the next days were a weekend.
    assert first is not None
    assert first.astimezone(ZoneInfo("Pacific/Apia")).isoformat() == "2012-01-02T09:00:00+14:00"


class Spent(StepBudget):
    """Counts the steps of all look-ups."""

    total = 0

    def spend(self, count: int = 1) -> None:
        super().spend(count)
        Spent.total += count


@pytest.mark.parametrize("on_holiday", ["skip", "next", "previous"])
@pytest.mark.parametrize("freq", ["SECONDLY", "MINUTELY;INTERVAL=7", "HOURLY", "DAILY", "WEEKLY", "MONTHLY"])
def test_a_year_of_holidays_costs_no_more_steps_than_a_month(
    freq: str, on_holiday: OnHoliday, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recurrence, "StepBudget", Spent)
    # From 15 January on, so that some day of the year stays open.
    first = date(2027, 1, 15)
    spent = []
    for length in (31, 350):
        dates = tuple(NamedDate(first + timedelta(days=day)) for day in range(length))
        observed = fires(
            f"DTSTART:20260101T090000\nRRULE:FREQ={freq}",
            "Europe/Zurich",
            on_holiday,
            calendar=Calendar.of(dates=dates, weekend=()),
        )
        Spent.total = 0
        observed.after(datetime(2027, 1, 14, 12, tzinfo=UTC))
        observed.after(datetime(2027, 1, 20, tzinfo=UTC))
        observed.after(datetime(2027, 1, 15, tzinfo=UTC) + timedelta(days=length))
        spent.append(Spent.total)
    # A year more is a step more here and there; candidates would be hundreds or millions.
    assert spent[1] <= spent[0] + 8


def test_a_rule_whose_days_are_all_closed_ends_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrence, "StepBudget", Spent)
    christmas = Calendar.of(country="CH")
    observed = fires(
        "DTSTART:20260101T090000\nRRULE:FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=25",
        "Europe/Zurich",
        "skip",
        calendar=christmas,
    )
    Spent.total = 0
    # Holidays are known until 2100.
    assert observed.after(datetime(2026, 1, 1, tzinfo=UTC)) == datetime(2102, 12, 25, 8, tzinfo=UTC)
    assert Spent.total < 1_000
    saturdays = fires("DTSTART:20260101T090000\nRRULE:FREQ=WEEKLY;BYDAY=SA", "Europe/Zurich", "skip")
    assert saturdays.after(datetime(2026, 1, 1, tzinfo=UTC)) is None
    assert saturdays.warnings[-1].startswith("Every occurrence falls on a closed day")


ALL_CLOSED = (
    "Every occurrence falls on a closed day of the calendar bank, so none will fire; take other days, or let"
    " on_holiday be next or previous."
)
NO_DAYS = (
    "The calendar bank leaves this rule no days, or fewer than it counts, so none will fire; take other days."
)
PAST = "All occurrences lie in the past, so none will fire; give a later start or end."
FRIDAY, SATURDAY = "2026-01-02T08:30:30", "2026-01-03T08:30:30"


@pytest.mark.parametrize(
    ("created_at", "start", "rule", "on_holiday", "told"),
    [
        (FRIDAY, "20260103T090000", "WEEKLY;BYDAY=SA", "skip", [ALL_CLOSED]),
        (FRIDAY, "20260103T090000", "WEEKLY;BYDAY=SA", "uncounted", [NO_DAYS]),
        (FRIDAY, "20260103T090000", "WEEKLY;BYDAY=SA", "next", []),
        (FRIDAY, "20260103T090000", "DAILY", "skip", []),
        # What fires at the moment of the creation is past, and what follows it is not.
        (SATURDAY, "20260103T083030", "DAILY;COUNT=1", "skip", [PAST]),
        (SATURDAY, "20260103T083031", "DAILY;COUNT=1", "skip", [ALL_CLOSED]),
        (FRIDAY, "20260102T083030", "DAILY;COUNT=2", "skip", [ALL_CLOSED]),
        (FRIDAY, "20260102T083031", "DAILY;COUNT=1", "skip", []),
    ],
)
def test_a_calendar_that_closes_all_days_of_a_rule_is_warned_of(
    created_at: str, start: str, rule: str, on_holiday: OnHoliday, told: list[str]
) -> None:
    parsed = Recurrence.parse(
        f"DTSTART:{start}Z\nRRULE:FREQ={rule}",
        created_at=datetime.fromisoformat(created_at).replace(tzinfo=UTC),
    )
    assert list(parsed.observing(Observance("bank", days_of(WEEKENDS), on_holiday)).warnings) == told


@pytest.mark.parametrize(("days", "warned"), [(400, False), (401, True)])
def test_a_calendar_that_closes_a_rule_for_long_is_warned_of(days: int, *, warned: bool) -> None:
    first = date(2026, 3, 1)
    closed = Calendar.of(
        dates=tuple(NamedDate(first + timedelta(days=ahead)) for ahead in range(days)), weekend=()
    )
    parsed = Recurrence.parse(
        "DTSTART;TZID=Asia/Tokyo:20260301T090000\nRRULE:FREQ=DAILY",
        created_at=datetime(2026, 2, 1, tzinfo=UTC),
    )
    found = parsed.observing(Observance("bank", days_of(closed), "skip")).warnings
    told = "The calendar bank closes the days of this rule: the first occurrence is on 6 April 2027 at 09:00."
    assert list(found) == [told] * warned


def test_where_it_takes_too_long_to_tell_that_a_calendar_closes_all_days_nothing_is_said() -> None:
    saturdays = fires("DTSTART:20260207T090000Z\nRRULE:FREQ=HOURLY;INTERVAL=168;BYMONTH=2", "UTC", "skip")
    assert saturdays.warnings == ()
    with pytest.raises(OutOfSteps):
        saturdays.after(YEAR[0])


def test_a_count_is_the_same_with_its_checkpoint() -> None:
    text = "DTSTART:20260102T090000\nRRULE:FREQ=HOURLY;COUNT=500"
    on_holiday: OnHoliday
    for on_holiday in ("skip", "next", "previous"):
        observed = fires(text, "Europe/Zurich", on_holiday)
        for day in range(1, 28):
            moment = datetime(2026, 1, day, 7, tzinfo=UTC)
            kept = observed.checkpoint(moment)
            again = Recurrence.parse(
                text, created_at=datetime(2026, 1, 1, tzinfo=UTC), timezone="Europe/Zurich", checkpoint=kept
            ).observing(Observance("test", days_of(WEEKENDS), on_holiday))
            assert again.between(moment, YEAR[1]) == observed.between(moment, YEAR[1])


def test_where_clocks_go_back_over_midnight_the_end_of_an_open_day_comes_once_more() -> None:
    """St John's put clocks back at 00:01: a minute of a closed Sunday lies between two ends of Saturday."""
    rule = Recurrence.parse(
        "DTSTART;TZID=America/St_Johns:20071103T233000\nRRULE:FREQ=MINUTELY;INTERVAL=30",
        created_at=datetime(2007, 11, 1, tzinfo=UTC),
    )
    sunday = days_of(Calendar.of(dates=(NamedDate(date(2007, 11, 4)),), weekend=()))
    skipping = rule.observing(Observance("test", sunday, "skip"))
    found = skipping.between(datetime(2007, 11, 4, 2, tzinfo=UTC), datetime(2007, 11, 4, 4, tzinfo=UTC))
    assert [f"{each:%H:%M}" for each in found] == ["02:00", "03:00"]


def test_what_a_gap_over_midnight_moves_to_the_day_behind_names_its_own_day() -> None:
    # In Nuuk, 2026-03-28 ends with its 23rd hour: what is rolled to 23:00 of that day fires at midnight.
    parsed = Recurrence.parse(
        "DTSTART;TZID=America/Nuuk:20260127T000000\nRRULE:FREQ=WEEKLY;BYDAY=MO;BYHOUR=23;BYMINUTE=0;BYSECOND=0",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    calendar = Calendar.of(weekend=(0, 1, 2, 3, 4, 6))
    observed = parsed.observing(Observance("test", days_of(calendar), "next"))
    begin = datetime(2026, 3, 28, tzinfo=UTC)
    (moved,) = observed.occurrences(begin, begin + timedelta(days=2))
    assert moved.instant == datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert moved.rolled_from == datetime(2026, 3, 23, 23, tzinfo=ZoneInfo("America/Nuuk"))


def test_what_a_gap_moves_into_a_closed_day_is_found_from_within_that_day() -> None:
    # Nuuk: what is rolled to 23:30 of the 28th fires at 00:30 of the 29th, a closed Sunday.
    parsed = Recurrence.parse(
        "DTSTART;TZID=America/Nuuk:20260127T000000\nRRULE:FREQ=WEEKLY;BYDAY=MO;BYHOUR=23;BYMINUTE=30;BYSECOND=0",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    observed = parsed.observing(Observance("test", days_of(Calendar.of(weekend=(0, 1, 2, 3, 4, 6))), "next"))
    assert observed.after(datetime(2026, 3, 29, 1, 10, tzinfo=UTC)) == datetime(
        2026, 3, 29, 1, 30, tzinfo=UTC
    )


@pytest.mark.parametrize(
    ("start", "weekend", "on_holiday", "moved"),
    [
        # 31 December 9999 is a Friday, 1 January 1 a Monday.
        ("99991230", (3,), "next", datetime(9999, 12, 31, 9, tzinfo=UTC)),
        ("99991230", (3, 4), "next", None),
        ("99991231", (4,), "previous", datetime(9999, 12, 30, 9, tzinfo=UTC)),
        ("00010102", (1,), "previous", datetime(1, 1, 1, 9, tzinfo=UTC)),
        ("00010102", (0, 1), "previous", None),
    ],
)
def test_the_first_and_the_last_day_of_all_are_days_like_others(
    start: str, weekend: tuple[int, ...], on_holiday: OnHoliday, moved: datetime | None
) -> None:
    text = f"DTSTART:{start}T090000Z\nRRULE:FREQ=DAILY;COUNT=1"
    closed = Observance("test", days_of(Calendar.of(weekend=weekend)), on_holiday)
    rule = Recurrence.parse(text, created_at=YEAR[0]).observing(closed)
    assert rule.after(datetime(1, 1, 1, tzinfo=UTC)) == moved


def test_a_date_among_closed_days_moves_beside_what_the_rule_moves() -> None:
    text = "DTSTART:20261204T090000Z\nRRULE:FREQ=DAILY\nRDATE:20261206T100000Z"
    closed = Observance("test", days_of(Calendar.of(weekend=(5, 6))), "next")
    rule = Recurrence.parse(text, created_at=YEAR[0]).observing(closed)
    monday = datetime(2026, 12, 7, tzinfo=UTC)
    found = rule.between(monday, monday + timedelta(days=1))
    assert found == [monday + timedelta(hours=hour) for hour in (9, 10)]
