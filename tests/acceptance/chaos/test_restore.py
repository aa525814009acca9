"""A restore is rehearsed: MongoDB goes back to its backup, Redis is empty, and nothing is lost."""

import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from pymongo import MongoClient
from redis import Redis as RedisClient

from scheduler_app.embedded import Mongod, free_port
from tests.acceptance.journal import Journal
from tests.acceptance.stack import Stack
from tests.acceptance.test_delivery import in_seconds, instant
from tests.processes import wait_until

SCHEDULES = 5
EACH = 25
RULE = f"FREQ=SECONDLY;COUNT={EACH}"


@pytest.fixture
def mongod() -> Iterator[Mongod]:
    with tempfile.TemporaryDirectory(prefix="restore-") as folder:
        server = Mongod(Path(folder) / "data", free_port())
        try:
            yield server.start()
        finally:
            server.stop()


def back_up(mongod: Mongod, to: Path) -> float:
    """Copies the data of a running mongod as a snapshot of its disk would; when that began, Unix seconds."""
    began = time.time()
    with MongoClient[dict[str, Any]](mongod.uri) as client:
        client.admin.command("fsync", lock=True)
        try:
            shutil.copytree(mongod.directory, to, ignore=shutil.ignore_patterns("*.lock", "*.log"))
        finally:
            client.admin.command("fsyncUnlock")
    return began


def restore(mongod: Mongod, copy: Path) -> None:
    mongod.stop()
    shutil.rmtree(mongod.directory)
    shutil.copytree(copy, mongod.directory)
    mongod.start()


@pytest.mark.chaos
@pytest.mark.timeout(240)
def test_after_a_restore_nothing_is_missing_and_what_is_sent_again_has_its_old_key(
    make_stack: Callable[..., Stack], journal: Journal, mongod: Mongod, tmp_path: Path
) -> None:
    stack = make_stack(MONGO_URI=mongod.uri)
    parts = [stack.api(), stack.beat(), stack.worker()]
    made = [stack.create(journal.url(f"/{number}"), rrule=RULE) for number in range(SCHEDULES)]
    once = stack.create(journal.url("/once"), delay_seconds=20)
    wait_until(lambda: len(journal.calls["/0"]) >= 4, "some calls")
    backed_up_at = back_up(mongod, tmp_path / "copy")
    # What the backup does not know of: calls, and a schedule that was made after it.
    unknown = stack.create(journal.url("/unknown"), run_at=in_seconds(3600))
    wait_until(lambda: journal.calls["/0"][-1].at > backed_up_at + 5, "calls after the backup")
    for part in parts:
        stack.kill(part)
    sent_before = {call.key for number in range(SCHEDULES) for call in journal.calls[f"/{number}"]}

    restore(mongod, tmp_path / "copy")
    with RedisClient.from_url(stack.environment["BROKER_URL"]) as broker:
        broker.flushdb()
    stack.api()
    stack.beat("restored-beat")
    stack.worker("restored-worker")

    for schedule_id in made:
        wait_until(lambda: len(stack.events(schedule_id)) == EACH, "every event to end")  # noqa: B023
        assert {event["state"] for event in stack.events(schedule_id)} == {"completed"}
    stack.finished(once)
    assert len(journal.calls["/once"]) == 1
    keys: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in (f"/{number}" for number in range(SCHEDULES)):
        for call in journal.calls[path]:
            keys[path, call.run_time].append(call.key)
    assert len(keys) == SCHEDULES * EACH, "an occurrence is missing"
    assert all(len(set(found)) == 1 for found in keys.values()), "an occurrence came under two keys"
    again = {run_time: found for (_, run_time), found in keys.items() if len(found) > 1}
    assert again
    assert {key for found in again.values() for key in found} <= sent_before
    # Nothing is sent again but what the backup did not know as finished (its last second was in flight).
    assert all(instant(run_time) > backed_up_at - 3 for run_time in again)
    assert all(len(found) == 2 for found in again.values())
    assert requests.get(f"{stack.url}/api/schedules/{unknown}").status_code == 404
