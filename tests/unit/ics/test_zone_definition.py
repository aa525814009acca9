"""The zone definitions that we write say what the zones do, to a reader who knows no zone by its name."""

from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from dateutil.tz import tzical

from scheduler_app.domain.recurrence.standard_rule import StandardRule
from scheduler_app.domain.recurrence.timeline import floor_second
from scheduler_app.domain.recurrence.zones import find_zone
from scheduler_app.ics import CalendarEntry, write_calendar
from scheduler_app.ics.writing import zone_definition

NOW = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Asia/Tokyo")


@pytest.mark.parametrize("name", [*ZONES, "Africa/Casablanca", "America/Santiago", "Europe/Dublin"])
def test_offsets_are_those_of_the_zone_for_decades(name: str) -> None:
    rule = StandardRule(NOW.replace(tzinfo=None), name, "FREQ=DAILY")
    text = write_calendar("x", [(CalendarEntry("u", "n", NOW), rule)], [], now=NOW).decode()
    zone, read = find_zone(name), tzical(StringIO(text)).get(name)
    for day in range(0, 366 * 38, 13):
        noon = NOW.replace(hour=12) + timedelta(days=day)
        expected = zone.offset(floor_second(noon))
        assert noon.replace(tzinfo=read).utcoffset() == timedelta(seconds=expected), noon


@pytest.mark.parametrize("name", ZONES)
def test_yearly_changes_are_written_as_rules(name: str) -> None:
    assert len(zone_definition(name, NOW)) < 40


def test_every_zone_has_a_bounded_definition() -> None:
    from scheduler_app.domain.recurrence.zones import zone_names

    for name in list(zone_names())[::7]:
        assert len(zone_definition(name, NOW)) < 900, name
