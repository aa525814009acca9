"""Intervals, delays, local times, and schedules that only run on demand."""

from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.schedule import ScheduleState
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.domain.triggers import Trigger, TriggerContext, Value, new_trigger
from tests.builders import draft, schedule

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=each) for each in (1, 60, 3_600, 86_400))
ZURICH = "Europe/Zurich"


def local(*parts: int) -> datetime:
    return datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001


def made(at: datetime = NOON, timezone: str = ZURICH, **given: Value) -> Trigger:
    return new_trigger(given, TriggerContext(at, timezone))


def first(trigger: Trigger, count: int = 3, after: datetime = NOON) -> list[datetime]:
    return trigger.recurrence(NOON).between(after, after + 400 * DAY, limit=count)


def test_an_interval_counts_from_the_moment_at_which_it_is_given_and_never_comes_early() -> None:
    assert first(made(every_seconds=90)) == [NOON + 90 * SECOND, NOON + 180 * SECOND, NOON + 270 * SECOND]
    between = made(NOON + timedelta(milliseconds=1), every_seconds=90)
    assert first(between, 1) == [NOON + 91 * SECOND]


def test_an_interval_is_elapsed_time_over_a_clock_change() -> None:
    """A day is 24 hours also where it has 23: what clocks show moves by an hour."""
    daily = made(every_seconds=86_400, start_at=local(2026, 3, 28, 9))
    eight, nine = datetime(2026, 3, 28, 8, tzinfo=UTC), datetime(2026, 3, 29, 8, tzinfo=UTC)
    assert first(daily, 2) == [eight, nine]
    assert [each.local.hour for each in daily.recurrence(NOON).occurrences(eight, nine + HOUR)] == [9, 10]


def test_an_interval_goes_on_from_a_start_in_the_past() -> None:
    every = made(every_seconds=7 * 86_400, start_at=datetime(2026, 1, 5, 9, tzinfo=UTC))
    assert first(every, 2) == [datetime(2026, 3, 9, 9, tzinfo=UTC), datetime(2026, 3, 16, 9, tzinfo=UTC)]


def test_an_interval_in_another_zone_has_no_warning_about_its_zone() -> None:
    assert made(every_seconds=60).recurrence(NOON).warnings == ()


@pytest.mark.parametrize(
    ("seconds", "timezone", "rule"),
    [
        (86_400, ZURICH, "FREQ=DAILY"),
        (14 * 86_400, "America/New_York", "FREQ=DAILY;INTERVAL=14"),
        (86_400, "UTC", None),
        (86_400, "Asia/Tokyo", None),
        (3_600, ZURICH, None),
        (90_000, ZURICH, None),
    ],
)
def test_whole_days_of_elapsed_time_are_warned_of_where_clocks_change(
    seconds: int, timezone: str, rule: str | None
) -> None:
    """Asia/Tokyo had summer time until 1951, and has none any more."""
    warnings = made(timezone=timezone, every_seconds=seconds).warnings
    assert [rule for text in warnings if f"give the rrule {rule}." in text] == ([rule] if rule else [])
    assert len(warnings) == bool(rule)


def test_an_edit_of_an_interval_keeps_its_start_until_that_is_taken_away() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    before = schedule(NOON, every_seconds=86_400, start_at=start)
    faster = ScheduleDraft(trigger={"every_seconds": 3_600}).edit(before, NOON + SECOND)
    assert faster.trigger.written == {"every_seconds": 3_600, "start_at": start}
    anew = ScheduleDraft(trigger={"start_at": None}).edit(faster, NOON + SECOND)
    assert anew.trigger.written == {"every_seconds": 3_600}
    assert anew.next_run_at == NOON + SECOND + HOUR
    moved = ScheduleDraft(trigger={"start_at": start}).edit(anew, NOON + 2 * SECOND)
    assert moved.next_run_at == NOON + HOUR
    with pytest.raises(InvalidField, match="belongs to every_seconds") as refused:
        ScheduleDraft(trigger={"rrule": "FREQ=DAILY", "start_at": start}).edit(before, NOON)
    assert refused.value.field == "start_at"


def test_a_delay_becomes_an_instant_to_the_millisecond() -> None:
    at = NOON + timedelta(microseconds=250_400)
    delayed = made(at, delay_seconds=90)
    assert delayed.instant == NOON + timedelta(seconds=90, milliseconds=250)


def test_a_delay_that_is_given_again_does_not_begin_anew_but_another_one_does() -> None:
    before = schedule(NOON, delay_seconds=90)
    assert before.next_run_at == NOON + 90 * SECOND
    assert ScheduleDraft(trigger={"delay_seconds": 90}).edit(before, NOON + MINUTE) is before
    assert ScheduleDraft(timezone=ZURICH).edit(before, NOON + MINUTE).next_run_at == before.next_run_at
    other = ScheduleDraft(trigger={"delay_seconds": 91}).edit(before, NOON + MINUTE)
    assert other.next_run_at == NOON + MINUTE + 91 * SECOND


def test_on_demand_is_active_without_a_next_occurrence_and_never_finished() -> None:
    waiting = schedule(NOON, on_demand=True)
    assert (waiting.state, waiting.next_run_at) == (ScheduleState.ACTIVE, None)
    paused = ScheduleDraft(state=ScheduleState.PAUSED).edit(waiting, NOON + DAY)
    assert paused.state is ScheduleState.PAUSED
    resumed = ScheduleDraft(state=ScheduleState.ACTIVE).edit(paused, NOON + 2 * DAY)
    assert (resumed.state, resumed.next_run_at) == (ScheduleState.ACTIVE, None)
    assert waiting.recurrence().description == "Only on demand"
    ruled = ScheduleDraft(trigger={"rrule": "FREQ=DAILY"}).edit(waiting, NOON)
    back = ScheduleDraft(trigger={"on_demand": True}).edit(ruled, NOON + DAY)
    assert (back.state, back.next_run_at, back.revision) == (ScheduleState.ACTIVE, None, 3)


@pytest.mark.parametrize(
    ("when", "gap", "overlap", "instant", "warned"),
    [
        (local(2026, 7, 1, 9), "shift", "first", datetime(2026, 7, 1, 7, tzinfo=UTC), None),
        (local(2026, 3, 29, 2, 30), "shift", "first", datetime(2026, 3, 29, 1, 30, tzinfo=UTC), "01:30 UTC"),
        (local(2026, 10, 25, 2, 30), "skip", "first", datetime(2026, 10, 25, 0, 30, tzinfo=UTC), "the first"),
        (local(2026, 10, 25, 2, 30), "shift", "last", datetime(2026, 10, 25, 1, 30, tzinfo=UTC), "the last"),
    ],
)
def test_a_local_time_is_read_in_its_zone(
    when: datetime,
    gap: Literal["shift", "skip"],
    overlap: Literal["first", "last"],
    instant: datetime,
    warned: str | None,
) -> None:
    trigger = new_trigger({"run_at": when}, TriggerContext(NOON, ZURICH, gap, overlap))
    assert first(trigger) == [instant]
    assert [warned in text for text in trigger.warnings if warned] == ([True] if warned else [])
    assert bool(trigger.warnings) == bool(warned)


def test_a_local_time_that_does_not_exist_and_is_to_be_skipped_is_refused() -> None:
    with pytest.raises(InvalidField, match="does not exist in Europe/Zurich") as refused:
        new_trigger({"run_at": local(2026, 3, 29, 2, 30)}, TriggerContext(NOON, ZURICH, "skip"))
    assert refused.value.field == "run_at"


def test_a_local_time_needs_a_timezone_that_somebody_chose() -> None:
    when = local(2026, 7, 1, 9)
    with pytest.raises(InvalidField, match="needs an offset"):
        draft(run_at=when).schedule("s1", NOON, max_retries=3)
    assert schedule(NOON, run_at=when, timezone="UTC").next_run_at == when.replace(tzinfo=UTC)
    before = schedule(NOON, timezone=ZURICH)
    edited = ScheduleDraft(trigger={"run_at": when}).edit(before, NOON)
    assert edited.next_run_at == datetime(2026, 7, 1, 7, tzinfo=UTC)
    with pytest.raises(InvalidField, match="fraction"):
        made(run_at=local(2026, 7, 1, 9, 0, 0, 1_000))


def test_a_local_time_moves_with_the_schedule_s_zone() -> None:
    before = schedule(NOON, run_at=local(2026, 7, 1, 9), timezone=ZURICH)
    moved = ScheduleDraft(timezone="America/New_York").edit(before, NOON + SECOND)
    assert (moved.next_run_at, moved.revision) == (datetime(2026, 7, 1, 13, tzinfo=UTC), 2)
