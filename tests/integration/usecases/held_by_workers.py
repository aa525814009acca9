"""A worker whose events wait in its memory: its receiver answers when the test says so."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from typing import Any

from scheduler_app.clock import clock
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.flow_control import Limiter
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.store import Store
from scheduler_app.worker import Pipeline
from tests.acceptance.journal import Call, Journal
from tests.builders import event, schedule
from tests.executors import executors
from tests.integration.actions.receiver import Seen, says
from tests.processes import PATIENCE_SECONDS, wait_until

SECOND = timedelta(seconds=1)
KEY = "destination d"


class Gate:
    """Keeps requests waiting for their answers until it is opened."""

    def __init__(self) -> None:
        self._opened = threading.Semaphore(0)
        self._lock = threading.Lock()
        self.waiting = self.most = 0

    def __call__(self, seen: Seen, connection: socket.socket) -> bool:
        with self._lock:
            self.waiting += 1
            self.most = max(self.most, self.waiting)
        self._opened.acquire()
        with self._lock:
            self.waiting -= 1
        return says()(seen, connection)

    def open(self, requests: int = 1_000) -> None:
        """Lets so many be answered, of those that wait and of those to come."""
        self.most = 0
        self._opened.release(requests)


class HoldingWorker:
    """A pipeline, its receiver, and a clock that a test may set forward."""

    def __init__(self, store: Store, limiter: Limiter | None, *, origin_concurrency: int = 200) -> None:
        self.store = store
        self.gate = Gate()
        self.journal = Journal()
        self.ahead = timedelta(0)
        for path in ("/old", "/new"):
            self.journal.script(path, self.gate)
        self.pipeline = Pipeline(
            store,
            executors(origin_concurrency=origin_concurrency),
            now=self.now,
            worker="w1",
            horizon_seconds=60,
            max_events=1_000,
            limiter=limiter,
        )
        self.pipeline.start()

    def now(self) -> datetime:
        return clock.now() + self.ahead

    def calls(self, path: str = "/old") -> list[Call]:
        return list(self.journal.calls[path])

    def put(self, **fields: Any) -> Destination:
        """The destination `d`, which goes to `/old`."""
        now = self.now()
        made = Destination(
            id=WholeId("d"), url=self.journal.url("/old"), created_at=now, updated_at=now, **fields
        )
        assert self.store.destinations.insert(made)
        return made

    def due(self, count: int, **fields: Any) -> list[str]:
        """Events of the schedule `s1`, due a moment ago, a millisecond apart; it names the destination
        unless `fields` name a URL."""
        now = self.now()
        of = {"url": NOT_GIVEN, "destination": "d"} if "url" not in fields else {}
        made = schedule(now - 10 * SECOND, "s1", **of, **fields)
        self.store.schedules.insert(made)
        key = made.action.isolation_key
        # As beats give them out: one for each second, so that some of them may be late.
        events = [event(now - number * timedelta(milliseconds=1), origin=key) for number in range(count)]
        self.store.events.insert(events, now, "made")
        return [each.id for each in events]

    def deliver(self, ids: Sequence[str], started: int) -> None:
        """Lets the worker claim the events, and waits until so many requests have come."""
        self.pipeline.delivery.deliver(ids)
        wait_until(lambda: len(self.calls()) >= started, f"{started} requests")

    def look(self) -> None:
        """Waits until the worker has looked at what holds now, which it does every second, and until
        all requests that it has started have come: they wait for their answers."""
        looks = self.pipeline.rejudging.looks
        wait_until(lambda: self.pipeline.rejudging.looks >= looks + 2, "two looks of the worker")
        courier = self.pipeline.courier
        wait_until(lambda: courier.in_flight == self.gate.waiting, "its requests to come")

    def rows(self) -> list[dict[str, Any]]:
        return list(self.store.mongo.collection("events").find().sort("run_time", 1))

    def states(self) -> set[str]:
        return {row["state"] for row in self.rows()}

    def finish(self) -> None:
        """Lets every request be answered, and waits until the worker holds nothing."""
        self.gate.open()
        assert self.pipeline.wait_until_empty(PATIENCE_SECONDS)

    def close(self) -> None:
        self.gate.open()
        self.pipeline.stop_starting()
        self.pipeline.wait_until_empty(PATIENCE_SECONDS)
        self.pipeline.stop()
        self.journal.close()


@contextmanager
def holding_worker(store: Store, limiter: Limiter | None, **options: Any) -> Iterator[HoldingWorker]:
    with closing(HoldingWorker(store, limiter, **options)) as made:
        yield made
