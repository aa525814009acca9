"""The manual's cookbook of rules: each fires when its row says."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scheduler_app.domain.recurrence import AnyRecurrence, Recurrence
from scheduler_app.domain.triggers import TriggerContext, new_trigger

MANUAL = Path(__file__).parents[3] / "docs" / "rules.md"
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
ROW = re.compile(r"^\| ([^|]+) \| `((?:DTSTART|RRULE|FREQ)[^`]*)` \| ([^|]+) \|", re.MULTILINE)
ROWS = ROW.findall(MANUAL.read_text())
CRON = re.compile(
    r"^\| ([^|]+) \| `(?:DTSTART|RRULE|FREQ)[^`]*` \| ([^|]+) \| `([^`]+)`(?: here)? \|", re.MULTILINE
)
CRON_ROWS = CRON.findall(MANUAL.read_text())


def test_the_cookbook_is_found() -> None:
    assert len(ROWS) > 25
    assert len(CRON_ROWS) >= 18


@pytest.mark.parametrize(("words", "text", "written"), ROWS, ids=[row[0] for row in ROWS])
def test_a_rule_of_the_cookbook_fires_when_it_says(words: str, text: str, written: str) -> None:
    check(Recurrence.parse(text.replace("\\n", "\n"), created_at=NEW_YEAR), written)


@pytest.mark.parametrize(("words", "written", "cron"), CRON_ROWS, ids=[row[0] for row in CRON_ROWS])
def test_the_cron_expression_beside_it_fires_when_it_says(words: str, written: str, cron: str) -> None:
    check(new_trigger({"cron": cron}, TriggerContext(NEW_YEAR)).recurrence(NEW_YEAR), written)


def check(recurrence: AnyRecurrence, written: str) -> None:
    at, instants = NEW_YEAR, []
    for _ in re.findall("`", written)[::2]:
        following = recurrence.after(at)
        assert following is not None
        instants.append(f"`{following:%Y-%m-%d %H:%M:%S}`")
        at = following
    assert written == ", ".join(instants)
