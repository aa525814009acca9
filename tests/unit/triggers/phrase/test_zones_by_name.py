"""Zones by the names and letters that people use: one IANA zone, or a refusal with each that may be meant."""

import re

import pytest

from scheduler_app.domain.recurrence.zones import find_zone
from scheduler_app.domain.triggers import NotUnderstood, TriggerContext
from scheduler_app.domain.triggers.phrase.translation import translate
from scheduler_app.domain.triggers.phrase.words import ZONES_BY_LETTERS, ZONES_BY_WORDS
from tests.unit.triggers.phrase.judged import SAID


@pytest.mark.parametrize(
    ("phrase", "zone"),
    [
        ("every day at 9am eastern time", "America/New_York"),
        ("every day at 9am ET", "America/New_York"),
        ("weekdays at 8:30 PT", "America/Los_Angeles"),
        ("tomorrow at noon us pacific time", "America/Los_Angeles"),
        ("every monday at 10:00 central time", "America/Chicago"),
        ("monthly on the 1st at 9:00 mountain time", "America/Denver"),
        ("every day at 9:00 central european time", "Europe/Berlin"),
        ("every friday at 17:00 UK time", "Europe/London"),
        ("every day at 9:00 JST", "Asia/Tokyo"),
        ("last day of the month at 18:00 swiss time", "Europe/Zurich"),
        ("every day at 9:00 in indian standard time", "Asia/Kolkata"),
    ],
)
def test_a_zone_is_known_by_its_common_name(phrase: str, zone: str) -> None:
    assert f"DTSTART;TZID={zone}:" in (translate(phrase, TriggerContext(SAID)).recurrence or "")


@pytest.mark.parametrize(
    ("phrase", "zones"),
    [
        ("every day at 9am EST", ["America/New_York", "Etc/GMT+5"]),
        ("tomorrow at 9am PST", ["America/Los_Angeles", "Etc/GMT+8"]),
        ("every weekday at 9:00 CET", ["Europe/Berlin", "Etc/GMT-1"]),
        ("every monday at 10:00 CST", ["America/Chicago", "Etc/GMT+6", "Asia/Shanghai"]),
        ("every day at noon IST", ["Asia/Kolkata", "Europe/Dublin", "Asia/Jerusalem"]),
        ("every day at 9:00 BST except sundays", ["Europe/London", "Etc/GMT-1", "Asia/Dhaka"]),
        ("every day at 9:00 eastern standard time", ["America/New_York", "Etc/GMT+5"]),
    ],
)
def test_letters_that_several_zones_have_are_refused_with_each(phrase: str, zones: list[str]) -> None:
    with pytest.raises(NotUnderstood, match="time zone can be read in several ways") as refused:
        translate(phrase, TriggerContext(SAID))
    named = [re.search("TZID=([^:]+):", each.recurrence or "") for each in refused.value.readings]
    assert [found and found[1] for found in named] == zones


def test_every_zone_of_the_vocabulary_exists() -> None:
    for names in (*ZONES_BY_LETTERS.values(), *ZONES_BY_WORDS.values()):
        assert [find_zone(name).name for name in names] == list(names)
