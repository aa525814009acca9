"""Beside corrupt documents of every kind, others are no later than beside as many sound ones."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.store import Store
from tests.acceptance.journal import Journal
from tests.acceptance.stack import Stack
from tests.corruption import plant_events, plant_nodes, plant_pages, plant_schedules
from tests.processes import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

#: One occurrence a second each.
NEIGHBOURS = 20
#: A pass of inspection, which comes once a minute, falls into the time beside corrupt documents.
SOUND_SECONDS, SECONDS = 15, 65
#: What a corrupt document may cost a neighbour beyond what a sound one costs it.
LATE_SECONDS = 2.0


@pytest.fixture
def store(stack: Stack) -> Iterator[Store]:
    """The stack's own."""
    settings = stack.environment
    made = Store(Settings(mongo_uri=settings["MONGO_URI"], mongo_database=settings["MONGO_DATABASE"]))
    yield made
    made.close()


def plant_everything(store: Store, url: str, name: str, *, sound: bool) -> None:
    """Hundreds of schedules, events and pages, all of which have been due for a while."""
    now = clock.now()
    plant_schedules(store, now, url, prefix=name, sound=sound)
    plant_events(store, now, url, schedule_id=f"{name}-events", sound=sound)
    plant_pages(store, now, f"{name}-events", sound=sound)
    plant_nodes(store, sound=sound)


def lags_beside(stack: Stack, store: Store, journal: Journal, name: str, *, sound: bool) -> list[float]:
    """How late the neighbours' occurrences are, from their histories, while everything is planted."""
    count = SOUND_SECONDS if sound else SECONDS
    due = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
    rule = f"DTSTART:{due:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=SECONDLY;COUNT={count}"
    schedules = stack.create_many(NEIGHBOURS, journal.url("/neighbour"), rrule=rule)
    plant_everything(store, journal.url(f"/{name}"), name, sound=sound)
    done, events = {"schedule_id": {"$in": schedules}, "state": "completed"}, store.mongo.collection("events")
    everything = NEIGHBOURS * count
    wait_until(lambda: events.count_documents(done) == everything, "all of the neighbours")
    return sorted(row["attempts"][0]["lag_ms"] / 1000 for row in events.find(done))


def test_none_is_late_beside_corrupt_documents_of_every_kind(
    stack: Stack, store: Store, journal: Journal
) -> None:
    control = lags_beside(stack, store, journal, "sound", sound=True)
    lags = lags_beside(stack, store, journal, "bad", sound=False)
    print(f"beside sound ones: p50 {control[len(control) // 2]:.3f} s, most {control[-1]:.3f} s")
    print(f"beside corrupt ones: p50 {lags[len(lags) // 2]:.3f} s, most {lags[-1]:.3f} s")
    assert [lag for lag in lags if lag > control[-1] + LATE_SECONDS] == []
    bad = {"_id": {"$regex": "^bad-"}, "state": "error"}
    assert store.mongo.collection("schedules").count_documents(bad) > 250
    assert store.mongo.collection("events").count_documents(bad) > 30
    assert store.mongo.collection("outbox").count_documents({}) == 0
