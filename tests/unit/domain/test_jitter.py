"""Jitter: the same for the same occurrence, even among many, and never an instant of its own."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.domain.event import due, jitter_of, jittered, scheduled
from scheduler_app.domain.ids import event_id
from scheduler_app.domain.schedule_draft import ScheduleDraft
from tests.builders import schedule

MIDNIGHT = datetime(2026, 3, 3, tzinfo=UTC)
DAY = timedelta(days=1)


def test_it_is_a_constant_of_the_id_and_the_instant() -> None:
    # A release that drew otherwise would move what previews have promised.
    assert jitter_of("nightly", MIDNIGHT, 600) == timedelta(seconds=553, milliseconds=767)
    assert jitter_of("nightly", MIDNIGHT + DAY, 600) != jitter_of("nightly", MIDNIGHT, 600)
    assert jitter_of("acme:nightly", MIDNIGHT, 600) != jitter_of("nightly", MIDNIGHT, 600)
    assert jitter_of("nightly", MIDNIGHT, 0) == timedelta()


@pytest.mark.parametrize("seconds", [0.001, 0.5, 600, 86_400])
def test_it_stays_below_its_bound(seconds: float) -> None:
    drawn = [jitter_of(f"s{i}", MIDNIGHT, seconds) for i in range(500)]
    assert min(drawn) >= timedelta()
    assert max(drawn) < timedelta(seconds=seconds)
    assert all(each % timedelta(milliseconds=1) == timedelta() for each in drawn)


def test_ten_thousand_schedules_at_midnight_are_spread_evenly() -> None:
    seconds = Counter(int(jitter_of(f"s{i}", MIDNIGHT, 600).total_seconds()) for i in range(10_000))
    assert max(seconds.values()) <= 3 * 10_000 / 600


def test_an_event_keeps_the_id_and_the_run_time_of_its_occurrence() -> None:
    made = scheduled("nightly", 1, MIDNIGHT)
    (moved,) = jittered([made], 600)
    assert (moved.id, moved.run_time) == (event_id("nightly", 1, MIDNIGHT), MIDNIGHT)
    assert moved.due_at == due("nightly", MIDNIGHT, 600) == MIDNIGHT + jitter_of("nightly", MIDNIGHT, 600)
    assert jittered([made], 0) == [made]


def test_only_an_edit_of_the_jitter_makes_the_future_anew() -> None:
    before = schedule(MIDNIGHT, jitter_seconds=600.0)
    renamed = ScheduleDraft(name="another", tags=("a",)).edit(before, MIDNIGHT)
    assert (renamed.revision, renamed.jitter_seconds) == (1, 600)
    spread = ScheduleDraft(jitter_seconds=60.0).edit(before, MIDNIGHT)
    assert (spread.revision, spread.jitter_seconds) == (2, 60)
