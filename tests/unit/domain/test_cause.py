"""Causes: what makes failures the same, whom they touch, and when they are over."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.domain.cause import (
    ANSWERING,
    MAX_COUNTED,
    MAX_NAMED,
    MAX_TREND,
    TREND_PART,
    Cause,
    CauseKey,
    CauseKind,
    CauseState,
    Tally,
    Touched,
    failing_key,
    failure_of,
    found,
    opened,
)
from scheduler_app.domain.errors import Conflict

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
KEY = failing_key("s1-1-x", "https://a.test:443", 500, None)


def tally(*schedules: str, at: datetime = NOON, gave_up: bool = False) -> Tally:
    made = Tally(KEY, at, at)
    for each in schedules or ("",):
        made.add(f"{each}-e", each, at, "no", is_first=True, gave_up=gave_up, is_dead=gave_up)
    return made


def cause(*schedules: str) -> Cause:
    return opened(tally(*schedules))


def test_the_same_failure_of_one_receiver_is_one_key_and_of_a_tenant_that_tenants() -> None:
    assert KEY.id == failing_key("s2-1-x", "https://a.test:443", 500, "other words").id
    others = [
        failing_key("s1-1-x", "https://b.test:443", 500, None),
        failing_key("s1-1-x", "https://a.test:443", 503, None),
        failing_key("s1-1-x", "https://a.test:443", None, "timed out"),
        failing_key("acme:s1-1-x", "https://a.test:443", 500, None),
    ]
    assert len({KEY.id, *(each.id for each in others)}) == 5
    assert others[-1].id.startswith("acme:")


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        ("timed out after 10001 ms", "timed out after # ms"),
        ("Could not resolve host: a.test", "Could not resolve host"),
        ("Failed to connect to 10.0.0.1 port 80: refused", "Failed to connect to # port #"),
        ("KeyError('x')", "KeyError"),
        ("'x'", "'x'"),
        ("", "no reason given"),
        (None, "no reason given"),
        ("a\x1b[31m" + "b" * 400, "a"),
    ],
)
def test_what_differs_from_one_error_to_the_next_is_left_out(error: str | None, failure: str) -> None:
    assert failure_of(None, error) == failure
    assert len(failure_of(None, error)) <= 80


def test_the_first_hundred_are_named_and_the_rest_is_counted_each_once() -> None:
    names = [f"s{number}" for number in range(500)]
    touched = Touched().with_names(names).with_names(reversed(names))
    assert (len(touched.names), touched.count, touched.is_exact) == (MAX_NAMED, 500, True)
    assert touched.with_names(names) is touched
    many = touched.with_names(f"t{number}" for number in range(2 * MAX_COUNTED))
    assert (many.count, many.is_exact) == (MAX_COUNTED, False)


def test_a_tally_in_memory_is_bounded() -> None:
    made = tally()
    for number in range(MAX_COUNTED + 10):
        made.add("e", f"s{number}", NOON, "no", tags=(f"t{number}",))
    assert (len(made.schedules), len(made.tags)) == (MAX_COUNTED, MAX_COUNTED)
    other = Tally(KEY, NOON, NOON)
    other.add("e", "another", NOON, "no")
    made.merge(other)
    assert len(made.schedules) == MAX_COUNTED


def test_touching_counts_and_keeps_the_first_time_and_the_last_words() -> None:
    later = Tally(KEY, NOON + SECOND, NOON + SECOND)
    later.add("e2", "s2", NOON + SECOND, "worse", tags=("team:a",), gave_up=True, is_dead=True)
    earlier = Tally(KEY, NOON - SECOND, NOON - SECOND)
    earlier.add("e0", "s1", NOON - SECOND, "old", is_first=True)
    after = cause("s1").touched(later).touched(earlier)
    assert (after.since, after.last, after.error) == (NOON - SECOND, NOON + SECOND, "worse")
    assert (after.failed, after.gave_up, after.has_dead_letters) == (2, 1, True)
    assert after.schedules.names == ("s1", "s2")
    assert after.tags.names == ("team:a",)
    assert {each.schedule_id: each.failed_at for each in after.failing} == {"s1": NOON, "s2": NOON + SECOND}


def test_attempts_are_counted_in_parts_of_five_minutes_and_the_last_ones_are_kept() -> None:
    made = cause("s1").touched(tally("s1", "s2", at=NOON + SECOND))
    assert made.trend == ((NOON, 3),)
    for number in range(2 * MAX_TREND):
        made = made.touched(tally("s1", at=NOON + number * TREND_PART))
    assert len(made.trend) == MAX_TREND
    assert made.trend[-1] == (NOON + (2 * MAX_TREND - 1) * TREND_PART, 1)


def test_a_cause_is_over_when_its_last_schedules_have_succeeded_or_are_gone() -> None:
    both = cause("s1", "s2")
    one = both.recovered({"s1": NOON + SECOND})
    assert not one.ends(NOON + SECOND, waits=False, is_dead=False)
    # A success from before the failure is none.
    assert one.recovered({"s2": NOON}) is one
    none = one.recovered({"s2": None})
    assert none.ends(NOON + SECOND, waits=False, is_dead=True)
    assert not none.ends(NOON + SECOND, waits=True, is_dead=False)
    over = none.over(NOON + SECOND)
    assert (over.state, over.is_living) == (CauseState.OVER, False)
    assert not over.ends(NOON + SECOND, waits=False, is_dead=False)


def test_or_after_five_minutes_of_successes_without_such_a_failure() -> None:
    answering = cause("s1").answered(NOON + SECOND)
    assert answering.answered(NOON + 2 * SECOND) is answering
    assert not answering.ends(NOON + ANSWERING, waits=False, is_dead=True)
    assert answering.ends(NOON + SECOND + ANSWERING, waits=False, is_dead=True)
    # What waits for its next attempt may fail again.
    assert not answering.ends(NOON + 2 * ANSWERING, waits=True, is_dead=True)
    again = answering.touched(tally("s1", at=NOON + 3 * SECOND))
    assert again.answering_since is None
    assert not again.ends(NOON + 2 * ANSWERING, waits=False, is_dead=True)
    # A success before the last failure says nothing.
    assert again.answered(NOON + 3 * SECOND) is again


def test_messages_alone_are_over_with_a_success_or_when_nothing_is_left_of_them() -> None:
    alone = cause()
    assert not alone.ends(NOON, waits=True, is_dead=False)
    assert not alone.ends(NOON, waits=False, is_dead=True)
    assert alone.ends(NOON, waits=False, is_dead=False)
    assert alone.answered(NOON + SECOND).ends(NOON + SECOND, waits=False, is_dead=True)


def test_of_more_schedules_than_are_kept_five_minutes_tell() -> None:
    many = cause(*(f"s{number}" for number in range(MAX_NAMED + 1)))
    assert (len(many.failing), many.more_failing) == (MAX_NAMED, True)
    recovered = many.recovered(dict.fromkeys((each.schedule_id for each in many.failing), None))
    assert not recovered.ends(NOON + SECOND, waits=False, is_dead=False)
    assert recovered.answered(NOON + SECOND).ends(NOON + 2 * ANSWERING, waits=False, is_dead=False)


def test_a_dismissed_cause_goes_on_and_is_dismissed_once() -> None:
    dismissed = cause("s1").dismissed(NOON, "ann", "known")
    assert (dismissed.state, dismissed.is_living) == (CauseState.DISMISSED, True)
    assert dismissed.touched(tally("s1")).state is CauseState.DISMISSED
    assert dismissed.over(NOON).state is CauseState.DISMISSED
    with pytest.raises(Conflict):
        dismissed.dismissed(NOON, "bob", "")


def test_an_inspection_changes_nothing_where_nothing_but_the_time_has_changed() -> None:
    key = CauseKey("default", CauseKind.LATE, "https://a.test:443")
    first = opened(replace(found(key, NOON, NOON, "1 event"), failed=1))
    assert first.observed(replace(found(key, NOON, NOON + SECOND, "1 event"), failed=1)) is first
    more = first.observed(replace(found(key, NOON, NOON + SECOND, "2 events"), failed=2))
    assert (more.failed, more.error, more.last) == (2, "2 events", NOON + SECOND)
