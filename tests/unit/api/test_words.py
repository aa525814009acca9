"""Times as the pages show them."""

from datetime import UTC, datetime, timedelta

import pytest

from api.pages.words import duration, in_zone, instant, minute, relative

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "now"),
        (1, "in 1 second"),
        (90, "in 1 minute"),
        (3_599, "in 1 hour"),
        (7_199, "in 2 hours"),
        (-7_200, "2 hours ago"),
        (200_000, "in 2 days"),
    ],
)
def test_a_time_is_relative_to_its_largest_unit(seconds: int, said: str) -> None:
    assert relative(NOON + timedelta(seconds=seconds), NOON) == said


def test_an_exact_time_names_its_zone_and_its_milliseconds() -> None:
    assert instant(NOON) == "2026-03-02 12:00:00 UTC"
    assert instant(NOON + timedelta(milliseconds=5)) == "2026-03-02 12:00:00.005 UTC"


def test_a_duration_has_the_unit_that_suits_it() -> None:
    assert (duration(12.4), duration(1_540)) == ("12 ms", "1.5 s")
    assert (duration(600_000), duration(9_000_000)) == ("10 min", "2.5 h")


def test_a_local_time_names_its_day_and_its_offset() -> None:
    assert in_zone(NOON, "Europe/Berlin") == "Mon 2026-03-02 13:00:00+01:00"
    assert minute(NOON + timedelta(seconds=59)) == "2026-03-02 12:00 UTC"
