"""What hours without am or pm can mean, alone and as the two ends of a window, and when a repetition begins
and ends: at each bound, and beside it.
"""

from datetime import UTC, date, datetime, timedelta

import pytest

from scheduler_app.domain.triggers import NotUnderstood, TriggerContext
from scheduler_app.domain.triggers.phrase.clause_bag import ClauseBag, PhraseContext, PhraseRefused
from scheduler_app.domain.triggers.phrase.clauses import (
    DaysAway,
    ForClause,
    StartClause,
    Time,
    UntilClause,
)
from scheduler_app.domain.triggers.phrase.dates import (
    _readings,
    _windows,
    end_after,
    next_time,
    start_instant,
    until_instant,
)
from scheduler_app.domain.triggers.phrase.translation import translate
from tests.unit.triggers.phrase.judged import SAID

MOMENT = PhraseContext(SAID)
SECOND = timedelta(seconds=1)


def time(text: str) -> Time:
    """5, 5am, 5pm, 5:00 or 5:00:01, as the grammar reads them."""
    number = text.removesuffix("am").removesuffix("pm")
    hour, minute, second = [*map(int, number.split(":")), 0, 0][:3]
    if number != text:
        return Time(hour % 12 + 12 * text.endswith("pm"), minute, second, sure=True)
    return Time(hour, minute, second, bare=":" not in text and 1 <= hour <= 12)


def shown(times: tuple[Time, ...]) -> str:
    return " ".join(f"{each.clock:%H:%M}" for each in times)


@pytest.mark.parametrize(
    ("times", "readings"),
    [
        ("9", ["09:00"]),
        ("7", ["07:00"]),
        ("6", ["06:00", "18:00"]),
        ("5 17:00", ["05:00 17:00"]),
        ("5 0:00", ["05:00 00:00"]),
        ("5 9:30", ["05:00 09:30", "17:00 09:30"]),
        ("5 12:00", ["05:00 12:00", "17:00 12:00"]),
        # Hours that rise are of one half of the day; of others the small ones may be of the afternoon.
        ("5 9", ["05:00 09:00", "17:00 21:00"]),
        ("5 9 9", ["05:00 09:00 09:00", "17:00 09:00 09:00"]),
        ("5 9 8", ["05:00 09:00 08:00", "17:00 09:00 08:00"]),
        ("9 6", ["09:00 06:00", "09:00 18:00"]),
        ("9 7", ["09:00 07:00"]),
        # Beside am or pm, an hour may share it; the last one decides.
        ("9 5pm", ["09:00 17:00", "21:00 17:00"]),
        ("9 11am", ["09:00 11:00"]),
        ("9 12pm", ["09:00 12:00", "21:00 12:00"]),
        ("9 1pm 3am", ["09:00 13:00 03:00"]),
        ("12 5pm", ["12:00 17:00"]),
    ],
)
def test_times_of_day_can_be_read_in_these_ways(times: str, readings: list[str]) -> None:
    found = _readings(tuple(map(time, times.split())))
    assert [shown(each) for each in found] == readings
    assert not any(each.bare for way in found for each in way)


@pytest.mark.parametrize(
    ("first", "last", "windows"),
    [
        # am or pm at the end goes for the beginning, too, where that makes a window.
        ("2", "5pm", ["14:00 17:00"]),
        ("6", "11pm", ["18:00 23:00"]),
        ("7", "11pm", ["07:00 23:00", "19:00 23:00"]),
        ("9", "5pm", ["09:00 17:00"]),
        ("5", "5pm", ["05:00 17:00"]),
        ("9", "11am", ["09:00 11:00"]),
        ("9", "12pm", ["09:00 12:00"]),
        # After a beginning that is sure, the end is later on that day, if it can be.
        ("9am", "5", ["09:00 17:00"]),
        ("1am", "5", ["01:00 05:00", "01:00 17:00"]),
        ("5am", "5", ["05:00 17:00"]),
        ("9pm", "5", ["21:00 05:00"]),
        ("9", "5", ["09:00 17:00", "21:00 05:00"]),
        ("5", "5", ["05:00 17:00", "17:00 05:00"]),
        ("9", "11", ["09:00 11:00"]),
        ("7", "8", ["07:00 08:00"]),
        ("6", "7", ["06:00 07:00", "18:00 19:00"]),
        # 9:00 to 5:00 is that of an office, or a night.
        ("9:00", "5:00", ["09:00 17:00", "09:00 05:00"]),
        ("9", "5:00", ["09:00 17:00", "09:00 05:00"]),
        ("9:00", "5", ["09:00 17:00", "09:00 05:00"]),
        ("5", "9:00", ["05:00 09:00"]),
        ("9:00", "5am", ["09:00 05:00"]),
        ("5:00", "5:00", ["05:00 05:00"]),
        ("5:00", "9:00", ["05:00 09:00"]),
        ("11:59:59", "5:00", ["11:59 17:00", "11:59 05:00"]),
        ("12:00", "5:00", ["12:00 05:00"]),
        ("12:00:05", "5:00", ["12:00 05:00"]),
        ("22:00", "6:00", ["22:00 06:00"]),
    ],
)
def test_a_window_can_be_read_in_these_ways(first: str, last: str, windows: list[str]) -> None:
    assert [shown(each) for each in _windows(time(first), time(last))] == windows


def test_an_end_by_day_or_by_night_is_asked_about_with_both() -> None:
    with pytest.raises(NotUnderstood) as refused:
        translate("every hour from 9:00 to 5:00", TriggerContext(SAID))
    rules = [
        (each.recurrence or "").partition("BYHOUR=")[2].partition(";")[0] for each in refused.value.readings
    ]
    day, night = [{int(hour) for hour in rule.split(",")} for rule in rules]
    assert day == set(range(9, 18))
    assert night == set(range(24)) - set(range(6, 9))


def test_a_window_has_two_times() -> None:
    with pytest.raises(NotUnderstood, match="the two times of day are the same"):
        translate("every 10 minutes from 9am to 9am", TriggerContext(SAID))


@pytest.mark.parametrize("phrase", ["every day at 6 at night", "every day at 11 at night"])
def test_an_hour_of_the_night_from_six_on_is_before_midnight(phrase: str) -> None:
    hour = int(phrase.split()[3]) + 12
    assert f"BYHOUR={hour};" in (translate(phrase, TriggerContext(SAID)).recurrence or "")


def test_an_hour_of_a_part_of_the_day_may_begin_what_repeats() -> None:
    found = translate("every day at 5 in the morning starting tomorrow", TriggerContext(SAID))
    assert (found.recurrence or "").startswith("DTSTART:20261119T050000\n")


def test_a_part_of_the_day_is_no_time_of_day() -> None:
    with pytest.raises(NotUnderstood, match="“evening” is no time of day; say at what time"):
        translate("every day in the evening", TriggerContext(SAID))


def test_an_hour_that_can_be_read_in_two_ways_is_refused_with_both() -> None:
    with pytest.raises(NotUnderstood, match="an hour without am or pm can be read in two ways") as refused:
        translate("every day at 5", TriggerContext(SAID))
    told = [each.recurrence or "" for each in refused.value.readings]
    assert [each.partition("BYHOUR=")[2].partition(";")[0] for each in told] == ["5", "17"]


def test_an_hour_of_the_morning_is_not_in_the_evening() -> None:
    with pytest.raises(NotUnderstood, match="9:00 is not in the evening"):
        translate("every day at 9am in the evening", TriggerContext(SAID))


def test_twelve_at_night_is_midnight() -> None:
    assert "BYHOUR=0;" in (translate("every day at 12 at night", TriggerContext(SAID)).recurrence or "")


def test_an_hour_of_the_night_before_six_is_after_midnight() -> None:
    assert "BYHOUR=5;" in (translate("every day at 5 at night", TriggerContext(SAID)).recurrence or "")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (Time(10, 15, 31), SAID + SECOND),
        (Time(10, 15, 30), SAID + timedelta(days=1)),
        (Time(10, 15, 29), SAID + timedelta(days=1) - SECOND),
        (Time(7, bare=True), datetime(2026, 11, 19, 7, tzinfo=UTC)),
        (Time(6, sure=True), datetime(2026, 11, 19, 6, tzinfo=UTC)),
    ],
)
def test_the_next_time_of_day_lies_ahead(given: Time, expected: datetime) -> None:
    assert next_time(given, MOMENT) == expected


def test_an_hour_that_may_be_of_the_afternoon_begins_and_ends_nothing() -> None:
    with pytest.raises(PhraseRefused, match="say the time of the beginning or the end in full"):
        next_time(Time(6, bare=True), MOMENT)


@pytest.mark.parametrize(
    ("days", "given", "expected"),
    [
        # What began today goes on now; what began before today began then.
        (0, Time(9), SAID + SECOND),
        (0, None, SAID + SECOND),
        (0, Time(11), datetime(2026, 11, 18, 11, tzinfo=UTC)),
        (-1, Time(9), datetime(2026, 11, 17, 9, tzinfo=UTC)),
        (1, None, datetime(2026, 11, 19, tzinfo=UTC)),
    ],
)
def test_a_beginning_today_is_not_before_the_present(
    days: int, given: Time | None, expected: datetime
) -> None:
    assert start_instant(ClauseBag([]), StartClause(DaysAway(days), given), MOMENT, None) == expected


def test_a_beginning_may_be_a_time_alone_or_the_monday_of_a_week() -> None:
    alone, week = StartClause(None, Time(11)), StartClause(DaysAway(7), week=True)
    assert start_instant(ClauseBag([]), alone, MOMENT, None) == datetime(2026, 11, 18, 11, tzinfo=UTC)
    assert start_instant(ClauseBag([]), week, MOMENT, None) == datetime(2026, 11, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    ("phrase", "today", "last_days"),
    [
        ("until march", "2026-11-18", ["20270228", "20270331"]),
        ("until november", "2026-11-18", ["20271031", "20271130"]),
        ("until november", "2026-11-01", ["20271031", "20271130"]),
        ("until november", "2026-10-31", ["20261031", "20261130"]),
        ("until december 2026", "2026-11-18", ["20261130", "20261231"]),
        ("until november 2026", "2026-11-18", ["20261130"]),
    ],
)
def test_a_month_as_the_end_is_asked_about(phrase: str, today: str, last_days: list[str]) -> None:
    said = datetime.combine(date.fromisoformat(today), SAID.timetz())
    with pytest.raises(NotUnderstood, match="the month may be meant with its days or without") as refused:
        translate(f"every day at 11 {phrase}", TriggerContext(said))
    told = [each.recurrence or "" for each in refused.value.readings]
    assert all(f"UNTIL={day}" in each for day, each in zip(last_days, told, strict=True)), told


def test_a_day_is_the_end_as_a_whole() -> None:
    end = until_instant(ClauseBag([]), UntilClause(DaysAway(1)), MOMENT, None)
    assert end == datetime(2026, 11, 19, 23, 59, 59, tzinfo=UTC)
    assert until_instant(ClauseBag([]), UntilClause(DaysAway(1)), MOMENT, Time(9)).hour == 9
    assert until_instant(ClauseBag([]), UntilClause(None, Time(11)), MOMENT, None).hour == 11


@pytest.mark.parametrize(
    ("count", "unit", "expected"),
    [
        (90, "second", SAID + 90 * SECOND),
        (2, "minute", SAID + timedelta(minutes=2)),
        (3, "hour", SAID + timedelta(hours=3)),
        (3, "day", SAID + timedelta(days=3)),
        (2, "week", SAID + timedelta(days=14)),
        (1, "month", SAID.replace(month=12)),
        (1, "quarter", SAID.replace(year=2027, month=2)),
        (1, "year", SAID.replace(year=2027)),
        (10**10, "second", SAID + timedelta(seconds=10**10)),
        (100_000, "day", SAID + timedelta(days=100_000)),
        (3_000, "month", SAID.replace(year=2276)),
        (250, "year", SAID.replace(year=2276)),
    ],
)
def test_a_length_of_time_ends_so_much_later(count: int, unit: str, expected: datetime) -> None:
    assert end_after(ForClause(count, unit), None, MOMENT) == expected
    # From a beginning on, which is an occurrence itself, the end is the first one too many.
    assert end_after(ForClause(count, unit), SAID, MOMENT) == expected - SECOND


@pytest.mark.parametrize(
    ("count", "unit"),
    [
        (0, "second"),
        (10**10 + 1, "second"),
        (0, "day"),
        (100_001, "day"),
        (14_286, "week"),
        (0, "month"),
        (3_001, "month"),
        (251, "year"),
    ],
)
def test_a_length_of_time_is_bounded(count: int, unit: str) -> None:
    with pytest.raises(PhraseRefused, match="so long is too long, or no time at all"):
        end_after(ForClause(count, unit), None, MOMENT)
