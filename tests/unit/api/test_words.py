"""Times as the pages show them."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.api.pages.formatting import (
    duration,
    form_words,
    in_zone,
    instant,
    local_time,
    minute,
    relative,
)

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
    assert instant(NOON) == "Mon 2026-03-02 12:00:00 UTC"
    assert instant(NOON + timedelta(milliseconds=5)) == "Mon 2026-03-02 12:00:00.005 UTC"


def test_a_duration_has_the_unit_that_suits_it() -> None:
    assert (duration(12.4), duration(1_540)) == ("12 ms", "1.5 s")
    assert (duration(600_000), duration(9_000_000)) == ("10 min", "2.5 h")


def test_a_local_time_names_its_day_and_its_offset() -> None:
    assert in_zone(NOON, "Europe/Berlin") == "Mon 2026-03-02 13:00:00 +01:00"
    assert local_time("2026-03-02T13:00:00+01:00") == in_zone(NOON, "Europe/Berlin")
    assert minute(NOON + timedelta(seconds=59)) == "Mon 2026-03-02 12:00 UTC"


def test_times_have_one_form_wherever_they_come_from() -> None:
    shown = "Mon 2026-03-02 12:00:00 UTC"
    assert [instant(NOON), in_zone(NOON, "UTC"), local_time("2026-03-02T12:00:00+00:00")] == [shown] * 3


@pytest.mark.parametrize(
    ("api", "form"),
    [
        ("With `catch_up` `latest`: how late", "With catch up “latest”: how late"),
        ("where `run_overlap` is `queue`", "where run overlap is “queue”"),
        ("`callbacks`; of a command `commands`", "“callbacks”; of a command “commands”"),
        ("`latest`", "latest"),
        ("is given up; null for never", "is given up; empty for never"),
        ("of the answer. A null takes it away", "of the answer. Empty: nobody is told"),
        ('numbers, `"5xx"`, `"500-504"`', "numbers, “5xx”, “500-504”"),
        ('[408, 425, "5xx"]', "408, 425, 5xx"),
        ('`[408, 425, "5xx"]`', "408, 425, 5xx"),
    ],
)
def test_a_form_names_fields_by_their_labels_and_says_no_json(api: str, form: str) -> None:
    assert form_words(api) == form
