"""The description of a recurrence: what it says, judged by a reader, and that no occurrence contradicts it.

`sentences.txt` holds the judged ones: zone, DTSTART, the lines of the rule, and the sentence. Sentences may
be made better; whoever changes one reads it again, as somebody who has not seen the rule.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_app.domain.recurrence import InvalidRecurrence, Recurrence
from tests.unit.recurrence.sentence_facts import contradictions
from tests.unit.recurrence.test_recurrence_properties import ZONES, rules, share, starts

CREATED = datetime(2026, 1, 10, 8, 30, 30, tzinfo=UTC)
TABLE = Path(__file__).parent / "sentences.txt"
ROWS = [
    [field.strip() for field in line.split("|")]
    for line in TABLE.read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]


def recurrence(zone: str, start: str, lines: str) -> Recurrence:
    start_line = f"DTSTART:{start}Z" if zone == "UTC" else f"DTSTART;TZID={zone}:{start}"
    text = "\n".join([start_line, *lines.split(" + ")] if lines else [start_line])
    return Recurrence.parse(text, created_at=CREATED)


def test_every_sentence_of_the_table_is_the_one_that_was_judged() -> None:
    assert len(ROWS) >= 150
    wrong = [
        (lines, found, sentence)
        for zone, start, lines, sentence in ROWS
        if (found := recurrence(zone, start, lines).description) != sentence
    ]
    assert wrong == []


def test_no_sentence_of_the_table_is_contradicted_by_the_occurrences() -> None:
    wrong = {
        sentence: problems
        for zone, start, lines, sentence in ROWS
        if (problems := contradictions(recurrence(zone, start, lines), sentence))
    }
    assert wrong == {}


@share(0.03)
@given(rules(), starts(100), st.sampled_from(ZONES), st.booleans())
def test_no_sentence_of_any_rule_is_contradicted_by_the_occurrences(
    rule: str, start: datetime, zone: str, later: bool
) -> None:
    start += timedelta(days=1461) if later else timedelta(0)
    text = f"DTSTART:{start:%Y%m%dT%H%M%S}\nRRULE:{rule}"
    try:
        found = Recurrence.parse(text, created_at=CREATED, timezone=zone)
    except InvalidRecurrence:
        return
    assert contradictions(found, found.description) == [], found.description


@pytest.mark.parametrize(
    ("rule", "wrong", "tail"),
    [
        ("WEEKLY;BYDAY=MO,FR", "Every Monday at 09:30", ""),
        ("WEEKLY;BYDAY=MO", "Every Monday and Friday at 09:30", ""),
        ("WEEKLY;BYDAY=MO", "Every day at 09:30", ""),
        ("WEEKLY;BYDAY=MO", "Every Monday at 09:00", ""),
        (
            "WEEKLY;INTERVAL=2",
            "Every second week on Monday at 09:30",
            ", counted from the week of 12 January 2026",
        ),
        ("DAILY;INTERVAL=3", "Every 3 days at 09:30", ", counted from 6 January 2026"),
        ("MONTHLY;BYMONTHDAY=15", "Every month on the 16th at 09:30", ""),
        ("MONTHLY;BYMONTHDAY=-1", "Every month on the second-to-last day at 09:30", ""),
        ("MONTHLY;BYDAY=-3FR", "Every month on the second Friday at 09:30", ""),
        (
            "MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
            "Every month on the first weekday (Monday to Friday) at 09:30",
            "",
        ),
        ("MONTHLY;INTERVAL=2", "Every second month on the 5th at 09:30", ", counted from February 2026"),
        ("YEARLY;BYMONTH=12;BYMONTHDAY=25", "Every year on 26 December at 09:30", ""),
        ("HOURLY", "Every hour at minute 31", ""),
        ("HOURLY;INTERVAL=5", "Every 5 hours", ", counted from 5 January 2026 at 10:30"),
        (
            "HOURLY;INTERVAL=5;BYMINUTE=0",
            "Every 5 hours, on the hour",
            ", counted from 5 January 2026 at 10:00",
        ),
        ("HOURLY;BYMINUTE=0;BYHOUR=9,10,11,12,13,14", "Every hour between 09:00 and 13:00, every day", ""),
        ("DAILY;COUNT=3", "Every day at 09:30", ", 4 times"),
        ("DAILY;COUNT=3", "Every day at 09:30", ""),
        ("DAILY;UNTIL=20260301T093000Z", "Every day at 09:30", ", until 28 February 2026 at 09:30"),
        ("DAILY", "Every day at 09:30", ", from 6 January 2026 on"),
    ],
)
def test_a_wrong_sentence_is_found_out(rule: str, wrong: str, tail: str) -> None:
    assert contradictions(recurrence("UTC", "20260105T093000", f"RRULE:FREQ={rule}"), f"{wrong} (UTC){tail}")
