"""Keeps claimed events from being sent at the last moment: by a kill switch or a blackout, or until their
tenant has a slot.

One thread looks at both several times a second while the worker has events, so that nothing that starts
attempts waits for MongoDB.
"""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from scheduler_app.clock import monotonic
from scheduler_app.domain.blackout import Cover
from scheduler_app.domain.ids import tenant_of
from scheduler_app.domain.instants import whole_milliseconds
from scheduler_app.domain.kill_switch import Target, held_line
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.tenant import DeliverySlots
from scheduler_app.store import Store
from scheduler_app.store.events.claims import Postponement
from scheduler_app.store.events.outbox import HELD_FOR
from scheduler_app.telemetry import metrics
from scheduler_app.telemetry.logs import UnexpectedErrors
from scheduler_app.usecases.stops import KILL_SWITCH_LOOK_SECONDS, BlackoutView, KillSwitchView
from scheduler_app.worker.attempt import Job
from scheduler_app.worker.recorder import Delayed

#: Older knowledge may no longer hold: this process, or its host, was frozen. Nothing starts by it:
#: a kill switch is obeyed within a second, however late the next look is.
STALE_SECONDS = 0.85
#: An event that is to be skipped comes to a beat again, which does it.
BACK_TO_BEAT = timedelta(seconds=2)


class Withholding(threading.Thread):
    """A thread of each worker process."""

    def __init__(self, store: Store, wait_for_events: Callable[[], None]) -> None:
        """`wait_for_events` returns at once while the worker has any, or stops."""
        super().__init__(name="withholding", daemon=True)
        self._wait_for_events = wait_for_events
        self.kill_switches = KillSwitchView(store)
        self.blackouts = BlackoutView(store)
        self._unexpected = UnexpectedErrors(
            metrics.worker_failures,
            "withholding.failed",
            "A look at kill switches and blackouts failed; nothing is sent before one succeeds",
            monotonic=monotonic,
        )
        self._ended = threading.Event()

    def run(self) -> None:
        while True:
            self._wait_for_events()
            try:
                if self.blackouts.is_old or not self.blackouts.has_answer:
                    self.blackouts.look()
                self.kill_switches.look()
            except Exception as error:  # without this thread nothing would be sent
                self._unexpected.note("withholding", error)
            if self._ended.wait(KILL_SWITCH_LOOK_SECONDS):
                return

    def stop(self) -> None:
        self._ended.set()

    def may_start(self) -> bool:
        """Whether what is known is fresh enough to start an attempt by it. A MongoDB that does not answer is
        no reason to stop: the last known state holds then. A process that has just started knows none before
        the first answers."""
        view = self.kill_switches
        if not (view.has_answer and self.blackouts.has_answer):
            return False
        return view.is_away or monotonic() - view.looked_at < STALE_SECONDS

    def slots_of(self, job: Job) -> DeliverySlots | None:
        """The limit of its tenant's attempts in flight, if it has one and the attempt has no slot yet. A
        suspect has none: its event says that its request is being made."""
        slots = self.kill_switches.known.delivery_slots
        if not slots or job.has_slot or job.isolated:
            return None
        tenant = tenant_of(job.attempt.event.id)
        return DeliverySlots(tenant, slots[tenant]) if tenant in slots else None

    def withheld(self, job: Job, now: datetime) -> Delayed | None:
        """The postponement of an attempt that must not start; None if it may start. No attempt is
        counted."""
        switches, blackouts = self.kill_switches.known, self.blackouts.known
        if not switches.targets and not blackouts.all:
            return None
        deliverable, event = job.attempt.deliverable, job.attempt.event
        tags = deliverable.tags if isinstance(deliverable, Schedule) else ()
        destination = deliverable.action.destination
        stopped = switches.stopping(event.id, tags, destination)
        if stopped is not None:
            return _held(job, stopped, now)
        cover = blackouts.covering(now, event.id, event.schedule_id, tags, destination)
        return None if cover is None else _blacked_out(job, cover, now)


def _held(job: Job, target: Target, now: datetime) -> Delayed:
    event = job.attempt.event
    since = event.postponed_from or event.due_at
    metrics.held.inc()
    postponement = Postponement(
        event.id, job.lease.token, now + HELD_FOR, since, held_line(target), held=target.key
    )
    return Delayed(postponement, job.lease)


def _blacked_out(job: Job, cover: Cover, now: datetime) -> Delayed:
    """The postponement of an event that was dispatched before the blackout was known, or that waited in this
    worker until it began."""
    event = job.attempt.event
    since = event.postponed_from or event.due_at
    due_at = cover.ends
    if cover.skips(event.run_time):
        due_at = min(due_at, whole_milliseconds(now + BACK_TO_BEAT))
    postponement = Postponement(event.id, job.lease.token, due_at, since, cover.postponed_line)
    return Delayed(postponement, job.lease)
