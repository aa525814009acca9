"""A backlog of a destination with limits, and whether they were kept."""

import time
from contextlib import ExitStack, closing
from datetime import datetime
from typing import Any

from scheduler_app.clock import clock
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.resource_fields import NOT_GIVEN
from tests.acceptance.limited_receiver import LimitedReceiver, excess
from tests.bench.ground import Ground
from tests.bench.neighbour import Neighbour
from tests.bench.planted import events_at, insert, whole_ms
from tests.bench.receiver import Receiver
from tests.bench.report import Row
from tests.builders import draft


class LimitedBacklog(Neighbour):
    """A backlog for a destination with a rate and a concurrency, all of it due when the neighbour begins."""

    def __init__(self, events: int, rate: float, burst: int, concurrency: int) -> None:
        self._events, self._rate, self._burst = events, rate, burst
        self._limits = {"rate_per_second": rate, "burst": burst, "concurrency": concurrency}
        self._servers = ExitStack()

    def events(self, seconds: float) -> int:
        return self._events

    def prepare(self, made: Ground, receiver: Receiver, begin: datetime, seconds: float) -> None:
        self._receiver = self._servers.enter_context(closing(LimitedReceiver()))
        now = clock.now()
        limits: dict[str, Any] = self._limits
        limited = Destination(
            id=WholeId("limited"), url=self._receiver.url, created_at=now, updated_at=now, **limits
        )
        made.store.destinations.insert(limited)
        named = draft(url=NOT_GIVEN, destination=limited.id, on_demand=True, method="POST")
        schedule = named.schedule("limited", now, max_retries=3)
        made.store.schedules.insert(schedule)
        planted = events_at([schedule], self._events, lambda number: whole_ms(begin))
        key = schedule.action.isolation_key
        insert(made, [each._replace(origin=key) for each in planted])

    def figures(self, begin: datetime) -> Row:
        """How far the fullest window was above the limit (at most 0 is right), how many requests were open at
        once, and the time until the last arrival in relation to the time that the limit asks for; that of
        those that came, where the run was too short for all."""
        arrivals = sorted(self._receiver.arrivals)
        if not arrivals:
            return {"delivered": 0}
        began = begin.timestamp() - (time.time() - time.monotonic())
        wanted = max(1.0, len(arrivals) - self._burst) / self._rate
        return {
            "delivered": len(self._receiver.keys),
            "window_excess": round(excess(arrivals, self._burst, self._rate), 2),
            "most_open": self._receiver.most_open,
            "finish_ratio": round((arrivals[-1] - began) / wanted, 4),
        }

    def stop(self) -> None:
        self._servers.close()
