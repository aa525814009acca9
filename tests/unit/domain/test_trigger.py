"""What is pinned is what was written."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.triggers import Trigger, TriggerContext, new_trigger, trigger

NOW = datetime(2026, 11, 21, 7, 0, 12, 345_000, tzinfo=UTC)
BARE = "FREQ=DAILY;BYHOUR=9;BYMINUTE=0"


def of_rule(rrule: str, timezone: str = "UTC") -> Trigger:
    return new_trigger({"rrule": rrule}, TriggerContext(NOW, timezone))


@pytest.mark.parametrize(
    "rrule", [BARE, "RRULE:FREQ=WEEKLY;UNTIL=20270101", f"DTSTART:20260101T000500\nRRULE:{BARE}"]
)
def test_the_pinned_recurrence_is_the_written_one_also_when_it_is_read_anew(rrule: str) -> None:
    made = of_rule(rrule, "Europe/Zurich")
    kept = made.recurrence(NOW)
    read = made.recurrence(NOW - timedelta(microseconds=1))
    written = Recurrence.parse(rrule, created_at=NOW, timezone="Europe/Zurich")
    assert kept == read == written
    assert kept.between(NOW, NOW + timedelta(days=9)) == read.between(NOW, NOW + timedelta(days=9))


def test_nobody_is_warned_of_a_dtstart_that_nobody_gave() -> None:
    pinned = of_rule(BARE).recurrence(NOW + timedelta(days=1))
    (warning,) = pinned.warnings
    assert "fires at second 13" in warning


def test_a_dtstart_that_was_given_and_is_no_occurrence_is_warned_of() -> None:
    rrule = f"DTSTART:20260101T000500Z\nRRULE:{BARE}"
    (warning,) = of_rule(rrule).recurrence(NOW + timedelta(days=1)).warnings
    assert warning.startswith("DTSTART does not satisfy the rule")


def test_a_checkpoint_of_one_schedule_stays_out_of_another_with_the_same_rule() -> None:
    counted = of_rule("FREQ=SECONDLY;COUNT=10")
    free = counted.recurrence(NOW)
    wrong = free.checkpoint(NOW + timedelta(seconds=5))
    assert wrong is not None
    wrong["done"] = [9]
    bound = counted.recurrence(NOW, wrong)
    later = NOW + timedelta(seconds=6)
    assert bound.after(later) is None
    assert len(counted.recurrence(NOW).between(later, later + timedelta(hours=1))) == 4


def test_the_cache_of_recurrences_is_bounded_and_forgets_the_one_used_least_recently() -> None:
    cache = trigger._RecurrenceCache()
    texts = [
        trigger.RecurrenceText(BARE, NOW + timedelta(seconds=each), "UTC", "shift", "first")
        for each in range(trigger.MAX_CACHED + 1)
    ]
    first = cache.read(texts[0])
    for text in texts[1:-1]:
        cache.keep(text, first)
    assert cache.read(texts[0]) is first
    cache.keep(texts[-1], first)
    assert len(cache) == trigger.MAX_CACHED
    assert cache.read(texts[0]) is first
    assert cache.read(texts[1]) is not first
