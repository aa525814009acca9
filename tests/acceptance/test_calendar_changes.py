"""A calendar that ten thousand schedules observe changes, twice, while callbacks go on."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import requests
from pymongo import MongoClient

from tests.acceptance.journal import Journal
from tests.acceptance.stack import Stack
from tests.processes import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

MINUTE = timedelta(minutes=1)
FAR, STAYING, MOVING = 9_000, 500, 500
#: At no time the two have the same date, not even when the test passes midnight in one of them.
CLOSING, OPEN = "Pacific/Kiritimati", "Etc/GMT+12"
A_REQUEST = 500
REMADE_SECONDS = 60
LATE_SECONDS = 6.0
#: Events are dispatched 5 s ahead, and a page takes a moment from its reading to its cut.
CLAIMED_AHEAD = timedelta(seconds=8)
Document = dict[str, Any]


def put_calendar(stack: Stack, *closed: Any) -> None:
    dates = [{"date": f"{day:%Y-%m-%d}", "name": "Closed"} for day in closed]
    dates.append({"date": "2099-01-01", "name": "Some day"})
    answer = requests.put(f"{stack.url}/api/calendars/shared", json={"dates": dates, "weekend": []})
    assert answer.status_code in (200, 201), answer.text


def remade(stack: Stack) -> dict[str, int]:
    found: dict[str, int] = requests.get(f"{stack.url}/api/calendars/shared").json()["remade"]
    return found


def is_over(stack: Stack) -> bool:
    """A page is counted when it is done, a moment after its last schedule."""
    found = remade(stack)
    return not found["left"] and found["moved"] + found["unchanged"] >= FAR + STAYING + MOVING


def create(stack: Stack, items: list[Document]) -> list[str]:
    made = []
    for first in range(0, len(items), A_REQUEST):
        part = items[first : first + A_REQUEST]
        answer = stack.post("/schedules/bulk", {"schedules": part}, status=200)
        assert answer["created"] == len(part), answer
        made += [result["id"] for result in answer["results"]]
    return made


def pause(stack: Stack, name: str) -> None:
    cursor: Document = {}
    while True:
        page = stack.post("/schedules/pause", {"name": name, "limit": A_REQUEST} | cursor, status=200)
        assert not page["skipped"]
        if page["next_cursor"] is None:
            return
        cursor = {"cursor": page["next_cursor"]}


def each_minute(zone: str, count: int, url: str) -> Iterator[Document]:
    """Rules that fire each minute, spread over its seconds."""
    start = datetime.now(ZoneInfo(zone)).replace(second=0)
    for number in range(count):
        at = start + timedelta(seconds=number * 60 // count)
        rule = f"DTSTART;TZID={zone}:{at:%Y%m%dT%H%M%S}\nRRULE:FREQ=MINUTELY"
        yield {"name": "each minute", "callback_url": url, "rrule": rule, "calendar": "shared"}


def test_a_change_moves_ten_thousand_schedules_while_callbacks_go_on(stack: Stack, journal: Journal) -> None:
    put_calendar(stack)
    day = datetime.now(ZoneInfo(CLOSING)).date()
    closed = [day + timedelta(days=number) for number in range(3)]
    far = {
        "name": "far",
        "callback_url": journal.url("/far"),
        "rrule": f"DTSTART;TZID={CLOSING}:{closed[2]:%Y%m%d}T120000\nRRULE:FREQ=DAILY",
        "calendar": "shared",
        "on_holiday": "next",
    }
    create(stack, [far] * FAR)
    staying = create(stack, list(each_minute(OPEN, STAYING, journal.url("/staying"))))
    moving = create(stack, list(each_minute(CLOSING, MOVING, journal.url("/moving"))))
    stack.beat("second-beat")
    wait_until(lambda: len(journal.calls["/moving"]) >= MOVING, "a minute of callbacks")

    put_calendar(stack, *closed)
    wait_until(lambda: is_over(stack), "all schedules to be looked at")
    assert remade(stack) == {"moved": FAR + MOVING, "unchanged": STAYING, "left": 0}
    seen = len(journal.calls["/staying"])
    wait_until(lambda: len(journal.calls["/staying"]) >= seen + STAYING, "another minute")
    put_calendar(stack)
    wait_until(lambda: is_over(stack), "all schedules to be looked at again")
    assert remade(stack) == {"moved": FAR + MOVING, "unchanged": STAYING, "left": 0}
    seen = len(journal.calls["/moving"])
    wait_until(lambda: len(journal.calls["/moving"]) >= seen + MOVING, "those that moved to go on")

    end = datetime.now(UTC) - timedelta(seconds=5)
    pause(stack, "each minute")
    with MongoClient[Document](stack.environment["MONGO_URI"], tz_aware=True) as client:
        database = client[stack.environment["MONGO_DATABASE"]]
        schedules = {row["_id"]: row for row in database["schedules"].find({"name": "each minute"})}
        events = list(database["events"].find({"schedule_id": {"$in": list(schedules)}}))
        assert not database["schedules"].count_documents({"name": "far", "next_run_at": None})
        nexts = database["schedules"].distinct("next_run_at", {"name": "far"})
    noon = datetime.combine(closed[2], datetime.min.time(), ZoneInfo(CLOSING)) + timedelta(hours=12)
    assert nexts == [noon.astimezone(UTC)]
    audit(schedules, events, staying, moving, journal, end)


def audit(
    schedules: dict[str, Document],
    events: list[Document],
    staying: list[str],
    moving: list[str],
    journal: Journal,
    end: datetime,
) -> None:
    """Every occurrence has one event and one call; those of the closed time have none."""
    called = Counter(call.key for path in ("/staying", "/moving") for call in journal.calls[path])
    assert set(called.values()) == {1}, "nothing is called twice"
    sent = {(each["schedule_id"], each["run_time"]): each for each in events if each["_id"] in called}
    assert len(sent) == len(called), "no occurrence is sent by two events"
    cuts_of_pauses = 1
    for schedule_id in (*staying, *moving):
        row = schedules[schedule_id]
        begins = [since for _, since in row["cuts"]] + [row["revised_at"]]
        assert len(begins) == (1 if schedule_id in staying else 3) + cuts_of_pauses
        instant = datetime.fromisoformat(f"{row['created_at']}").replace(microsecond=0)
        first = min(run_time for owner, run_time in sent if owner == schedule_id)
        assert first - instant <= MINUTE + timedelta(seconds=1)
        while first < end:
            is_closed = schedule_id in moving and begins[1] < first <= begins[2]
            event = sent.get((schedule_id, first))
            if is_closed and event is not None:
                # A worker had it already when the cut was written: what is sent is sent, once.
                assert event["revision"] == 1, f"{event['_id']} is of a revision with the closed days"
                assert first - begins[1] < CLAIMED_AHEAD, f"{event['_id']} was sent, cuts {begins}"
            else:
                assert (event is not None) != is_closed, f"{schedule_id} at {first}, cuts {begins}"
            first += MINUTE
    late = max(
        call.at - datetime.fromisoformat(call.run_time).timestamp() for call in journal.calls["/staying"]
    )
    assert late < LATE_SECONDS
