"""Deletions of a hundred thousand events, of a tenant and by tag, by beats that are killed all the time."""

import random
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from time import sleep
from typing import Any, NamedTuple

import pytest

from scheduler_app.clock import clock
from scheduler_app.domain.deletion import LEAST_DURATION, Deletion
from scheduler_app.store import Store
from tests.builders import event, schedule
from tests.integration.usecases.test_deletions import EARLIER, OTHERS, documents, started
from tests.integration.usecases.test_tag_deletions import TAG, delete

Row = dict[str, Any]


class Planted(NamedTuple):
    """What is there before a deletion begins."""

    delete: Callable[[], Deletion]
    is_kept: Callable[[Row], bool]
    counts: dict[str, int]
    """What the deletion removes."""


def multiply(store: Store, copies: int, **which: Any) -> None:
    """Adds so many copies of each event."""
    events = store.mongo.db["events"]
    for row in list(events.find(which)):
        for first in range(0, copies, 10_000):
            some = range(first, min(copies, first + 10_000))
            events.insert_many([row | {"_id": f"{row['_id']}-{each}"} for each in some])


def plant_tenant(store: Store, now: datetime) -> Planted:
    """A tenant with 100,001 events, beside others with a thousand each."""
    store.events.insert([event(now, each) for each in ("acme:s1", "acme-2:s1", "s1")], now, "made")
    multiply(store, 100_000, tenant="acme")
    multiply(store, 1_000, tenant={"$ne": "acme"})
    store.schedules.insert_many([schedule(now, f"acme:s{each}") for each in range(100)])
    return Planted(
        lambda: started(store, now - LEAST_DURATION),
        lambda row: row["tenant"] in OTHERS,
        {"events": 100_001, "schedules": 100},
    )


def plant_tag(store: Store, now: datetime) -> Planted:
    """A thousand schedules with 125 events each; four of five have the tag."""
    others = {f"acme:s{number}" for number in range(0, 1_000, 5)}
    ids = [f"acme:s{number}" for number in range(1_000)]
    store.schedules.insert_many(
        [schedule(now, each, tags=("team" if each in others else TAG,)) for each in ids]
    )
    # Their lines of the audit are moved already.
    store.mongo.db["schedules"].update_many({}, {"$unset": {"unlogged": ""}})
    store.events.insert([event(now, each) for each in ids], now, "made")
    multiply(store, 124)
    return Planted(
        lambda: delete(store, now - LEAST_DURATION),
        lambda row: row.get("schedule_id", row["_id"]) in others,
        {"events": 100_000, "schedules": 800},
    )


def rows_of(store: Store) -> dict[tuple[str, Any], Row]:
    """All schedules and events. The smaller tests look at what hangs on these."""
    return {key: row for key, row in documents(store).items() if key[0] in ("events", "schedules")}


#: A beat that has this duty alone, and whose clock goes on by a second where there is nothing to do. It says
#: after each page how late it is.
BEAT = """
import sys
from datetime import timedelta
from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.store import Store
from scheduler_app.usecases.duties.deletions import DeletionDuty
store = Store(Settings(mongo_uri=sys.argv[1], mongo_database=sys.argv[2]))
duty, now, seconds = DeletionDuty(store), clock.now(), int(sys.argv[3])
while True:
    if not duty.work_page(now + timedelta(seconds=seconds)):
        seconds += 1
    print(seconds, flush=True)
"""


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("plant", [plant_tenant, plant_tag], ids=["of a tenant", "by tag"])
def test_a_hundred_thousand_events_are_removed_by_beats_that_are_killed(
    store: Store, mongo_uri: str, plant: Callable[[Store, datetime], Planted]
) -> None:
    dice = random.Random(7)
    planted = plant(store, clock.now())
    kept = {key: row for key, row in rows_of(store).items() if planted.is_kept(row)}
    assert kept
    deletion = planted.delete()
    seconds, kills, found = "0", 0, store.deletions.get(deletion.id)
    while found is not None and found.ended_at is None:
        given = [sys.executable, "-c", BEAT, mongo_uri, store.mongo.db.name, seconds]
        with subprocess.Popen(given, stdout=subprocess.PIPE, text=True) as beat:
            assert beat.stdout is not None
            # A page removes 5,000 events: there are more beats than are asked for, however quick they are.
            for _ in range(dice.randint(1, 5)):
                seconds = beat.stdout.readline().strip()
                assert seconds, "the beat ended by itself"
            sleep(dice.uniform(0, 0.1))  # not in order to succeed: the next page may be half done
            beat.kill()
        found = store.deletions.get(deletion.id)
        kills += 1
        # Its lease runs out.
        store.mongo.collection("deletions").update_one({}, {"$set": {"lease_until": EARLIER}})
    assert found is not None
    assert found.ended_at is not None
    assert kills >= 5
    assert dict(found.counts) == planted.counts
    assert rows_of(store) == kept
