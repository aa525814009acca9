"""The calendar of schedules is read the same by two libraries that know nothing of ours: ical.js, which
Thunderbird grew up with, and recurring-ical-events."""

import json
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import icalendar
import pytest
import recurring_ical_events
from flask.testing import FlaskClient

from tests.integration.api.conftest import ToldTime
from tests.unit.recurrence.everyday_sets import everyday_set

ROOT = Path(__file__).parents[3]
NODE_MODULES = ROOT / ".venv" / "node" / "node_modules"
NOW = datetime(2027, 1, 15, 10, 20, 30, tzinfo=UTC)
END = NOW + timedelta(days=366)
MOST = 100
"""Instants of one schedule that are compared: as many as a feed shows at most."""
OFTEN = 40
"""As many are shown of each schedule, however many there are."""
#: What programs read in different ways when it is a rule.
HARD: list[dict[str, Any]] = [
    {"rrule": "FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0", "timezone": "Europe/Zurich"},
    {"rrule": "FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0", "timezone": "Europe/Zurich", "gap": "skip"},
    {"rrule": "FREQ=WEEKLY;BYDAY=SU;BYHOUR=1;BYMINUTE=30", "timezone": "America/New_York", "overlap": "last"},
    {"rrule": "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=2;BYHOUR=9", "timezone": "Europe/Zurich"},
    {"rrule": "RSCALE=GREGORIAN;FREQ=MONTHLY;BYMONTHDAY=31;SKIP=BACKWARD"},
    {"rrule": "DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY\nEXRULE:FREQ=WEEKLY;BYDAY=SA,SU"},
    {"rrule": "RRULE:FREQ=DAILY;BYHOUR=9\nRRULE:FREQ=WEEKLY;BYDAY=MO;BYHOUR=17", "timezone": "Asia/Tokyo"},
    {"rrule": "FREQ=HOURLY;INTERVAL=7", "timezone": "America/Santiago"},
    {"rrule": "RDATE:20270301T090000,20270315T090000", "timezone": "Europe/Zurich"},
    {"phrase": "last business day of the month at 17:00", "calendar": "closed", "timezone": "Europe/Zurich"},
    {"phrase": "third business day of the month at 9:00", "calendar": "closed", "timezone": "Europe/Zurich"},
    {"rrule": "FREQ=DAILY;BYHOUR=9;BYMINUTE=0", "calendar": "closed", "on_holiday": "skip"},
    {"cron": "*/20 1-3 * * *", "timezone": "Europe/London"},
    {"run_at": "2027-03-28T02:30:00", "timezone": "Europe/Zurich"},
    {"every_seconds": 86_399},
]
#: What is one rule.
EASY: list[dict[str, Any]] = [
    {"rrule": "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE;BYHOUR=9;BYMINUTE=0", "timezone": "Europe/Zurich"},
    {"rrule": "FREQ=MONTHLY;BYDAY=-1FR;UNTIL=20280301T000000Z;BYHOUR=18", "timezone": "America/New_York"},
    {"cron": "30 6 * * 1-5", "timezone": "Australia/Lord_Howe"},
    {"phrase": "every day at 9:00, 20 times", "timezone": "Asia/Tokyo"},
]


def everyday(random: Random) -> dict[str, Any]:
    """A schedule as people write them, often without the exceptions that keep it from being one rule."""
    text, zone = everyday_set(random)
    if random.random() < 0.7:
        text = "\n".join([line for line in text.split("\n") if not line.startswith("EX")][:2])
    choices = {
        "gap": random.choice(["shift"] * 5 + ["skip"]),
        "overlap": random.choice(["first"] * 5 + ["last"]),
    }
    return {"rrule": text, "timezone": zone, **choices}


def created(client: FlaskClient, wanted: list[dict[str, Any]]) -> list[str]:
    """The ids of those that fire in the year that is looked at."""
    rest = {"callback_url": "http://127.0.0.1:9/", "name": "test"}
    rows = [{"id": f"s{number}", **rest, **one} for number, one in enumerate(wanted)]
    answer = client.post("/api/schedules/bulk", json={"schedules": rows})
    results = answer.get_json()["results"]
    refused = [each["problem"]["detail"] for each in results if each["status"] != 201]
    assert all("can never fire" in detail for detail in refused), refused
    return [each["id"] for each in results if each.get("next_run_at")]


def own_answers(client: FlaskClient, ids: list[str]) -> dict[str, list[datetime]]:
    query = {"after": (NOW - timedelta(seconds=1)).isoformat(), "until": END.isoformat(), "limit": MOST}
    found = {}
    for schedule_id in ids:
        shown = client.get(f"/api/schedules/{schedule_id}/preview", query_string=query).get_json()
        times = [datetime.fromisoformat(each["run_time"]) for each in shown["occurrences"]]
        if times:
            found[schedule_id] = times
    return found


def read_by_ical_js(file: Path) -> dict[str, list[datetime]]:
    node = shutil.which("node")
    assert node is not None, "node is missing: run `make packages` as root"
    assert NODE_MODULES.is_dir(), "ical.js is missing: run `make .venv/node/installed`"
    script = ROOT / "tests" / "node" / "read.cjs"
    command = [node, str(script), str(NODE_MODULES.parent), str(file), END.isoformat(), str(MOST)]
    answer = subprocess.run(command, check=True, capture_output=True, timeout=300)
    found: defaultdict[str, list[datetime]] = defaultdict(list)
    for uid, times in json.loads(answer.stdout).items():
        found[schedule_of(uid)] += [datetime.fromisoformat(each) for each in times]
    return found


def read_by_recurring_ical_events(
    content: bytes, wanted: Mapping[str, list[datetime]]
) -> dict[str, list[datetime]]:
    """Each schedule up to its last instant that is compared: the library walks rules step by step."""
    calendar = icalendar.Calendar.from_ical(content)
    zones = [each for each in calendar.subcomponents if each.name == "VTIMEZONE"]
    events = defaultdict(list)
    for each in calendar.walk("VEVENT"):
        events[schedule_of(str(each["UID"]))].append(each)
    found = {}
    for schedule_id, times in wanted.items():
        alone = icalendar.Calendar()
        alone.subcomponents = [*zones, *events[schedule_id]]
        between = recurring_ical_events.of(alone).between(NOW, times[-1] + timedelta(seconds=1))
        found[schedule_id] = [each["DTSTART"].dt.astimezone(UTC) for each in between]
    return found


def schedule_of(uid: str) -> str:
    """Instants that are no rule are events of their own, whose UID goes on with the instant."""
    return uid.partition("-")[0]


@pytest.mark.parametrize(
    "everyday_ones", [pytest.param(7, id="26"), pytest.param(182, id="200", marks=pytest.mark.long)]
)
def test_two_libraries_read_the_calendar_of_schedules_as_they_fire(
    client: FlaskClient, time: ToldTime, tmp_path: Path, everyday_ones: int
) -> None:
    time.at = NOW
    closed = {"country": "CH", "dates": [{"date": "2027-02-26"}]}
    assert client.put("/api/calendars/closed", json=closed).status_code == 201
    random = Random(7)
    wanted = own_answers(
        client, created(client, EASY + HARD + [everyday(random) for _ in range(everyday_ones)])
    )
    assert len(wanted) > (everyday_ones + len(EASY) + len(HARD)) * 0.7
    content = client.get("/api/calendar.ics").data
    (file := tmp_path / "calendar.ics").write_bytes(content)
    assert content.count(b"RRULE:") > everyday_ones * 0.3
    for name, read in (
        ("ical.js", read_by_ical_js(file)),
        ("recurring-ical-events", read_by_recurring_ical_events(content, wanted)),
    ):
        for schedule_id, times in wanted.items():
            shown = sorted(read[schedule_id])[:MOST]
            assert shown == times[: len(shown)], f"{name} reads {schedule_id} as {shown[:3]}, not {times[:3]}"
            assert len(shown) >= min(len(times), OFTEN), f"{name} reads only {len(shown)} of {schedule_id}"
