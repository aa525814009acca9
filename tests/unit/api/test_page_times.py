"""Times as the pages show them."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.api.pages.times import is_zone, relative, written

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


def test_a_time_has_its_year_where_that_is_another_one() -> None:
    assert written(NOON, NOON) == "Mon 2 Mar 12:00"
    assert written(NOON, NOON.replace(year=2027)) == "Mon 2 Mar 2026 12:00"


def test_a_time_has_seconds_where_they_count_and_there_are_any() -> None:
    moment = NOON + timedelta(seconds=5)
    assert [
        written(each, NOON, seconds=True) for each in (NOON, moment, moment + timedelta(milliseconds=7))
    ] == [
        "Mon 2 Mar 12:00",
        "Mon 2 Mar 12:00:05",
        "Mon 2 Mar 12:00:05.007",
    ]
    assert written(moment, NOON) == "Mon 2 Mar 12:00"


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "Europe/Zurich" + "x" * 99, "../etc/passwd", "a\nb"])
def test_what_a_browser_tells_is_no_zone_unless_it_is_one(name: str) -> None:
    assert not is_zone(name)
    assert is_zone("Europe/Zurich")
