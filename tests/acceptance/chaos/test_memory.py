"""Memory stays what it is: an hour's worth of events, as fast as they can be delivered."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import psutil
import pytest
import requests

from scheduler_app.clock import clock
from tests.bench.ground import Ground, ground
from tests.builders import schedule
from tests.processes import wait_until

SCHEDULES = 20
HOUR = 3_600
EVENTS = SCHEDULES * HOUR
#: The first part of the run is for caches and pools to fill.
WARM_UP = 0.15
SAMPLE_SECONDS = 0.3


@dataclass(frozen=True)
class Sample:
    """`done`: the share of the events that are finished, 0 to 1; sizes in MiB by process."""

    done: float
    mib: dict[str, float]


def resident(pid: int) -> float:
    """MiB of a process and its children (gunicorn's arbiter is not who serves)."""
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return max(float(process.memory_info().rss) for process in family) / 2**20


@contextmanager
def lists_asked_for(url: str) -> Iterator[None]:
    """While somebody looks at lists and health, four at a time."""
    ended = threading.Event()

    def ask(number: int) -> None:
        with requests.Session() as session:
            while not ended.is_set():
                for path in ("events?limit=100", f"schedules/s{number}/events/history?limit=50", "schedules"):
                    session.get(f"{url}/api/{path}").raise_for_status()
                session.get(f"{url}/metrics").raise_for_status()
                time.sleep(0.05)

    askers = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for asker in askers:
        asker.start()
    try:
        yield
    finally:
        ended.set()
        for asker in askers:
            asker.join()


def run_an_hour(made: Ground, pids: dict[str, int]) -> list[Sample]:
    """The schedules' occurrences of the last hour, all of them owed: beat expands and sends them at once."""
    began = clock.now() - timedelta(seconds=HOUR)
    rule = f"FREQ=SECONDLY;COUNT={HOUR}"
    for number in range(SCHEDULES):
        made.store.schedules.insert(schedule(began, f"s{number}", url=made.url, method="POST", rrule=rule))
    events = made.store.mongo.collection("events")
    samples: list[Sample] = []

    def is_done() -> bool:
        time.sleep(SAMPLE_SECONDS)  # counting costs mongod a little: not at every turn
        done = events.estimated_document_count() - sum(made.store.events.living_by_state().values())
        samples.append(Sample(done / EVENTS, {name: resident(pid) for name, pid in pids.items()}))
        return done >= EVENTS

    with lists_asked_for(made.stack.url):
        wait_until(is_done, "all events")
    return samples


@pytest.mark.chaos
@pytest.mark.timeout(400)
def test_an_hour_of_events_leaves_beat_worker_and_api_as_large_as_half_of_it() -> None:
    with ground(workers=1, beats=1) as made:
        api = made.stack.api()
        pids = {"beat": made.processes["beat1"], "worker": made.processes["worker1"], "api": api.pid}
        samples = run_an_hour(made, pids)
        keys = {arrival.key for arrival in made.arrivals()}
    assert len(keys) == EVENTS
    middle = (1 + WARM_UP) / 2
    for name in pids:
        first = max(sample.mib[name] for sample in samples if WARM_UP <= sample.done < middle)
        second = max(sample.mib[name] for sample in samples if sample.done >= middle)
        print(f"{name}: {samples[0].mib[name]:.0f} MiB at rest, {first:.0f} then {second:.0f} MiB")
        assert second <= 1.1 * first, f"{name} grew from {first:.0f} to {second:.0f} MiB"
