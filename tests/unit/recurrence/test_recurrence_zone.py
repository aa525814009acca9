"""The table of offsets against `zoneinfo`, which reads the same data its own way."""

from datetime import UTC, datetime, timedelta
from importlib import metadata, resources
from random import Random

import pytest

from scheduler_app.domain.recurrence import zone_data_version
from scheduler_app.domain.recurrence.timeline import floor_second, local_second, to_datetime
from scheduler_app.domain.recurrence.zones import UnknownZone, find_zone, posix_tz_transitions
from tests.unit.recurrence.rrule_walker import zone_info

NAMES = resources.files("tzdata").joinpath("zones").read_text(encoding="ascii").split()
EDGE = timedelta(days=2)
FIRST, LAST = datetime(1, 1, 1, tzinfo=UTC) + EDGE, datetime(9999, 12, 31, tzinfo=UTC) - EDGE


def test_every_zone_agrees_with_zoneinfo_at_its_changes_and_at_random() -> None:
    random = Random(2026)
    for name in NAMES:
        zone, info = find_zone(name), zone_info(name)
        marks = [
            start + shift
            for start in random.sample(zone.starts, min(12, len(zone.starts)))
            for shift in (-1, 0)
        ]
        marks += [floor_second(FIRST), floor_second(LAST)]
        marks += [
            random.randint(floor_second(datetime(1850, 1, 1, tzinfo=UTC)), floor_second(LAST))
            for _ in range(12)
        ]
        for mark in marks:
            instant = to_datetime(mark)
            offset = instant.astimezone(info).utcoffset()
            assert offset is not None
            assert zone.offset(mark) == offset.total_seconds(), (name, instant)
            start, end, in_force = zone.segment(mark)
            assert start <= mark < end
            assert in_force == zone.offset(mark)


@pytest.mark.parametrize(
    "name", ["America/New_York", "Australia/Lord_Howe", "Europe/Dublin", "Pacific/Apia", "UTC"]
)
def test_every_local_time_around_a_change_is_read_as_pep_495_says(name: str) -> None:
    zone, info = find_zone(name), zone_info(name)
    begin = datetime(2011, 12, 25) if name == "Pacific/Apia" else datetime(2026, 1, 1)  # noqa: DTZ001
    for quarter in range(4 * 24 * (12 if name == "Pacific/Apia" else 365)):
        local = begin + timedelta(minutes=15 * quarter)
        early, late = (local.replace(tzinfo=info, fold=fold).astimezone(UTC) for fold in (0, 1))
        reading = zone.read(local_second(local))
        assert (to_datetime(reading.early), to_datetime(reading.late)) == (early, late)
        exists = early.astimezone(info).replace(tzinfo=None) == local
        assert reading.kind == ("gap" if not exists else "overlap" if early != late else "")


def test_a_footer_may_name_days_of_the_year_with_or_without_the_leap_day() -> None:
    begin = floor_second(datetime(2023, 6, 1, tzinfo=UTC))
    found = [
        (to_datetime(second).strftime("%Y-%m-%d %H:%M"), offset)
        for second, offset in posix_tz_transitions("AAA3BBB,J60/0,300/-1:30", begin)[:4]
    ]
    assert found == [
        ("2023-10-28 00:30", -10_800),  # day 300 counted from zero, an hour and a half before its midnight
        ("2024-03-01 03:00", -7_200),  # J60 is 1 March in every year
        ("2024-10-27 00:30", -10_800),
        ("2025-03-01 03:00", -7_200),
    ]


def test_the_version_of_the_zone_data_is_that_of_the_package() -> None:
    version = zone_data_version()
    year, letter = version[:4], version[4:]
    assert metadata.version("tzdata") == f"{year}.{ord(letter) - ord('a') + 1}"


def test_a_zone_is_found_in_any_case_and_never_outside_of_the_data() -> None:
    assert find_zone("europe/PARIS").name == "Europe/Paris"
    for wrong in ("", "Europe", "../zones", "/etc/localtime", "posixrules", "EST5EDT4"):
        with pytest.raises(UnknownZone):
            find_zone(wrong)
