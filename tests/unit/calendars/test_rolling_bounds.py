"""Rolled occurrences at their bounds: the first and the last second of all, the days from which a look-up
begins, midnights at which a window ends, and what it costs."""

from datetime import UTC, date, datetime, timedelta

import pytest

from scheduler_app.domain.recurrence import Observance, OnHoliday, Recurrence
from scheduler_app.domain.recurrence.rules.open_days import _members
from scheduler_app.domain.recurrence.timeline import FIRST_SECOND, LIMIT, StepBudget, first_day
from scheduler_app.domain.recurrence.why.set_reasons import WholeBudget

FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
DAILY = "DTSTART:20260102T090000\nRRULE:FREQ=DAILY;COUNT=60"


class Closed:
    """Closed on these days, which no calendar of people could have in the years 1 and 9999."""

    irregular_until = 9999

    def __init__(self, *days: str) -> None:
        self._days = [date.fromisoformat(day).toordinal() for day in days]

    def of_year(self, year: int) -> int:
        january = first_day(year)
        return sum(1 << (day - january) for day in self._days if date.fromordinal(day).year == year)

    def name_of(self, at: date) -> str:
        return ""


def observing(
    text: str,
    on_holiday: OnHoliday,
    *closed: str,
    zone: str = "Europe/Zurich",
    gap: str = "shift",
    overlap: str = "first",
) -> Recurrence:
    created = datetime(1990, 1, 1, tzinfo=UTC)
    parsed = Recurrence.parse(text, created_at=created, timezone=zone, gap=gap, overlap=overlap)
    return parsed.observing(Observance("test", Closed(*closed), on_holiday))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def all_of(of: Recurrence) -> list[str]:
    return [f"{each:%m-%dT%H:%M:%S}" for each in of.between(FIRST, LAST)]


def test_the_last_second_of_all_is_one_like_others() -> None:
    text = "DTSTART:99991230T235959Z\nRRULE:FREQ=DAILY;COUNT=1"
    moved = observing(text, "next", "9999-12-30")
    second = LAST.replace(second=58)
    assert moved.after(second) == LAST
    assert moved.after(LAST) is None
    ways: tuple[OnHoliday, ...] = ("next", "previous")
    for way in ways:
        own = observing(text.replace("1230", "1231"), way, "9999-12-28")
        assert own.after(second) == LAST
    hourly = "DTSTART:99991229T235958Z\nRRULE:FREQ=SECONDLY"
    assert observing(hourly, "uncounted", "9999-12-29").after(second) == LAST
    dated = "DTSTART:99991229T090000Z\nRRULE:FREQ=DAILY;COUNT=3\nRDATE:99991231T235959Z"
    closed = observing(dated, "previous", "9999-12-30", "9999-12-31")
    assert all_of(closed) == ["12-29T09:00:00", "12-29T23:59:59"]


def test_what_moves_behind_the_last_second_of_all_does_not_occur() -> None:
    # 23:00 of the last day in New York is after it.
    text = "DTSTART;TZID=America/New_York:99991229T230000\nRRULE:FREQ=DAILY;COUNT=2"
    found = observing(text, "next", "9999-12-30")
    assert found.after(FIRST) == datetime(9999, 12, 30, 4, tzinfo=UTC)
    assert found.after(datetime(9999, 12, 30, 4, tzinfo=UTC)) is None


@pytest.mark.parametrize(("day", "way"), [("9999-12-31", "next"), ("0001-01-01", "previous")])
def test_where_no_day_is_left_to_move_to_nothing_fires_and_why_says_so(day: str, way: OnHoliday) -> None:
    text = f"DTSTART:{day.replace('-', '')}T090000Z\nRRULE:FREQ=DAILY;COUNT=1"
    found = observing(text, way, day).why(at(f"{day}T09:00"))
    assert (found.fires, found.previous, found.following) == (False, None, None)
    (reason,) = found.reasons
    assert reason.message.endswith(
        f"on_holiday={way} moves it to the {way} open day, which does not have its time."
    )


@pytest.mark.parametrize(
    ("rule", "closed", "way", "gap", "asked", "new"),
    [
        # Of a closed day with a gap, what was written moves, and not what the gap made of it.
        ("DAILY", "2026-03-29", "next", "shift", "2026-03-29T01:30", "Monday 30 March 2026, 02:30:00."),
        ("DAILY", "2026-03-29", "previous", "shift", "2026-03-29T01:30", "Saturday 28 March 2026, 02:30:00."),
        ("DAILY", "2026-03-28", "next", "shift", "2026-03-28T01:30", "Sunday 29 March 2026, 03:30:00."),
        ("DAILY", "2026-03-28", "next", "skip", "2026-03-28T01:30", "does not have its time."),
        ("DAILY", "2026-03-30", "previous", "skip", "2026-03-30T00:30", "does not have its time."),
    ],
)
def test_why_says_where_an_occurrence_of_a_closed_day_moves(
    rule: str, closed: str, way: OnHoliday, gap: str, asked: str, new: str
) -> None:
    found = observing(f"DTSTART:20260320T023000\nRRULE:FREQ={rule}", way, closed, gap=gap).why(at(asked))
    (reason,) = found.reasons
    assert reason.message.endswith(new)


@pytest.mark.parametrize(
    ("way", "day", "written"),
    [("next", 12, (10, 11)), ("previous", 9, (10, 11)), ("next", 18, (17,)), ("previous", 16, (17,))],
)
def test_what_moved_is_told_by_its_first_day(way: OnHoliday, day: int, written: tuple[int, ...]) -> None:
    """Nothing of its own occurs on the new day: what fires at 09:00, 08:00 in UTC, is of a closed one."""
    closed = [f"2026-01-{each}" for each in written]
    own = ",".join(f"202601{each:02}T090000" for each in (9, 12, 16, 18))
    rule = f"DTSTART:20260102T090000\nRRULE:FREQ=DAILY\nEXDATE:{own}"
    begin = at(f"2026-01-{day:02}T00:00")
    (moved,) = observing(rule, way, *closed).occurrences(begin, begin + timedelta(days=1))
    assert moved.instant == begin.replace(hour=8)
    assert moved.rolled_from is not None
    assert moved.rolled_from.replace(tzinfo=None) == datetime(2026, 1, written[0], 9)  # noqa: DTZ001


def test_beside_steps_of_elapsed_time_too_it_is_the_written_time_that_moves() -> None:
    text = "DTSTART:20260320T023000\nRRULE:FREQ=DAILY\nRRULE:FREQ=HOURLY;INTERVAL=1000"
    found = observing(text, "next", "2026-03-29").between(at("2026-03-29T00:00"), at("2026-03-31T00:00"))
    assert found == [at("2026-03-30T00:30")]


def test_what_a_gap_moved_on_the_new_day_comes_once() -> None:
    found = observing("DTSTART:20260328T023000\nRRULE:FREQ=DAILY;COUNT=1", "next", "2026-03-28")
    moved = at("2026-03-29T01:30")
    assert found.after(at("2026-03-28T00:00")) == moved
    assert found.after(moved) is None


@pytest.mark.parametrize(("overlap", "hour"), [("first", 0), ("last", 1)])
def test_of_a_time_that_the_new_day_has_twice_the_chosen_one_fires(overlap: str, hour: int) -> None:
    text = "DTSTART:20261024T023000\nRRULE:FREQ=DAILY;COUNT=1"
    found = observing(text, "next", "2026-10-24", overlap=overlap)
    assert found.after(at("2026-10-24T00:00")) == datetime(2026, 10, 25, hour, 30, tzinfo=UTC)


def test_of_what_comes_to_one_instant_that_is_told_which_the_new_day_shows() -> None:
    """02:30 and 03:30 of Saturday both fire at 03:30 of the Sunday that has no 02:30."""
    text = "DTSTART:20260320T023000\nRRULE:FREQ=DAILY;BYHOUR=2,3"
    found = observing(text, "next", "2026-03-28")
    (seen,) = found.occurrences(at("2026-03-28T00:00"), at("2026-03-29T12:00"))
    assert seen.instant == at("2026-03-29T01:30")
    assert seen.rolled_from is None
    without = observing(f"{text}\nEXDATE;VALUE=DATE:20260329", "next", "2026-03-28")
    (seen,) = without.occurrences(at("2026-03-28T00:00"), at("2026-03-29T12:00"))
    assert seen.instant == at("2026-03-29T01:30")
    assert seen.rolled_from is not None
    assert (seen.rolled_from.day, seen.rolled_from.hour) == (28, 3)


@pytest.mark.parametrize(
    ("zone", "closed", "asked", "begins"),
    [
        # Only what a run has moved to the day that is asked about is looked at again, from the run's begin.
        ("Europe/Zurich", ("2026-01-10", "2026-01-11"), "2026-01-12T12:00:00", "2026-01-09T23:00:00"),
        ("Europe/Zurich", ("2026-01-10", "2026-01-11"), "2026-01-12T22:59:59", "2026-01-09T23:00:00"),
        ("Europe/Zurich", ("2026-01-10", "2026-01-11"), "2026-01-12T23:00:00", "2026-01-12T23:00:00"),
        ("Europe/Zurich", ("2026-01-10", "2026-01-11"), "2026-01-11T12:00:00", "2026-01-09T23:00:00"),
        ("Europe/Zurich", ("2026-01-10", "2026-01-11"), "2026-01-09T22:59:00", "2026-01-09T22:59:00"),
        # Clocks go forward over the midnight that ends 28 March: what moved to it may fire a day later.
        ("America/Nuuk", ("2026-03-26",), "2026-03-28T12:00:00", "2026-03-26T02:00:00"),
        ("America/Nuuk", ("2026-03-25",), "2026-03-28T12:00:00", "2026-03-28T12:00:00"),
    ],
)
def test_a_count_is_kept_from_where_what_fires_was_written(
    zone: str, closed: tuple[str, ...], asked: str, begins: str
) -> None:
    rule = observing("DTSTART:20260102T090000\nRRULE:FREQ=HOURLY;COUNT=5000", "next", *closed, zone=zone)
    kept = rule.checkpoint(at(asked))
    assert kept is not None
    assert kept["second"] - FIRST_SECOND == (at(begins) - FIRST).total_seconds()


@pytest.mark.parametrize(
    ("way", "own", "fires"),
    [
        (
            "previous",
            "FR;BYHOUR=8,17",
            ["16T00", "16T08", "16T09", "16T17", "23T00", "23T08", "23T09", "23T17", "30T08"],
        ),
        ("next", "SU;BYHOUR=8,17", ["18T00", "18T08", "18T09", "18T17", "25T00", "25T08", "25T09", "25T17"]),
    ],
)
def test_what_moves_to_a_day_comes_among_its_own_in_order(way: OnHoliday, own: str, fires: list[str]) -> None:
    """00:00 and 09:00 of two single closed Saturdays."""
    text = f"DTSTART:20260112T080000\nRRULE:FREQ=WEEKLY;BYDAY={own}\nRRULE:FREQ=WEEKLY;BYDAY=SA;BYHOUR=0,9"
    found = observing(text, way, "2026-01-17", "2026-01-24", zone="UTC")
    listed = found.between(at("2026-01-12T00:00"), at("2026-01-30T12:00"))
    assert [f"{each:%dT%H}" for each in listed] == fires


def test_the_end_of_a_closed_day_that_comes_once_more_is_passed_once_more() -> None:
    """St John's puts clocks back at 00:01: a minute of Sunday lies between two ends of Saturday."""
    text = "DTSTART;TZID=America/St_Johns:20071103T234000\nRRULE:FREQ=MINUTELY;INTERVAL=20;COUNT=5"
    for closed, fires in (
        ("2007-11-03", ["04T02:30", "04T03:30", "05T02:50", "05T03:10"]),
        ("2007-11-04", ["04T02:10", "04T02:50", "04T03:10", "05T03:30"]),
    ):
        found = observing(text, "next", closed).between(at("2007-11-03T00:00"), at("2007-11-06T00:00"))
        assert [f"{each:%dT%H:%M}" for each in found] == fires


def test_the_midnight_that_ends_a_closed_day_belongs_to_the_next_one() -> None:
    """On a day on which the clocks change, too: its times of day are listed one by one."""
    text = "DTSTART:20260323T000000\nRRULE:FREQ=WEEKLY;BYDAY=SU;BYHOUR=9\nRRULE:FREQ=WEEKLY;BYDAY=MO"
    found = observing(text, "previous", "2026-03-29").between(at("2026-03-27T00:00"), at("2026-03-31T00:00"))
    assert found == [at("2026-03-28T08:00"), at("2026-03-29T22:00")]


@pytest.mark.parametrize(("way", "cost"), [("next", 7), ("previous", 12)])
def test_each_run_and_each_of_its_days_that_is_looked_at_costs_a_step(way: OnHoliday, cost: int) -> None:
    runs = ("2026-01-10", "2026-01-11", "2026-01-17", "2026-01-24", "2026-01-25", "2026-01-26")
    rolled = observing(DAILY, way, *runs)._fires
    whole = WholeBudget()
    assert len(list(rolled.instants(FIRST_SECOND, whole))) == 54
    assert LIMIT - whole.steps_left == cost
    # What was found, also among those that moved, gives all of them back.
    steps = StepBudget()
    assert {steps.steps_left for _ in rolled.instants(FIRST_SECOND, steps)} == {LIMIT}
    alone = observing(DAILY.replace("COUNT=60", "COUNT=1"), way, "2026-01-02")._fires
    assert [steps.steps_left for _ in alone.instants(FIRST_SECOND, steps)] == [LIMIT]


def test_times_of_day_are_the_positions_of_their_bits() -> None:
    places = [0, 1, 1_022, 1_023, 1_024, 1_025, 2_048, 50_000, 86_399]
    assert list(_members(sum(1 << place for place in places), 7)) == [7 + place for place in places]
    assert list(_members(1 << 1_022, 0)) == [1_022]
    assert list(_members(0, 7)) == []
