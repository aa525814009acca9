"""A thousand occurrences of each policy of overlapping runs: the receiver sees what the policy says."""

import random
import socket
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pymongo import MongoClient

from tests.acceptance.journal import Journal
from tests.acceptance.stack import Stack
from tests.integration.actions.receiver import Behaviour, Seen, says
from tests.overlaps import broken_promises
from tests.processes import wait_until

SCHEDULES, OCCURRENCES = 20, 50
QUEUE_LIMIT = 4
#: After the last occurrence: a killed worker's lease, the retries, what waits.
QUIET_SECONDS = 150


def slower_than_the_interval(draw: random.Random) -> Behaviour:
    """Works for up to two seconds and a half, and fails now and then."""

    def behave(seen: Seen, connection: socket.socket) -> bool:
        time.sleep(draw.uniform(0, 2.5))
        return says("500 No" if draw.random() < 0.2 else "200 OK")(seen, connection)

    return behave


@pytest.mark.long
@pytest.mark.timeout(460)
@pytest.mark.parametrize("workers", [2, 5])
@pytest.mark.parametrize("policy", ["skip", "queue", "cancel_earlier"])
def test_a_thousand_occurrences_keep_their_policy(
    make_stack: Callable[..., Stack], journal: Journal, policy: str, workers: int
) -> None:
    stack, draw = make_stack(), random.Random(f"{policy} {workers}")
    stack.api()
    stack.beat("one")
    stack.beat("other")
    alive = [stack.worker(f"w{number}") for number in range(workers)]
    url = journal.script("/job", slower_than_the_interval(draw))
    begins = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=3)
    made = stack.create_many(
        SCHEDULES,
        url,
        rrule=f"DTSTART:{begins:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=SECONDLY;COUNT={OCCURRENCES}",
        run_overlap=policy,
        queue_limit=QUEUE_LIMIT,
        max_retries=3,
        retry_backoff_seconds=0.5,
        retry_backoff_max_seconds=1,
    )
    for number in range(2):
        time.sleep(max(0.0, begins.timestamp() + 12 * (number + 1) - time.time()))
        stack.kill(alive.pop(0))
        alive.append(stack.worker(f"heir{number}"))
    with MongoClient[dict[str, Any]](stack.environment["MONGO_URI"], tz_aware=True) as client:
        events = client[stack.environment["MONGO_DATABASE"]]["events"]
        mine = {"schedule_id": {"$in": made}}

        def all_ended() -> bool:
            living = events.count_documents(mine | {"due_at": {"$exists": True}})
            return not living and events.count_documents(mine) == SCHEDULES * OCCURRENCES

        wait_until(all_ended, "all occurrences to have ended")
        by_schedule = defaultdict(list)
        for event in events.find(mine):
            by_schedule[event["schedule_id"]].append(event)
    arrivals: dict[str, list[float]] = defaultdict(list)
    for call in journal.calls["/job"]:
        arrivals[call.key].append(call.at)
    broken = [
        found
        for each in by_schedule.values()
        for found in broken_promises(policy, each, arrivals, queue_limit=QUEUE_LIMIT)
    ]
    assert not broken
    ended = [event for each in by_schedule.values() for event in each]
    states = Counter(event["state"] for event in ended)
    assert sum(states.values()) == SCHEDULES * OCCURRENCES
    assert states["completed"] > SCHEDULES
    assert states["cancelled" if policy == "cancel_earlier" else "skipped"]
    if policy == "queue":
        in_vain = sum(claims(event) - event["attempt"] for event in ended if event["state"] == "completed")
        # Each that waits is claimed once to find that out; a killed worker's cost some more.
        assert in_vain <= 2 * states["completed"]


def claims(event: dict[str, Any]) -> int:
    return sum(line["message"].startswith("Claimed") for line in event["status"])
