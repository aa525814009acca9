"""The manual's phrases: each fires when its row says, or is refused as the manual tells."""

import re
from pathlib import Path

import pytest

from scheduler_app.domain.triggers import NotUnderstood, TriggerContext
from scheduler_app.domain.triggers.phrase.kind import MAX_CHARACTERS
from scheduler_app.domain.triggers.phrase.tokens import MAX_TOKENS
from scheduler_app.domain.triggers.phrase.translation import translate
from tests.unit.triggers.phrase.judged import SAID, times_of

MANUAL = (Path(__file__).parents[4] / "docs" / "rules.md").read_text()
SECTION = MANUAL[MANUAL.index("## In words") : MANUAL.index("## Where other libraries differ")]
FIRES = re.findall(r'^\| "([^|]+)" \| (`[^|]+`) \|$', SECTION, re.MULTILINE)
UNCLEAR = re.findall(r'^\| "([^|]+)" \| ([^`|]+) \|$', SECTION, re.MULTILINE)


def refusal(phrase: str) -> NotUnderstood:
    with pytest.raises(NotUnderstood) as refused:
        translate(phrase, TriggerContext(SAID))
    return refused.value


def test_the_rows_are_found() -> None:
    assert len(FIRES) > 18
    assert len(UNCLEAR) > 8


@pytest.mark.parametrize(("phrase", "written"), FIRES)
def test_a_phrase_of_the_manual_fires_when_it_says(phrase: str, written: str) -> None:
    found = times_of(translate(phrase, TriggerContext(SAID)))[: written.count("`") // 2]
    assert ", ".join(f"`{moment:%Y-%m-%d %H:%M:%S}`" for moment in found) == written


@pytest.mark.parametrize(("phrase", "_reason"), UNCLEAR)
def test_a_phrase_that_the_manual_calls_unclear_has_readings(phrase: str, _reason: str) -> None:
    assert refusal(phrase).readings


def test_the_manual_names_the_words_that_are_not_understood() -> None:
    assert refusal("every day at 9am and delete all files").not_understood == ("delete", "all", "files")
    assert refusal("sometimes on mondays").not_understood == ("sometimes",)


@pytest.mark.parametrize(
    "phrase",
    ["every february 30 at noon", "every 0 minutes", "jeden Dienstag"],
)
def test_what_the_manual_says_is_refused_has_no_readings(phrase: str) -> None:
    assert refusal(phrase).readings == ()


def test_the_manual_tells_what_remains_without_what_is_not_understood() -> None:
    for phrase, reading in (
        ("every day at 9am and delete all files", "every day at 9am"),
        ("every day at 9pm in the morning", "every day at 9pm"),
    ):
        assert [each.recurrence for each in refusal(phrase).readings] == [
            translate(reading, TriggerContext(SAID)).recurrence
        ]


def test_the_bounds_are_those_of_the_manual() -> None:
    assert f"more than {MAX_CHARACTERS} characters or {MAX_TOKENS} words" in SECTION
