"""Phrases as people write them mean what a careful person expects, or are refused."""

import pytest

from scheduler_app.domain.triggers import TriggerContext
from scheduler_app.domain.triggers.phrase.translation import translate
from tests.unit.triggers.phrase.expected import Row, rows
from tests.unit.triggers.phrase.judged import RIGHT, SAID, judge

TABLES = ("agreed.txt", "phrases.txt", *(f"held_out{number}.txt" for number in ("", "_2", "_3", "_4", "_5")))


@pytest.mark.parametrize(
    "row", [row for table in TABLES for row in rows(table)], ids=lambda row: row.phrase or "(empty)"
)
def test_phrase_means_what_a_careful_person_expects(row: Row) -> None:
    verdict, shown = judge(row)
    assert verdict == RIGHT, shown


def test_midnight_that_nobody_named_is_warned_of() -> None:
    (warning,) = translate("every monday", TriggerContext(SAID)).warnings
    assert "00:00" in warning
    assert translate("every monday at midnight", TriggerContext(SAID)).warnings == ()
