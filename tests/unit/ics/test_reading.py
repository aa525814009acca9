"""Calendars of many programs are read as a careful person reads them, within bounds."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.recurrence.timeline import StepBudget
from scheduler_app.ics import MAX_ITEMS, CalendarItem, Series, TooLarge, read_items
from scheduler_app.ics.calendar_file import MAX_CHARACTERS, MAX_DEPTH, MAX_LINES
from tests.unit.ics.calendars import CALENDARS, NOW, Expected, event, file

END = datetime(2060, 1, 1, tzinfo=UTC)


def read(text: str) -> list[CalendarItem]:
    return read_items(text, timezone="Europe/Zurich", now=NOW)


def coming(item: CalendarItem, count: int) -> list[datetime]:
    """The first coming occurrences of all of its series."""
    found = {
        each
        for series in item.series
        for each in Recurrence.parse(series.recurrence, created_at=NOW).between(
            NOW + timedelta(seconds=1), END, count
        )
    }
    return sorted(found)[:count]


def _parts(series: Series) -> set[str]:
    return {part.partition("=")[0] for part in series.recurrence.replace(":", ";").split(";")}


def check(item: CalendarItem, expected: Expected) -> None:
    assert item.outcome == expected.outcome, item
    if expected.times:
        wanted = [datetime.fromisoformat(each).replace(tzinfo=UTC) for each in expected.times]
        endless = (
            "FREQ=" in each.recurrence and not {"COUNT", "UNTIL"} & _parts(each) for each in item.series
        )
        finite = not any(endless)
        assert coming(item, len(wanted) + finite) == wanted
    said = " | ".join((*item.ignored, *item.notes, item.reason or ""))
    for words in expected.says:
        assert words in said


def test_there_are_forty_calendars() -> None:
    assert len(CALENDARS) >= 40


@pytest.mark.parametrize("name", CALENDARS)
def test_a_calendar_is_read_as_a_careful_person_reads_it(name: str) -> None:
    text, expected = CALENDARS[name]
    found = read(text)
    assert len(found) == len(expected)
    for item, each in zip(found, expected, strict=True):
        check(item, each)


def test_a_second_since_1970_costs_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0
    spend, found = StepBudget.spend, StepBudget.found

    def counted_spend(self: StepBudget, count: int = 1) -> None:
        nonlocal steps
        steps += count
        spend(self, count)

    def counted_found(self: StepBudget) -> None:
        nonlocal steps
        steps += 1
        found(self)

    monkeypatch.setattr(StepBudget, "spend", counted_spend)
    monkeypatch.setattr(StepBudget, "found", counted_found)
    (item,) = read(file(event("DTSTART:19700101T000000Z\nRRULE:FREQ=SECONDLY")))
    assert item.outcome == "schedules"
    assert 0 < steps < 1_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("hello", "must begin with BEGIN:VCALENDAR"),
        ("BEGIN:VEVENT\nEND:VEVENT\n", "where BEGIN:VCALENDAR is expected"),
        ("BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR\n", "where END:VEVENT is expected"),
        ("BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\n", "the file is cut off"),
        ("BEGIN:VCALENDAR\nBEGIN:VCALENDAR\n", "where an event, a to-do or a time zone is expected"),
        ("BEGIN:VCALENDAR\nBEGIN:\n", "without a proper name"),
        ("BEGIN:VCALENDAR\n" + "BEGIN:X\n" * (MAX_DEPTH + 1), "deep"),
    ],
)
def test_a_file_that_is_no_calendar_is_refused_with_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(InvalidField) as refused:
        read(text)
    assert refused.value.field == "ics"
    assert words in refused.value.message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" " * (MAX_CHARACTERS + 1), "characters"),
        ("\n" * (MAX_LINES + 1), "lines"),
        ("\r" * (MAX_LINES + 1), "lines"),
        (file(*(event("DTSTART:20270101T000000Z", uid=str(n)) for n in range(MAX_ITEMS + 1))), "events"),
        (file("BEGIN:X\nEND:X\n" * (MAX_ITEMS + 1)), "events"),
    ],
)
def test_what_is_too_large_is_refused(text: str, words: str) -> None:
    with pytest.raises(TooLarge) as refused:
        read(text)
    assert words in refused.value.message
    assert "split it" in refused.value.message


def test_too_many_changes_of_one_series_harm_only_it() -> None:
    changed = [
        event(f"RECURRENCE-ID;RANGE=THISANDFUTURE:202712{day:02}T080000Z\nDTSTART:202712{day:02}T090000Z")
        for day in range(1, 25)
    ]
    found = read(
        file(
            event("DTSTART:20271101T080000Z\nRRULE:FREQ=DAILY"),
            *changed,
            event("DTSTART:20271101T080000Z", uid="2"),
        )
    )
    assert [each.outcome for each in found] == ["refused", "schedules"]


def test_what_is_shown_of_an_item_is_one_short_line() -> None:
    (item,) = read(file(event("DTSTART:20271101T080000Z").replace("Thing 1", "a\\nb\u202ec" + "x" * 500)))
    assert item.name.startswith("a b c")
    assert len(item.name) == 200


def test_a_name_that_is_not_read_is_bounded() -> None:
    names = "\n".join(f"X-{'N' * 100}-{number}:1" for number in range(200))
    (item,) = read(file(event(f"DTSTART:20271101T080000Z\n{names}")))
    assert max(map(len, item.ignored)) <= 64
    assert len(item.ignored) <= 50
