"""`Once`: the recurrence of `run_at`."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from scheduler_app.domain.recurrence import Occurrence, Once

INSTANT = datetime(2026, 5, 1, 12, 0, 0, 250_000, tzinfo=UTC)
MOMENT = timedelta(milliseconds=1)


def test_it_occurs_once_to_the_millisecond() -> None:
    once = Once(INSTANT)
    assert once.after(INSTANT - MOMENT) == INSTANT
    assert once.after(INSTANT) is None
    assert once.after(INSTANT, inclusive=True) == INSTANT
    assert once.between(INSTANT, INSTANT + MOMENT) == [INSTANT]
    assert once.between(INSTANT - MOMENT, INSTANT) == []
    assert once.between(INSTANT, INSTANT + MOMENT, 0) == []
    assert once.occurrences(INSTANT, INSTANT + MOMENT, 5) == [Occurrence(INSTANT, INSTANT, None)]


def test_filling_a_time_says_what_follows_it() -> None:
    once = Once(INSTANT)
    assert once.between_and_next(INSTANT, INSTANT + MOMENT, 1) == ([INSTANT], None)
    assert once.between_and_next(INSTANT - MOMENT, INSTANT, 1) == ([], INSTANT)
    assert once.between_and_next(INSTANT + MOMENT, INSTANT + 2 * MOMENT, 1) == ([], None)


def test_an_offset_becomes_utc_and_microseconds_are_cut_as_bson_cuts_them() -> None:
    there = INSTANT.astimezone(timezone(timedelta(hours=-5))).replace(microsecond=250_999)
    assert Once(there) == Once(INSTANT)
    assert Once(there).instant.tzinfo is UTC


def test_it_speaks_of_itself_like_a_recurrence() -> None:
    once = Once(INSTANT)
    assert once.description == "Once, at 2026-05-01 12:00:00.250 UTC"
    assert (once.warnings, once.checkpoint(INSTANT), once.timezone) == ((), None, "UTC")


def test_naive_datetimes_are_refused() -> None:
    naive = datetime(2026, 5, 1)  # noqa: DTZ001
    for call in (
        lambda: Once(naive),
        lambda: Once(INSTANT).after(naive),
        lambda: Once(INSTANT).between(naive, INSTANT),
        lambda: Once(INSTANT).checkpoint(naive),
    ):
        with pytest.raises(ValueError, match="aware"):
            call()
