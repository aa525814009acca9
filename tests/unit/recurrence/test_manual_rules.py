"""The manual's cookbook of rules: each fires when its row says."""

import re
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from scheduler_app.domain.calendars import Calendar, NamedDate, days_of
from scheduler_app.domain.recurrence import AnyRecurrence, Observance, OnHoliday, Recurrence
from scheduler_app.domain.triggers import TriggerContext, new_trigger

MANUAL = Path(__file__).parents[3] / "docs" / "rules.md"
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
ROW = re.compile(r"^\| ([^|]+) \| `((?:DTSTART|RRULE|FREQ)[^`]*)` \| ([^|]+) \|", re.MULTILINE)
ROWS = ROW.findall(MANUAL.read_text())
CRON = re.compile(
    r"^\| ([^|]+) \| `(?:DTSTART|RRULE|FREQ)[^`]*` \| ([^|]+) \| `([^`]+)`(?: here)? \|", re.MULTILINE
)
CRON_ROWS = CRON.findall(MANUAL.read_text())
HOLIDAYS = re.compile(r"^\| ([^|]+) \| `(skip|next|previous)` \| `(FREQ[^`]*)` \| ([^|]+) \|", re.MULTILINE)
HOLIDAY_ROWS = HOLIDAYS.findall(MANUAL.read_text())
#: The manual's own example of a calendar.
ZURICH = Calendar.of(country="CH", subdivision="ZH", dates=(NamedDate(date(2027, 1, 2), "Berchtoldstag"),))


def test_the_cookbook_is_found() -> None:
    assert len(HOLIDAY_ROWS) == 4
    assert len(ROWS) > 25
    assert len(CRON_ROWS) >= 18


@pytest.mark.parametrize(("words", "text", "written"), ROWS, ids=[row[0] for row in ROWS])
def test_a_rule_of_the_cookbook_fires_when_it_says(words: str, text: str, written: str) -> None:
    check(Recurrence.parse(text.replace("\\n", "\n"), created_at=NEW_YEAR), written)


@pytest.mark.parametrize(("words", "written", "cron"), CRON_ROWS, ids=[row[0] for row in CRON_ROWS])
def test_the_cron_expression_beside_it_fires_when_it_says(words: str, written: str, cron: str) -> None:
    check(new_trigger({"cron": cron}, TriggerContext(NEW_YEAR)).recurrence(NEW_YEAR), written)


@pytest.mark.parametrize(
    ("words", "on_holiday", "rule", "written"), HOLIDAY_ROWS, ids=[row[0] for row in HOLIDAY_ROWS]
)
def test_a_rule_with_a_calendar_fires_when_it_says(
    words: str, on_holiday: OnHoliday, rule: str, written: str
) -> None:
    recurrence = Recurrence.parse(f"DTSTART:20260101T090000\nRRULE:{rule}", created_at=NEW_YEAR)
    check(recurrence.observing(Observance("zurich", days_of(ZURICH), on_holiday)), written)


def check(recurrence: AnyRecurrence, written: str) -> None:
    at, instants = NEW_YEAR, []
    for _ in re.findall("`", written)[::2]:
        following = recurrence.after(at)
        assert following is not None
        instants.append(f"`{following:%Y-%m-%d %H:%M:%S}`")
        at = following
    assert written == ", ".join(instants)
