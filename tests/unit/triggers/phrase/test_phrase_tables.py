"""Phrases as people write them mean what a careful person expects, or are refused."""

import pytest

from tests.unit.triggers.phrase.expected import Row, rows
from tests.unit.triggers.phrase.judged import RIGHT, judge

TABLES = ("agreed.txt", "phrases.txt", "held_out.txt", "held_out_2.txt", "held_out_3.txt")


@pytest.mark.parametrize(
    "row", [row for table in TABLES for row in rows(table)], ids=lambda row: row.phrase or "(empty)"
)
def test_phrase_means_what_a_careful_person_expects(row: Row) -> None:
    verdict, shown = judge(row)
    assert verdict == RIGHT, shown
