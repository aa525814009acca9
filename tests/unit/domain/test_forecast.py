"""What the rule of one schedule adds to a forecast."""

from collections import Counter
from datetime import timedelta

import pytest

from scheduler_app.domain.event import due
from scheduler_app.domain.forecast import COUNTED_ONE_BY_ONE, JUDGED_BY, Buckets, occurrences_by_bucket
from tests.builders import schedule
from tests.unit.domain.test_jitter import MIDNIGHT

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def test_buckets_cover_the_time_and_the_last_one_may_be_shorter() -> None:
    buckets = Buckets(MIDNIGHT, MIDNIGHT + timedelta(minutes=150), HOUR)
    assert len(buckets) == 3
    assert [buckets.of(MIDNIGHT + i * HOUR) for i in (-1, 0, 1, 2, 3)] == [None, 0, 1, 2, None]
    assert buckets.until(2) - buckets.since(2) == timedelta(minutes=30)


@pytest.mark.parametrize("jitter", [0.0, 600.0, 7_200.0])
def test_each_occurrence_is_counted_where_its_callback_falls_due(jitter: float) -> None:
    made = schedule(MIDNIGHT, rrule="FREQ=MINUTELY;INTERVAL=10", jitter_seconds=jitter)
    buckets = Buckets(MIDNIGHT + HOUR, MIDNIGHT + 7 * HOUR, timedelta(minutes=7))
    recurrence = made.recurrence()
    all_due = [due("s1", each, jitter) for each in recurrence.between(MIDNIGHT, MIDNIGHT + 7 * HOUR)]
    expected = Counter(bucket for each in all_due if (bucket := buckets.of(each)) is not None)
    counts = occurrences_by_bucket(made, buckets)
    assert (counts.sent, counts.exact) == (expected, True)


def test_a_rule_that_fires_very_often_is_estimated_with_bounded_work() -> None:
    # On weekdays alone: what one day tells does not hold for another.
    often = "FREQ=SECONDLY;BYDAY=MO,TU,WE,TH,FR"
    made = schedule(MIDNIGHT, rrule=often, jitter_seconds=1.0)
    buckets = Buckets(MIDNIGHT, MIDNIGHT + 7 * DAY, DAY)  # Tuesday to Monday
    found = occurrences_by_bucket(made, buckets)
    assert not found.exact
    counts = found.sent
    true = {0: 86_400, 1: 86_400, 2: 86_400, 3: 86_400, 6: 86_400}
    assert counts.keys() == true.keys()
    for bucket, count in true.items():
        assert abs(counts[bucket] - count) < 0.02 * count
    assert 7 * JUDGED_BY + COUNTED_ONE_BY_ONE < 86_400
    # Where nothing moves them, whole hours and days are counted as they are, without listing them.
    exact = occurrences_by_bucket(schedule(MIDNIGHT - HOUR, rrule=often), buckets)
    assert (exact.sent, exact.exact) == (true, True)


def test_parts_are_numbered_from_where_the_first_one_begins() -> None:
    """The calendar asks for what comes after now in parts that begin before."""
    later = Buckets(MIDNIGHT + 90 * MINUTE, MIDNIGHT + 5 * HOUR, HOUR, MIDNIGHT)
    assert (len(later), list(later.numbers)) == (5, [1, 2, 3, 4])
    assert (later.since(1), later.until(1)) == (MIDNIGHT + 90 * MINUTE, MIDNIGHT + 2 * HOUR)
    assert [later.of(MIDNIGHT + each * MINUTE) for each in (0, 89, 90, 120, 299, 300)] == [
        *(None, None, 1, 2, 4, None)
    ]
