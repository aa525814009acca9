"""What a cron expression becomes, in rules and in words."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from scheduler_app.domain.triggers import Trigger, TriggerContext, new_trigger

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = [
    tuple(field.strip() for field in line.split(" | "))
    for line in (Path(__file__).parent / "crons.txt").read_text().splitlines()
    if not line.startswith("#")
]


def trigger(cron: str, timezone: str = "UTC", gap: str = "shift") -> Trigger:
    return new_trigger({"cron": cron}, TriggerContext(CREATED, timezone, gap=gap))  # type: ignore[arg-type]


@pytest.mark.parametrize(("cron", "rules", "words"), ROWS, ids=[row[0] for row in ROWS])
def test_an_expression_becomes_rules_and_words(cron: str, rules: str, words: str) -> None:
    found = trigger(cron)
    assert found.pinned is not None
    assert found.pinned.replace("RRULE:", "").split("\n")[1:] == rules.split(" + ")
    recurrence = found.recurrence(CREATED)
    assert recurrence.description == f"{words} (UTC)"


@pytest.mark.parametrize("zone", ["Australia/Lord_Howe", "America/New_York", "Asia/Kathmandu"])
def test_a_zone_that_moves_by_half_an_hour_has_the_same_words(zone: str) -> None:
    for cron, words in (
        ("*/5 * * * *", "Every 5 minutes, starting on the hour"),
        ("@hourly", "Every hour, on the hour"),
    ):
        assert trigger(cron, zone).recurrence(CREATED).description == f"{words} ({zone})"


def test_the_nearest_weekday_is_three_rules_and_more_at_the_edges_of_months() -> None:
    counts = [len((trigger(f"0 9 {day}W * *").pinned or "").split("\n")) - 1 for day in range(1, 32)]
    assert counts == [1] + [3] * 26 + [4, 5, 4, 2]


def test_where_gaps_are_skipped_the_last_weekday_is_not_picked_by_position() -> None:
    """BYSETPOS=-1 would fall back to the day before when the time is missing on the last one."""
    apia = "Pacific/Apia"  # has no Friday 30 December 2011, the last weekday of its month
    created = datetime(2011, 12, 1, tzinfo=UTC)
    context = TriggerContext(created, apia, gap="skip")
    recurrence = new_trigger({"cron": "0 9 LW 12 *"}, context).recurrence(created)
    following = recurrence.after(created)
    assert following is not None
    assert following.year == 2012


WARNINGS = [
    ("*/7 * * * *", "its last step takes 4 minutes; every_seconds=420 repeats evenly"),
    ("*/90 * * * *", "fires once, at minute 0; every_seconds=5400 repeats evenly"),
    ("0 */5 * * *", "its last step takes 4 hours; every_seconds=18000"),
    ("0 9 */2 * *", "*/2 in the days of the month begins anew on each 1st"),
    ("0 9 13 * 5", "each day that satisfies one of the two day fields"),
    ("0 9 ? * 2-6", "Quartz counts Sunday as 1"),
]
QUIET = [
    "*/15 * * * *",
    "0 */6 * * *",
    "0 9 * * 1-5",
    "0 9 13 * *",
    "0 9 ? * MON-FRI",
    "0 9 13 * 0-7",
    "@daily",
]


@pytest.mark.parametrize(("cron", "words"), WARNINGS)
def test_what_surprises_people_about_cron_is_warned_of(cron: str, words: str) -> None:
    assert any(words in warning for warning in trigger(cron).warnings)


@pytest.mark.parametrize("cron", QUIET)
def test_what_means_what_it_says_has_no_warning(cron: str) -> None:
    found = trigger(cron)
    assert (found.warnings, found.recurrence(CREATED).warnings) == ((), ())


LOST = "does not fire on 8 March 2026, when clocks skip 02:00 to 03:00; list its minutes and hours without *"


@pytest.mark.parametrize("cron", ["*/30 2 * * *", "0 2/22,2 * * *", "* 2 8 3 *", "*/5 2 * * 7"])
def test_a_day_on_which_the_clock_leaves_out_every_time_is_warned_of(cron: str) -> None:
    expected = cron.startswith("*")  # the other has fixed times
    assert any(LOST in warning for warning in trigger(cron, "America/New_York").warnings) is expected


@pytest.mark.parametrize(
    "cron", ["*/30 2 * * 1-5", "*/30 1-3 * * *", "*/30 2 9 3 *", "* * * * *", "0 */2 * * *"]
)
def test_a_clock_change_that_takes_no_whole_day_away_is_not_warned_of(cron: str) -> None:
    assert trigger(cron, "America/New_York").warnings == ()
    assert trigger(cron, "UTC").warnings == ()
