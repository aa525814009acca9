"""What cron expressions fire at clock changes, beside what Vixie's cron does: the table of the manual."""

import re
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from scheduler_app.domain.triggers import TriggerContext, new_trigger

MANUAL = Path(__file__).parents[4] / "docs" / "rules.md"
ROW = re.compile(
    r"^\| (\w+/\w+), (\d+ \w+ \d{4}) \| `([^`]+)` \| ([^|]+) \| ([^|]+) \|$",
    re.MULTILINE,
)
ROWS = ROW.findall(MANUAL.read_text())
# What cronsim does otherwise than cron itself at a change.
NOT_CRON = {
    # cron(8) takes a change of more than three hours for a correction of the clock: nothing is made up for.
    ("Pacific/Apia", "0 9 * * *"),
    ("Pacific/Apia", "0 9 30 * *"),
    # A job that follows the clock runs again when the clock shows its minute again; cronsim jumps over it.
    ("Australia/Lord_Howe", "45 * * * *"),
}


def times(cell: str) -> list[str]:
    """`01:00, 01:30, 03:00 (+11:00)` as single times; "none" is none."""
    return [] if cell.strip() == "none" else [time.strip() for time in cell.split(",")]


def shown(instants: list[datetime], zone: ZoneInfo) -> list[str]:
    local = [instant.astimezone(zone) for instant in instants]
    return [f"{moment:%H:%M}" + ("" if moment.fold == 0 else " again") for moment in local]


def window(day: str, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """From midnight to four o'clock of the change; of Apia's, the day that was left out and the next."""
    start = datetime.strptime(day, "%d %B %Y").replace(tzinfo=zone)
    hours = 24 if zone.key == "Pacific/Apia" else 4
    return start.astimezone(UTC), (start + timedelta(hours=hours)).astimezone(UTC)


@pytest.mark.parametrize(("name", "day", "cron", "ours", "theirs"), ROWS)
def test_a_row_of_the_manual_fires_as_it_says(name: str, day: str, cron: str, ours: str, theirs: str) -> None:
    zone = ZoneInfo(name)
    start, end = window(day, zone)
    created = start - timedelta(days=2)
    recurrence = new_trigger({"cron": cron}, TriggerContext(created, name)).recurrence(created)
    assert shown(recurrence.between(start, end), zone) == times(ours)
    if (name, cron) not in NOT_CRON:
        found = CronSim(cron, (start - timedelta(seconds=1)).astimezone(zone))
        assert shown(list(takewhile(lambda at: at.astimezone(UTC) < end, found)), zone) == times(theirs)


def test_the_table_has_all_three_zones() -> None:
    assert {row[0] for row in ROWS} == {"America/New_York", "Australia/Lord_Howe", "Pacific/Apia"}
    assert len(ROWS) >= 15


@pytest.mark.parametrize(
    ("cron", "gap", "overlap", "expected"),
    [
        ("30 2 * * *", "skip", "first", []),
        ("30 2 * * *", "shift", "first", ["07:30"]),
        ("*/30 2 * * *", "shift", "first", []),
        ("30 1 * * *", "shift", "first", ["05:30"]),
        ("30 1 * * *", "shift", "last", ["06:30"]),
        ("*/30 1 * * *", "shift", "last", ["05:00", "05:30", "06:00", "06:30"]),
    ],
)
def test_gap_and_overlap_choose_for_fixed_times_only(
    cron: str, gap: str, overlap: str, expected: list[str]
) -> None:
    """In UTC, on the days on which New York's clocks change."""
    day = datetime(2026, 3, 8, 4, tzinfo=UTC) if " 2 " in cron else datetime(2026, 11, 1, 4, tzinfo=UTC)
    created = day - timedelta(days=3)
    context = TriggerContext(created, "America/New_York", gap=gap, overlap=overlap)  # type: ignore[arg-type]
    found = new_trigger({"cron": cron}, context).recurrence(created)
    assert [f"{at:%H:%M}" for at in found.between(day, day + timedelta(hours=5))] == expected
