"""Judges claimed events again that wait in this worker: what it holds obeys the present.

An event is judged when it is handed over, by its schedule, its destination and the time. One that then waits,
for room at its destination or for its origin's share, is judged again when one of these has changed.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from scheduler_app.clock import monotonic
from scheduler_app.domain.event import Event
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.schedules.schedules import ScheduleFacts
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.telemetry.logs import UnexpectedErrors
from scheduler_app.worker.attempt import Job
from scheduler_app.worker.lease import Lease
from scheduler_app.worker.recorder import Recorder, Withdrawn

log = get_logger(__name__)

#: A change is obeyed within two seconds: a look that just missed it, the next one, and its answer.
LOOK_SECONDS = 1.0


class Present(NamedTuple):
    """What holds of schedules and destinations at a moment. None: there is none of that id any more."""

    schedules: Mapping[str, ScheduleFacts | None]
    destinations: Mapping[str, object]
    """The versions of destinations as they are stored."""
    cancelled: Mapping[str, str]
    """The events that people cancel, and what their histories say of it."""

    def differs(self, job: Job) -> bool:
        """Whether the job was made of another state than this one. What was not asked for does not differ."""
        attempt = job.attempt
        deliverable = attempt.deliverable
        if isinstance(deliverable, Schedule) and deliverable.id in self.schedules:
            facts = ScheduleFacts(deliverable.version, deliverable.revision, deliverable.state.value)
            if self.schedules[deliverable.id] != facts:
                return True
        named = deliverable.action.destination
        return (
            named is not None
            and named in self.destinations
            and self.destinations[named] != attempt.destination_version
        )

    def cancels(self, job: Job) -> bool:
        """Whether a person cancels the job's event."""
        return job.attempt.event.id in self.cancelled

    def voided(self, job: Job) -> Withdrawn:
        """The end of a job that is cancelled."""
        event_id = job.attempt.event.id
        return Withdrawn(event_id, job.lease, self.cancelled[event_id])

    def parted(self, jobs: Collection[Job]) -> tuple[list[Job], list[Job], list[Job]]:
        """Those of the jobs that stay as they are, that are to be judged again, and that are cancelled."""
        stay: list[Job] = []
        again: list[Job] = []
        cancelled: list[Job] = []
        for job in jobs:
            if self.cancels(job):
                cancelled.append(job)
            elif self.differs(job):
                again.append(job)
            else:
                stay.append(job)
        return stay, again, cancelled


class Waits(Protocol):
    """A part of the worker in which jobs wait."""

    def waiting(self) -> Sequence[Job]:
        """The jobs that wait, for a second or longer. Any thread may call it."""
        ...

    def compare(self, present: Present) -> None:
        """Lets go of the jobs that differ from it, before it starts another one. Any thread may call it."""
        ...


class Rejudging(threading.Thread):
    """A thread of each worker process. It asks MongoDB nothing while nothing waits."""

    def __init__(
        self,
        store: Store,
        recorder: Recorder,
        *,
        places: Sequence[Waits],
        take_out: Callable[[Collection[str]], Sequence[tuple[Event, Lease]]],
        in_flight: Callable[[], Collection[str]],
        held: Callable[[], int],
    ) -> None:
        """`take_out` gives the events of these ids that were claimed and not judged yet; `in_flight` are the
        events whose requests are being made, `held` how many events this worker has in all."""
        super().__init__(name="rejudging", daemon=True)
        self._store = store
        self._recorder = recorder
        self._places = places
        self._take_out = take_out
        self._in_flight = in_flight
        self._held = held
        self._is_away = False
        self.looks = 0
        """How often it has looked."""
        self._unexpected = UnexpectedErrors(
            metrics.worker_failures,
            "rejudging.failed",
            "A look at what waits in this worker failed; the next one follows",
            monotonic=monotonic,
        )
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            try:
                self.look()
                self._is_away = False
            except STORE_FAULTS as error:
                # What cannot be read cannot have been changed by a request either, or was just now.
                if not self._is_away:
                    log.warning(
                        "rejudging.unknown",
                        message="Whether what waits may still be sent cannot be read; it is asked again",
                        error=str(error)[:300],
                    )
                self._is_away = True
            except Exception as error:  # without this thread what waits would obey the past
                self._unexpected.note("rejudging", error)
            self.looks += 1

    def stop(self) -> None:
        self._ended.set()

    def look(self) -> None:
        """Compares what waits with what holds now. Raises a STORE_FAULT."""
        if not self._held():
            return
        cancelled = self._store.cancel_requests.texts()
        waiting = [job for place in self._places for job in place.waiting()]
        schedules = {made.id for job in waiting if isinstance(made := job.attempt.deliverable, Schedule)}
        named = {own_id for job in waiting if (own_id := job.attempt.deliverable.action.destination)}
        if not (schedules or named or cancelled):
            return
        present = Present(
            self._store.schedules.facts(schedules) if schedules else {},
            self._store.destinations.versions(named) if named else {},
            cancelled,
        )
        for place in self._places:
            place.compare(present)
        if cancelled:
            self._cancel(cancelled)

    def _cancel(self, asked: Mapping[str, str]) -> None:
        """Cancels what was not handed over yet, and answers for what is in flight."""
        self._recorder.put(
            [Withdrawn(event.id, lease, asked[event.id]) for event, lease in self._take_out(asked)]
        )
        if refused := set(asked).intersection(self._in_flight()):
            self._store.cancel_requests.remove(refused)
