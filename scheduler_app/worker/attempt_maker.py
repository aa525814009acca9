"""What each event of a batch becomes: an attempt, or the result that it ends with instead.

An attempt then gets a lease that is as long as its timeout (the claim knew no timeouts), a completion token
before its request is made if its receiver says later how its work went, and a mark if it is a suspect: an
event that lost several workers, and may be what killed them.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from scheduler_app.domain.action import CALLBACKS
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.event import Event, new_completion_token, token_digest
from scheduler_app.domain.message import Message, UnreadableMessage
from scheduler_app.domain.schedule import Deliverable, Schedule
from scheduler_app.domain.states import SUSPECT_AFTER, Kind
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.destinations import CorruptDestination
from scheduler_app.store.events.completions import Completions, ExpectedCompletion
from scheduler_app.store.schedules.documents import CorruptSchedule
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.deeds.destinations import unreadable_reason
from scheduler_app.worker.attempt import Attempt, Job, postponed, set_aside
from scheduler_app.worker.batch import ClaimedBatch, Destinations, Schedules, is_withdrawn
from scheduler_app.worker.lease import Lease, Leases, timeout_class
from scheduler_app.worker.policies import HeldBack, judged_again_at
from scheduler_app.worker.recorder import AttemptResult, Delayed, GivenBack, Recorder, Result, Withdrawn

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
        held: HeldBack,
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
        self, event: Event, lease: Lease, schedules: Schedules, destinations: Destinations, held: HeldBack
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
            return Withdrawn(event.id, lease)
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
        named = deliverable.action.destination
        if named is None:
            return Attempt(event, deliverable, lease.token, self._worker)
        destination = destinations.get(named)
        if destination is None:
            return self._set_aside(
                event, lease, f"there is no destination {named}; create it, and redrive", deliverable
            )
        if isinstance(destination, CorruptDestination):
            if destination.readable_elsewhere:
                return self._left_to_others(event, lease, unreadable_reason(destination))
            return self._set_aside(event, lease, unreadable_reason(destination), deliverable)
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
        due_at = max(self._now(), event.due_at)
        return postponed(event, lease, due_at, reason, queue=queue, queue_by_destination=by_destination)

    def _set_aside(
        self, event: Event, lease: Lease, reason: str, deliverable: Deliverable | None = None
    ) -> AttemptResult:
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


class TimeoutLeases:
    """Threads share it."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases

    def by_class(
        self, attempts: Sequence[Attempt], lease: Lease
    ) -> Iterator[tuple[Lease, Sequence[Attempt]]]:
        """The attempts of each timeout class with their lease: `lease` itself, or one split off from it."""
        by_class: dict[float, list[Attempt]] = {}
        for attempt in attempts:
            by_class.setdefault(timeout_class(attempt.deliverable.timeout_seconds), []).append(attempt)
        for seconds, group in by_class.items():
            yield self._lease(lease, seconds, group), group

    def _lease(self, lease: Lease, seconds: float, attempts: Sequence[Attempt]) -> Lease:
        if seconds <= lease.timeout_seconds:
            return lease
        longer = lease.split((attempt.event.id for attempt in attempts), seconds)
        self._leases.add(longer)
        try:
            self._leases.renew(longer)
        except STORE_FAULTS as error:
            # No attempt starts under it until the thread of `Leases` has renewed it.
            log.warning(
                "lease.not_renewed", message="A longer lease was not granted yet", error=str(error)[:300]
            )
        return longer


def with_tokens(completions: Completions, attempts: Sequence[Attempt]) -> list[Attempt]:
    """The attempts, those that are awaited with tokens, and without those whose claims were lost meanwhile.
    Raises a STORE_FAULT."""
    found: list[Attempt] = []
    awaited: dict[str, Attempt] = {}
    expected: list[ExpectedCompletion] = []
    for attempt in attempts:
        if attempt.completion_seconds is None:
            found.append(attempt)
            continue
        token, event = new_completion_token(), attempt.event
        awaited[event.id] = replace(attempt, event=event._replace(completion_token=token))
        expected.append(_expected_completion(attempt, token_digest(token), attempt.completion_seconds))
    held = completions.expect(expected)
    return [*found, *(attempt for event_id, attempt in awaited.items() if event_id in held)]


def _expected_completion(attempt: Attempt, digested: str, seconds: float) -> ExpectedCompletion:
    policy, tries = attempt.deliverable.retry, attempt.number - attempt.event.attempts_before
    return ExpectedCompletion(
        event_id=attempt.event.id,
        claim=attempt.token,
        digest=digested,
        number=attempt.number,
        seconds=seconds,
        # Decided now, as by a failed response: ending the attempt later needs no schedule.
        retry_in=None if policy.spent(tries) else timedelta(seconds=policy.delay(tries)),
    )


class CompletionTokens:
    """Threads share it."""

    def __init__(self, store: Store, recorder: Recorder) -> None:
        self._completions = store.completions
        self._recorder = recorder

    def added_to(self, attempts: Sequence[Attempt], lease: Lease) -> Sequence[Attempt]:
        """The attempts, with tokens where their schedules ask for them; most do not. Gives back the events
        whose tokens could not be stored."""
        if not any(attempt.completion_seconds is not None for attempt in attempts):
            return attempts
        try:
            ready = with_tokens(self._completions, attempts)
        except STORE_FAULTS as error:
            log.warning(
                "deliver.not_expected",
                message="Tokens for receivers could not be stored; their events are given back",
                error=str(error)[:300],
            )
            ready = [attempt for attempt in attempts if attempt.completion_seconds is None]
        not_ready = {attempt.event.id for attempt in attempts} - {attempt.event.id for attempt in ready}
        if not_ready:
            self._recorder.put([GivenBack(event_id, lease) for event_id in not_ready])
        return ready


class Isolation:
    """Threads share it."""

    def __init__(self, store: Store, recorder: Recorder) -> None:
        self._claims = store.claims
        self._recorder = recorder

    def jobs(self, attempts: Sequence[Attempt], lease: Lease) -> list[Job]:
        """The attempts as jobs; those of suspects are isolated, so that the next loss tells whether the event
        was its cause. Gives back the suspects that could not be marked.

        The mark is written before the request: a worker that dies of the event leaves it.
        """
        found: list[Job] = []
        for attempt in attempts:
            is_suspect = attempt.event.lost_leases >= SUSPECT_AFTER
            if is_suspect and not self._marked(attempt, lease):
                self._recorder.put([GivenBack(attempt.event.id, lease)])
            else:
                found.append(Job(attempt, lease, attempt.deliverable.action.isolation_key, is_suspect))
        return found

    def _marked(self, attempt: Attempt, lease: Lease) -> bool:
        try:
            return self._claims.isolate(attempt.event.id, lease.token)
        except STORE_FAULTS as error:
            log.warning(
                "deliver.not_isolated",
                message="An event that lost several workers could not be marked; it is given back",
                event_id=attempt.event.id,
                error=str(error)[:300],
            )
            return False
