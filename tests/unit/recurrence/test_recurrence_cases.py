"""The table of cases: `cases/*.txt`, one occurrence list a row.

Its expectations were computed once by `rrule_walker`, which reads RFC 5545 one day after the other and knows
nothing of the evaluator; the last test holds the table against it again. Instants that lie ahead hold for the
IANA data of 2026.
"""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from scheduler_app.domain.recurrence import Recurrence
from tests.unit.recurrence.rrule_walker import walk

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = [
    [field.strip() for field in line.split("|")]
    for file in sorted(Path(__file__).parent.joinpath("cases").glob("*.txt"))
    for line in file.read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]


def instants(text: str) -> list[datetime]:
    return [datetime.strptime(value, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC) for value in text.split()]


def test_the_table_is_large_and_its_ids_are_unique() -> None:
    assert len(ROWS) >= 600
    assert len({row[0] for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_case_gives_the_occurrences_of_the_table(row: list[str]) -> None:
    _, zone, choices, start, rule, listed = row
    gap, overlap = choices.split(",")
    recurrence = Recurrence.parse(
        f"DTSTART:{start}\nRRULE:{rule}", created_at=CREATED, timezone=zone, gap=gap, overlap=overlap
    )
    expected = instants(listed)
    begin = expected[0] - timedelta(days=400)
    assert recurrence.between(begin, expected[-1] + timedelta(seconds=1)) == expected
    for earlier, later in pairwise(expected):
        assert recurrence.after(earlier) == later


def test_the_slow_walker_agrees_with_the_table() -> None:
    for _, zone, choices, start, rule, listed in ROWS[::3]:
        gap, overlap = choices.split(",")
        expected = instants(listed)
        naive = datetime.strptime(start, "%Y%m%dT%H%M%S")  # noqa: DTZ007 (a wall clock)
        if expected[-1] - naive.replace(tzinfo=UTC) < timedelta(days=4000):
            stop = expected[-1] + timedelta(seconds=1)
            assert walk(rule, naive, zone, stop, gap=gap, overlap=overlap) == expected, rule
