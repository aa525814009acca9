"""What each event of a batch becomes: an attempt, or the result that it ends with instead."""

from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime, timedelta

from scheduler_app.domain.deliverable import Deliverable
from scheduler_app.domain.destination import Destination, destination_of
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.event import Event, Kind
from scheduler_app.domain.message import Message, UnreadableMessage
from scheduler_app.domain.queues import CALLBACKS
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store.destinations.documents import CorruptDestination
from scheduler_app.store.schedules.corrupt import CorruptSchedule
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.destinations import unreadable
from scheduler_app.worker.attempt import Attempt
from scheduler_app.worker.handover.batch import ClaimedBatch, Destinations, Schedules
from scheduler_app.worker.handover.withdrawal import is_withdrawn
from scheduler_app.worker.late_events import judged_again_at
from scheduler_app.worker.lease import Lease
from scheduler_app.worker.overlap import Held
from scheduler_app.worker.recorder import Delayed, Outcome, Recorder, Result, Voided
from scheduler_app.worker.unsent import postponed, set_aside

log = get_logger(__name__)

#: An event that this worker cannot do becomes due for another worker after this time.
LEFT_TO_OTHERS = timedelta(seconds=60)


class AttemptMaker:
    """Threads share it."""

    def __init__(
        self,
        recorder: Recorder,
        *,
        serves: Callable[[str], bool],
        now: Callable[[], datetime],
        worker: str,
        queues: Collection[str],
    ) -> None:
        """`serves` says of a kind of action whether this worker executes it. `now` is the clock, in UTC;
        `worker` is the name that people are shown, `queues` are those that it serves."""
        self._recorder = recorder
        self._serves = serves
        self._now = now
        self._worker = worker
        self._queues = queues

    def attempts(
        self,
        batch: ClaimedBatch,
        schedules: Schedules,
        destinations: Destinations,
        held: Held,
        judged_at: datetime,
    ) -> list[Attempt]:
        """The attempts that may start, as late as `judged_at`. Every other event goes to the
        recorder: those that are held back, that were withdrawn, or that this worker cannot read or execute.
        """
        found: list[Attempt] = []
        for event in batch.events:
            result = self._attempt_or_result(event, batch.lease, schedules, destinations, held)
            if isinstance(result, Attempt):
                found.append(_with_limit(result, judged_at))
            else:
                self._recorder.put([result])
        return found

    def _attempt_or_result(
        self, event: Event, lease: Lease, schedules: Schedules, destinations: Destinations, held: Held
    ) -> Attempt | Result:
        try:
            if event.id in held:
                return held[event.id]
            if event.kind is Kind.MESSAGE:
                return self._of_message(event, destinations, lease)
            return self._of_schedule(event, schedules.get(event.schedule_id), destinations, lease)
        except Exception as error:  # raised again, it would end each worker that claims this event
            log.exception(
                "deliver.broken", message="An event breaks our code; it is set aside", event_id=event.id
            )
            return self._set_aside(event, lease, f"{type(error).__name__}: {error}")

    def _of_schedule(
        self,
        event: Event,
        schedule: Schedule | CorruptSchedule | None,
        destinations: Destinations,
        lease: Lease,
    ) -> Attempt | Result:
        if isinstance(schedule, CorruptSchedule):
            if schedule.readable_elsewhere:
                return self._left_to_others(event, lease, f"it cannot read the schedule: {schedule.reason}")
            return self._set_aside(event, lease, f"its schedule cannot be read: {schedule.reason}")
        if schedule is None or is_withdrawn(event, schedule):
            return Voided(event.id, lease)
        return self._of_deliverable(event, schedule, destinations, lease)

    def _of_message(self, event: Event, destinations: Destinations, lease: Lease) -> Attempt | Result:
        message = event.message
        if isinstance(message, UnreadableMessage) and message.readable_elsewhere:
            return self._left_to_others(event, lease, f"it cannot read the message: {message.reason}")
        if not isinstance(message, Message):
            reason = message.reason if message else "it has no content"
            return self._set_aside(event, lease, f"its message cannot be read: {reason}")
        return self._of_deliverable(event, message, destinations, lease)

    def _of_deliverable(
        self, event: Event, deliverable: Schedule | Message, destinations: Destinations, lease: Lease
    ) -> Attempt | Result:
        kind = deliverable.action.kind
        if not self._serves(kind):
            queue = deliverable.queue if isinstance(deliverable, Schedule) else None
            return self._left_to_others(event, lease, f"it executes no actions of kind {kind}", queue)
        named = destination_of(deliverable.action)
        if named is None:
            return Attempt(event, deliverable, lease.token, self._worker)
        destination = destinations.get(named)
        if destination is None:
            return self._set_aside(
                event, lease, f"there is no destination {named}; create it, and redrive", deliverable
            )
        if isinstance(destination, CorruptDestination):
            if destination.readable_elsewhere:
                return self._left_to_others(event, lease, unreadable(destination))
            return self._set_aside(event, lease, unreadable(destination), deliverable)
        queue = destination.queue_for(deliverable.queue)
        if deliverable.queue == CALLBACKS and queue not in self._queues:
            return self._moved(event, lease, destination, queue)
        try:
            applied = destination.applied_to(deliverable)
        except InvalidField as error:
            return self._set_aside(event, lease, f"{error.field}: {error.message}", deliverable)
        return Attempt(event, applied, lease.token, self._worker, destination.version)

    def _moved(self, event: Event, lease: Lease, destination: Destination, queue: str) -> Delayed:
        """The destination's queue was changed after the event was dispatched."""
        reason = f"its destination {destination.name} is now for the queue {queue}"
        by_destination = queue != CALLBACKS
        return postponed(event, lease, self._now(), reason, queue=queue, queue_by_destination=by_destination)

    def _set_aside(
        self, event: Event, lease: Lease, reason: str, deliverable: Deliverable | None = None
    ) -> Outcome:
        return set_aside(event, lease, self._worker, reason, self._now(), deliverable)

    def _left_to_others(self, event: Event, lease: Lease, reason: str, queue: str | None = None) -> Delayed:
        """Postpones an event that another worker can do: this one lacks the key, or the release, that it
        needs. The event moves to `queue`, which an edit may have changed after it was made."""
        reason = f"{self._worker} leaves it to others: {reason}"
        return postponed(event, lease, self._now() + LEFT_TO_OTHERS, reason, queue=queue)


def _with_limit(attempt: Attempt, judged_at: datetime) -> Attempt:
    """The attempt, with the time until which it holds that it is not late."""
    asked = attempt.deliverable
    if not (asked.lateness.judges and isinstance(asked, Schedule | Message)):
        return attempt
    return replace(attempt, judged_again_at=judged_again_at(attempt.event, asked, judged_at))
