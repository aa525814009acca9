"""Millions of finished events, copies of one that was really delivered, put straight into MongoDB."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

from pymongo.write_concern import WriteConcern

from scheduler_app.clock import clock
from scheduler_app.domain.ids import event_id
from scheduler_app.domain.states import State
from scheduler_app.store.mongo import Document
from tests.bench.ground import Ground, wait_for
from tests.bench.planted import make_schedules

MINUTELY = 1_000
#: One schedule has a tenth of all, every second; the others share the rest, every minute.
LARGEST = "largest"
A_BATCH = 10_000
THREADS = 2


def sample(made: Ground) -> Document:
    """An event that the product has delivered: its history is as long as it really is."""
    schedule_id = made.stack.create(made.url, run_at="2090-01-01T00:00:00Z", method="POST")
    made.stack.post(f"/schedules/{schedule_id}/trigger", status=202)
    wait_for(made.idle, 20, "one event to complete")
    found = made.store.mongo.collection("events").find_one({"schedule_id": schedule_id})
    assert found is not None
    assert found["state"] == State.COMPLETED
    return found


def fill(made: Ground, template: Document, count: int) -> None:
    """The setting-up is not what is measured, so that it is written without waiting for the journal."""
    events = made.store.mongo.collection("events").with_options(write_concern=WriteConcern(w=1, j=False))
    latest = clock.now().replace(second=0, microsecond=0) - timedelta(minutes=1)
    make_schedules(made, prefix="minutely", count=MINUTELY)
    make_schedules(made, prefix=LARGEST, count=1)

    def write(start: int) -> None:
        numbers = range(start, min(start + A_BATCH, count))
        events.insert_many(_documents(template, numbers, latest), ordered=False)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(write, range(0, count, A_BATCH)))


def _documents(template: Document, numbers: range, latest: datetime) -> Iterator[Document]:
    for number in numbers:
        turn, place = divmod(number, 10)
        if place == 0:
            schedule_id, run_time = f"{LARGEST}0", latest - timedelta(seconds=turn)
        else:
            minute, owner = divmod(turn * 9 + place - 1, MINUTELY)
            schedule_id, run_time = f"minutely{owner}", latest - timedelta(minutes=minute)
        state = State.ERROR if number % 50 == 7 else State.COMPLETED
        yield {
            **template,
            "_id": event_id(schedule_id, 1, run_time),
            "schedule_id": schedule_id,
            "kind": "scheduled",
            "state": state.value,
            "run_time": run_time,
            "created_at": run_time,
            "archived_at": run_time,
        }
