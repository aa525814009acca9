"""Looks at the kill switches several times a second, so that nothing that starts attempts waits for that."""

import threading
from datetime import datetime

from scheduler_app.clock import monotonic
from scheduler_app.domain.destination import destination_of
from scheduler_app.domain.kill_switch import KillSwitches, Target, held_line
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import Store
from scheduler_app.store.events.claims import Postponement
from scheduler_app.store.events.holding import HELD_FOR
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.usecases.kill_switches import LOOK_SECONDS, KillSwitchView
from scheduler_app.worker.job import Job
from scheduler_app.worker.recorder import Delayed

log = get_logger(__name__)

#: What was known longer ago may no longer hold: this process, or its host, was frozen.
STALE_SECONDS = 0.75


class KillSwitchWatch(threading.Thread):
    """One thread a worker. `view` is what it knows."""

    def __init__(self, store: Store) -> None:
        super().__init__(name="kill-switches", daemon=True)
        self.view = KillSwitchView(store)
        self._ended = threading.Event()

    def run(self) -> None:
        while True:
            try:
                self.view.look()
            except Exception:  # without this thread nothing would be sent
                log.exception("kill_switch.failed", message="A look at the kill switches failed")
            if self._ended.wait(LOOK_SECONDS):
                return

    def may_start(self) -> bool:
        """Whether what is known is fresh enough to start an attempt by it. A MongoDB that does not answer is
        no reason to stop: the last known state holds then."""
        return self.view.is_away or monotonic() - self.view.looked_at < STALE_SECONDS

    def stop(self) -> None:
        self._ended.set()


def stopping(job: Job, known: KillSwitches) -> Target | None:
    """The kill switch that stops an attempt; None where none does."""
    if not known:
        return None
    deliverable = job.attempt.deliverable
    tags = deliverable.tags if isinstance(deliverable, Schedule) else ()
    return known.stopping(job.attempt.event.id, tags, destination_of(deliverable.action))


def held(job: Job, target: Target, now: datetime) -> Delayed:
    """What becomes of a claimed event that is stopped: no attempt is counted."""
    event = job.attempt.event
    since = event.postponed_from or event.due_at
    metrics.held.inc()
    postponement = Postponement(
        event.id, job.lease.token, now + HELD_FOR, since, held_line(target), held=target.key
    )
    return Delayed(postponement, job.lease)
