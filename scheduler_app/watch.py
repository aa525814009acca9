"""What the witness does beside the ledger: it tells that beats and workers are gone, and lets somebody
outside know that it is there itself. It needs MongoDB alone, and no broker.
"""

import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from scheduler_app.actions.kind import make_executors
from scheduler_app.actions.registry import KINDS
from scheduler_app.assembly import attempter, faults_of, unserved_of
from scheduler_app.clock import clock, monotonic
from scheduler_app.config import Settings
from scheduler_app.domain.action import CALLBACKS
from scheduler_app.domain.deliverable import DEFAULT_TIMEOUT_SECONDS
from scheduler_app.domain.retry import RetryPolicy
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.duties.cause_inspection import CauseInspection
from scheduler_app.usecases.duties.notifications import Notifications
from scheduler_app.usecases.duties.stand_in import StandIn
from scheduler_app.usecases.duties.telling import RuleTelling
from scheduler_app.usecases.duties.well_ping import WellPing
from scheduler_app.usecases.notices import Notices
from scheduler_app.worker import Pipeline

log = get_logger(__name__)

LOOK_SECONDS: Final = 10.0
PING_SECONDS: Final = 60.0
#: How long attempts of what it sends itself may begin.
DELIVERY_SECONDS: Final = 60.0
#: How long it waits for those that have begun: messages have this timeout, and the rest is for writing.
ENDING_SECONDS: Final = DEFAULT_TIMEOUT_SECONDS + 15.0


def stand_in_of(settings: Settings, store: Store, name: str) -> StandIn:
    """`name` is shown as the worker of what it sends. Raises InvalidSetting."""
    retry = RetryPolicy(max_retries=settings.worker_max_retries)
    notifications = Notifications(store, lambda made, now: None, settings.worker_max_retries)
    return StandIn(
        store,
        CauseInspection(store, partial(faults_of, store), partial(unserved_of, store)),
        RuleTelling(store, Notices(store, notifications.send, retry, settings.public_url)),
        has_beat=lambda: all(fault.part != "beat" for fault in faults_of(store)),
        deliver=partial(_deliver, settings, store, name),
    )


def _deliver(settings: Settings, store: Store, name: str, ids: Sequence[str]) -> None:
    """Sends events as a worker does, by a pipeline that ends with them."""
    kinds = [kind for kind in KINDS.values() if kind.is_served(settings, (CALLBACKS,))]
    pipeline = Pipeline(
        store,
        make_executors(settings, kinds),
        now=clock.now,
        worker=name,
        horizon_seconds=settings.horizon_seconds,
        max_events=settings.worker_max_events,
    )
    pipeline.start()
    try:
        pipeline.delivery.deliver(ids)
        pipeline.wait_until_empty(DELIVERY_SECONDS)
    finally:
        pipeline.stop_starting()
        # An attempt that is broken off is made again, and its receiver told twice.
        pipeline.wait_until_empty(ENDING_SECONDS)
        pipeline.interrupt()
        pipeline.stop()


def ping_of(settings: Settings, store: Store) -> WellPing | None:
    """None without WITNESS_PING_URL."""
    url = settings.witness_ping_url
    return WellPing(url, attempter(settings), partial(_trouble, store)) if url else None


def _trouble(store: Store) -> str | None:
    """The first part of the machinery that does not work."""
    for fault in faults_of(store):
        return f"{fault.part}: {fault.found}"
    queues = unserved_of(store, [CALLBACKS])
    return f"no worker serves the queue {queues[0]}" if queues else None


class Watch(threading.Thread):
    """Looks and pings until `stopped` is set. What fails is tried again at the next look."""

    def __init__(self, stand_in: StandIn, ping: WellPing | None, stopped: threading.Event) -> None:
        super().__init__(name="watch", daemon=True)
        self._stand_in = stand_in
        self._ping = ping
        self._stopped = stopped
        self._pinged_at = float("-inf")

    def run(self) -> None:
        while not self._stopped.is_set():
            self._try(self._stand_in.look)
            if self._ping is not None and monotonic() >= self._pinged_at + PING_SECONDS:
                self._pinged_at = monotonic()
                self._try(self._ping.ping)
            self._stopped.wait(LOOK_SECONDS)

    def _try(self, do: Callable[[datetime], object]) -> None:
        try:
            do(clock.now())
        except STORE_FAULTS as error:
            log.warning(
                "watch.waits", message="MongoDB does not answer; it is tried again", error=str(error)[:300]
            )
        except Exception:
            log.exception("watch.broken", message="An unexpected error; it is tried again")
