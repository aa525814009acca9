"""Edits cut time: whatever is asked at whatever millisecond, the receiver's log agrees to the occurrence."""

import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests

from tests.acceptance.journal import Journal
from tests.acceptance.stack import Stack
from tests.processes import wait_until

EDITS = 10
#: By how much the clocks of processes on one machine may differ.
CLOCKS_SECONDS = 0.2
#: Rules by the step of their seconds; all begin on an even second long ago.
RULES = {step: f"DTSTART:20260101T000000Z\nRRULE:FREQ=SECONDLY;INTERVAL={step}" for step in (1, 2, 3, 5)}
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Period:
    """What a schedule was asked to do from `since` (exclusive) on; a `step` of 0 is nothing."""

    since: datetime
    step: int
    answered_at: float
    """When the one who asked had the answer, Unix seconds."""
    deleted: bool = False


def expected(periods: list[Period], until: datetime) -> set[datetime]:
    """Every instant owed, each by the period that owns it: computed by counting seconds."""
    found = set()
    ends = [period.since for period in periods[1:]] + [until]
    for period, end in zip(periods, ends, strict=True):
        moment = period.since.replace(microsecond=0)
        while moment <= end:
            since_epoch = int((moment - EPOCH).total_seconds())
            if moment > period.since and period.step and since_epoch % period.step == 0:
                found.add(moment)
            moment += timedelta(seconds=1)
    return found


def change(stack: Stack, method: str, path: str, body: Any = None) -> Any:
    """What the API answers to an edit. Where a callback that was in flight at the edit before is so still, it
    asks for patience."""
    answers: list[requests.Response] = []

    def is_taken() -> bool:
        answers[:] = [requests.request(method, f"{stack.url}/api/schedules/{path}", json=body)]
        return answers[0].status_code != 409

    wait_until(is_taken, "the edit to be taken", pause=0.1)
    assert answers[0].status_code == 200, answers[0].text
    return answers[0].json()


def edit_at_random(stack: Stack, url: str, seed: int) -> tuple[str, list[Period]]:
    """Creates a schedule, edits it at random milliseconds, and ends it by a pause or a deletion.

    The sleeps are what is tested: edits come at any moment of a second, and wait for nothing.
    """
    draw, held = random.Random(seed), 1
    # A request that timed out is sent again, which is right, and not what is asked here.
    patient = {"callback_url": url, "timeout_seconds": 60}
    answer = stack.post("/schedules", {"name": "edited", "rrule": RULES[1], **patient})
    schedule_id = answer["id"]
    periods = [Period(datetime.fromisoformat(answer["created_at"]), 1, time.time())]
    for _ in range(EDITS):
        time.sleep(draw.uniform(0.05, 0.9))
        step = periods[-1].step
        if step == 0:
            answer, step = change(stack, "POST", f"{schedule_id}/resume"), held
        elif draw.random() < 0.3:
            held = step
            answer, step = change(stack, "POST", f"{schedule_id}/pause"), 0
        else:
            step = draw.choice([other for other in RULES if other != step])
            answer = change(stack, "PUT", schedule_id, {"rrule": RULES[step]})
        periods.append(Period(datetime.fromisoformat(answer["updated_at"]), step, time.time()))
    time.sleep(draw.uniform(0.05, 0.9))
    if periods[-1].step:
        asked_at = datetime.now(UTC)
        asked_at -= timedelta(microseconds=asked_at.microsecond % 1000)  # as exact as what is stored
        requests.delete(f"{stack.url}/api/schedules/{schedule_id}").raise_for_status()
        periods.append(Period(asked_at, 0, time.time(), deleted=True))
    return schedule_id, periods


def went_with_its_schedule(stack: Stack, schedule_id: str, moment: datetime, periods: list[Period]) -> bool:
    """Deletion voids all that is unsent, and on a crowded machine that is more than the last second."""
    *_, last, end = periods
    if not end.deleted:
        return False
    if moment > last.since:
        return True  # nobody may have made it yet; what is older was made by the edit that ended its period
    query = {
        "schedule_id": schedule_id,
        "state": "cancelled",
        "from": moment.isoformat(),
        "to": (moment + timedelta(seconds=1)).isoformat(),
    }
    found = requests.get(f"{stack.url}/api/events", params=query).json()["events"]
    return any(datetime.fromisoformat(event["archived_at"]) >= end.since for event in found)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("schedules", [5, pytest.param(30, marks=pytest.mark.long)])
def test_every_occurrence_asked_for_arrives_once_and_none_that_was_withdrawn(
    stack: Stack, journal: Journal, schedules: int
) -> None:
    with ThreadPoolExecutor(schedules) as pool:
        runs = [pool.submit(edit_at_random, stack, journal.url(f"/{i}"), i) for i in range(schedules)]
    edited = [run.result() for run in runs]
    for schedule_id, _ in edited:
        wait_until(lambda: not stack.events(schedule_id, "pending"), "nothing to be pending")  # noqa: B023
    for number, (schedule_id, periods) in enumerate(edited):
        calls = journal.calls[f"/{number}"]
        came = Counter(datetime.fromisoformat(call.run_time) for call in calls)
        twice = [(call.key, call.at) for call in calls if came[datetime.fromisoformat(call.run_time)] > 1]
        assert not twice, f"schedule {number} was called twice for one instant: {twice}"
        owed = expected(periods, datetime.now(UTC))
        lost = [
            moment
            for moment in owed - came.keys()
            if not went_with_its_schedule(stack, schedule_id, moment, periods)
        ]
        assert not lost, f"lost by schedule {number}"
        for moment in came.keys() - owed:
            # It was on its way when the edit came. Schedules are read when their events are due, not before:
            # for what was due after the answer the edit was seen, however late the others start.
            period = max((each for each in periods if each.since < moment), key=lambda each: each.since)
            assert moment.timestamp() <= period.answered_at + CLOCKS_SECONDS, (
                f"{moment} was sent by schedule {number} after its cut"
            )
