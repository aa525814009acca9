"""The step between claim and attempt: reads the schedules of a batch when it is due, and hands it over."""

import heapq
import itertools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

from scheduler_app.domain.deliverable import Deliverable
from scheduler_app.domain.destination import Destination, destination_of
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.event import SUSPECT_AFTER, Event, Kind
from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.lateness import Expiry
from scheduler_app.domain.message import Message, UnreadableMessage
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.destinations.documents import CorruptDestination
from scheduler_app.store.events.claims import Postponement
from scheduler_app.store.schedules.corrupt import CorruptSchedule
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.destinations import unreadable
from scheduler_app.worker.attempt import Attempt, set_aside
from scheduler_app.worker.awaited import with_tokens
from scheduler_app.worker.courier import Courier
from scheduler_app.worker.fatal_thread import EssentialThread
from scheduler_app.worker.flow_control import FlowControl
from scheduler_app.worker.followers import Followers
from scheduler_app.worker.job import Job
from scheduler_app.worker.late_events import LateEvents
from scheduler_app.worker.lease import Lease, Leases, timeout_class
from scheduler_app.worker.overlap import Held, Overlap
from scheduler_app.worker.recorder import Delayed, Expired, GivenBack, Outcome, Recorder, Result, Voided

log = get_logger(__name__)

Answer = TypeVar("Answer")

#: Batches whose schedules are read at the same time: dozens are due at one instant. All at once they take
#: longer, for each of them gets in the others' way.
READS_AT_ONCE = 4
#: The clock may be corrected while a batch waits for its time.
LOOK_SECONDS = 1.0
#: An event that this worker cannot do comes again for another one after so long.
LEFT_TO_OTHERS = timedelta(seconds=60)
BACKOFF_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


class ClaimedBatch(NamedTuple):
    """The events that one claim won, soonest first, and its lease."""

    events: Sequence[Event]
    lease: Lease


class Handover:
    """Batches wait here for their time, and hold no slot of the pool meanwhile. A few threads take them on.

    Schedules are read after the claim, never before: an edit that came in between is seen here, and one that
    comes later sees the claim. And not before their time: an edit that was answered by then is obeyed.
    """

    def __init__(
        self,
        store: Store,
        courier: Courier,
        flow_control: FlowControl,
        recorder: Recorder,
        leases: Leases,
        followers: Followers,
        *,
        serves: Callable[[str], bool],
        now: Callable[[], datetime],
        worker: str,
    ) -> None:
        """`serves` says of a kind of action whether this worker executes it. `now` is the clock, in UTC;
        `worker` is the name that people are shown."""
        self._store = store
        self._serves = serves
        self._courier = courier
        self._flow_control = flow_control
        self._recorder = recorder
        self._leases = leases
        self._late_events = LateEvents(store)
        self._followers = followers
        self._overlap = Overlap(store, now=now)
        self._now = now
        self._worker = worker
        self._waiting: list[tuple[datetime, int, ClaimedBatch]] = []
        self._order = itertools.count()
        lock = threading.Lock()
        # One thread waits for the time of the next batch, the others for their turn to do so: if all of them
        # waited for that instant, each event would wake them all.
        self._changed = threading.Condition(lock)
        self._turn = threading.Condition(lock)
        self._is_waited_for = False
        self._ending = threading.Event()
        self._giving_back = False
        self._ended = False
        self._threads = [_HandoverThread(self) for _ in range(READS_AT_ONCE)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self, seconds: float) -> None:
        for thread in self._threads:
            thread.join(seconds)

    def put(self, batch: ClaimedBatch) -> None:
        """Takes over a batch; its events reach the courier at their time, or the recorder."""
        with self._changed:
            heapq.heappush(self._waiting, (batch.events[0].due_at, next(self._order), batch))
            self._changed.notify()

    def give_back(self) -> None:
        """From now on every batch is given back: the worker ends."""
        with self._changed:
            self._giving_back = True
            self._wake_all()

    def stop(self) -> None:
        with self._changed:
            self._ended = True
            self._wake_all()

    def take_on(self) -> bool:
        """Waits for a batch whose time has come, and hands it over; False when the worker ends."""
        batch = self._due()
        if batch is None:
            return False
        if self._giving_back:
            self._recorder.put([GivenBack(event.id, batch.lease) for event in batch.events])
        else:
            self._hand_over(batch)
        return True

    def _due(self) -> ClaimedBatch | None:
        with self._changed:
            while not self._ended:
                if self._waiting and self._is_due():
                    self._turn.notify()
                    return heapq.heappop(self._waiting)[2]
                if self._is_waited_for:
                    self._turn.wait()
                else:
                    self._is_waited_for = True
                    self._changed.wait(self._seconds_to_next())
                    self._is_waited_for = False
        return None

    def _wake_all(self) -> None:
        self._ending.set()
        self._changed.notify_all()
        self._turn.notify_all()

    def _is_due(self) -> bool:
        return self._giving_back or self._waiting[0][0] <= self._now()

    def _seconds_to_next(self) -> float | None:
        if not self._waiting:
            return None
        return min(LOOK_SECONDS, max(0.0, (self._waiting[0][0] - self._now()).total_seconds()))

    def _hand_over(self, batch: ClaimedBatch) -> None:
        # A claim brings messages whole.
        ids = {event.schedule_id for event in batch.events if event.kind is not Kind.MESSAGE}
        schedules = self._read(list(ids)) if ids else {}
        expired = None if schedules is None else self._expired(batch, schedules)
        if schedules is None or expired is None:
            self._recorder.put([GivenBack(event.id, batch.lease) for event in batch.events])
            return
        if expired:
            # Before what holds events back: nothing waits, and no line is held, for what is not sent.
            batch = self._expire(batch, schedules, expired)
        destinations = self._destinations_of(batch.events, schedules)
        held = self._held_back(batch, schedules)
        if destinations is None or held is None:
            self._recorder.put([GivenBack(event.id, batch.lease) for event in batch.events])
        elif jobs := self._jobs(batch, schedules, destinations, held):
            self._send(jobs, destinations)

    def _expired(
        self, batch: ClaimedBatch, schedules: Mapping[str, Schedule | CorruptSchedule]
    ) -> Mapping[str, Expiry] | None:
        """Those that are too late by a policy of their own: most have none. None as in `_read`."""
        judged = [
            (event, asked)
            for event in batch.events
            if isinstance(asked := event.message or schedules.get(event.schedule_id), Schedule | Message)
            and asked.lateness.judges
            and not (isinstance(asked, Schedule) and _withdrawn(event, asked))
        ]
        return self._asked(lambda: self._late_events.expired(judged, self._now())) if judged else {}

    def _expire(
        self,
        batch: ClaimedBatch,
        schedules: Mapping[str, Schedule | CorruptSchedule],
        expired: Mapping[str, Expiry],
    ) -> ClaimedBatch:
        """Gives the late events to the recorder, and returns the batch without them."""
        late = [event for event in batch.events if event.id in expired]
        # What waits for one of them goes on.
        owners = ((event, schedules.get(event.schedule_id)) for event in late)
        self._followers.note([(event, owner) for event, owner in owners if isinstance(owner, Schedule)])
        self._recorder.put([Expired(event.id, batch.lease, expired[event.id]) for event in late])
        return batch._replace(events=[event for event in batch.events if event.id not in expired])

    def _held_back(
        self, batch: ClaimedBatch, schedules: Mapping[str, Schedule | CorruptSchedule]
    ) -> Held | None:
        """What earlier events of their schedules keep from running; most schedules do not ask. None as in
        `_read`."""
        asking = {
            each.id: each
            for each in schedules.values()
            if isinstance(each, Schedule) and each.run_overlap != "allow"
        }
        if not asking:
            return {}
        pairs = [
            (event, schedule)
            for event in batch.events
            if (schedule := asking.get(event.schedule_id)) and not _withdrawn(event, schedule)
        ]
        self._followers.note(pairs)
        return self._asked(lambda: self._overlap.held_back(pairs, batch.lease))

    def _send(
        self, jobs: Sequence[Job], destinations: Mapping[str, Destination | CorruptDestination]
    ) -> None:
        """To the courier, by flow control where the destination has limits. Most have no destination."""
        if not destinations:
            self._courier.send(jobs)
            return
        free: list[Job] = []
        limited: list[tuple[Destination, Job]] = []
        for job in jobs:
            named = destinations.get(destination_of(job.attempt.deliverable.action) or "")
            if isinstance(named, Destination) and named.is_limited:
                limited.append((named, job))
            else:
                free.append(job)
        if free:
            self._courier.send(free)
        if limited:
            self._flow_control.put(limited)

    def _read(self, ids: Sequence[str]) -> dict[str, Schedule | CorruptSchedule] | None:
        """The schedules; None when the worker ends before MongoDB gave them."""
        return self._asked(lambda: self._store.schedules.for_delivery(ids))

    def _destinations_of(
        self, events: Sequence[Event], schedules: Mapping[str, Schedule | CorruptSchedule]
    ) -> dict[str, Destination | CorruptDestination] | None:
        """The destinations that the schedules and messages name; most name none. None as in `_read`."""
        found = (*schedules.values(), *(event.message for event in events))
        actions = (each.action for each in found if isinstance(each, Schedule | Message))
        ids = {own_id for action in actions if (own_id := destination_of(action))}
        return self._asked(lambda: self._store.destinations.for_delivery(list(ids))) if ids else {}

    def _asked(self, ask: Callable[[], Answer]) -> Answer | None:
        """What MongoDB answers, as long as that takes; None when the worker ends before."""
        for pause in itertools.chain(BACKOFF_SECONDS, itertools.repeat(BACKOFF_SECONDS[-1])):
            try:
                return ask()
            except STORE_FAULTS as error:
                log.warning(
                    "deliver.delayed",
                    message="MongoDB does not give what claimed events need; the worker asks again",
                    retry_in_seconds=pause,
                    error=str(error)[:300],
                )
            if self._ending.wait(pause):
                return None
        raise AssertionError("unreachable")

    def _jobs(
        self,
        batch: ClaimedBatch,
        schedules: Mapping[str, Schedule | CorruptSchedule],
        destinations: Mapping[str, Destination | CorruptDestination],
        held: Held,
    ) -> list[Job]:
        """What is to be sent of a batch; what was withdrawn and what cannot be read goes to the recorder."""
        by_class: dict[float, list[Attempt]] = {}
        for event in batch.events:
            try:
                schedule = schedules.get(event.schedule_id)
                found = held.get(event.id) or self._sorted_out(event, schedule, destinations, batch.lease)
            except Exception as error:  # raised again, it would end each worker that claims this event
                log.exception(
                    "deliver.broken", message="An event breaks our code; it is set aside", event_id=event.id
                )
                found = self._set_aside(event, batch.lease, f"{type(error).__name__}: {error}")
            if isinstance(found, Attempt):
                by_class.setdefault(timeout_class(found.deliverable.timeout_seconds), []).append(found)
            else:
                self._recorder.put([found])
        return [
            Job(attempt, lease, attempt.deliverable.action.isolation_key, isolated)
            for seconds, attempts in by_class.items()
            for lease in [self._lease(batch.lease, seconds, attempts)]
            for attempt, isolated in self._isolated(self._awaited(attempts, lease), lease)
        ]

    def _sorted_out(
        self,
        event: Event,
        schedule: Schedule | CorruptSchedule | None,
        destinations: Mapping[str, Destination | CorruptDestination],
        lease: Lease,
    ) -> Attempt | Result:
        """What is to be sent, or what becomes of the event instead."""
        if event.kind is Kind.MESSAGE:
            return self._message(event, destinations, lease)
        if isinstance(schedule, CorruptSchedule):
            if schedule.readable_elsewhere:
                return self._left_to_others(event, lease, f"it cannot read the schedule: {schedule.reason}")
            return self._set_aside(event, lease, f"its schedule cannot be read: {schedule.reason}")
        if schedule is None or _withdrawn(event, schedule):
            return Voided(event.id, lease)
        return self._attempt(event, schedule, destinations, lease)

    def _message(
        self, event: Event, destinations: Mapping[str, Destination | CorruptDestination], lease: Lease
    ) -> Attempt | Result:
        message = event.message
        if isinstance(message, UnreadableMessage) and message.readable_elsewhere:
            return self._left_to_others(event, lease, f"it cannot read the message: {message.reason}")
        if not isinstance(message, Message):
            reason = message.reason if message else "it has no content"
            return self._set_aside(event, lease, f"its message cannot be read: {reason}")
        return self._attempt(event, message, destinations, lease)

    def _attempt(
        self,
        event: Event,
        deliverable: Schedule | Message,
        destinations: Mapping[str, Destination | CorruptDestination],
        lease: Lease,
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
        try:
            applied = destination.applied_to(deliverable)
        except InvalidField as error:
            return self._set_aside(event, lease, f"{error.field}: {error.message}", deliverable)
        return Attempt(event, applied, lease.token, self._worker)

    def _set_aside(
        self, event: Event, lease: Lease, reason: str, deliverable: Deliverable | None = None
    ) -> Outcome:
        return Outcome(set_aside(event, lease.token, self._worker, reason, self._now(), deliverable), lease)

    def _left_to_others(self, event: Event, lease: Lease, reason: str, queue: str | None = None) -> Delayed:
        """Nothing is wrong with the event: another worker may have the key, or the release, that it needs. It
        moves to `queue`, which an edit may have changed after it was made."""
        due_at = self._now() + LEFT_TO_OTHERS
        message = f"Postponed to {shown_instant(due_at)}: {self._worker} leaves it to others: {reason}"
        since = event.postponed_from or event.due_at
        return Delayed(Postponement(event.id, lease.token, due_at, since, message, queue), lease)

    def _lease(self, lease: Lease, seconds: float, attempts: Iterable[Attempt]) -> Lease:
        """The lease of events of one timeout class: the claim knew no timeouts."""
        if seconds <= lease.timeout_seconds:
            return lease
        longer = lease.split((attempt.event.id for attempt in attempts), seconds)
        self._leases.add(longer)
        try:
            self._leases.renew(longer)
        except STORE_FAULTS as error:
            # Nothing starts under it until it has been renewed, which the leases' thread tries again.
            log.warning(
                "lease.not_renewed", message="A longer lease was not granted yet", error=str(error)[:300]
            )
        return longer

    def _awaited(self, attempts: Sequence[Attempt], lease: Lease) -> Sequence[Attempt]:
        """With tokens where receivers are to say how their work went; most are not."""
        if not any(attempt.completion_seconds is not None for attempt in attempts):
            return attempts
        try:
            ready = with_tokens(self._store.completions, attempts)
        except STORE_FAULTS as error:
            log.warning(
                "deliver.not_expected",
                message="Tokens for receivers could not be stored; their events are given back",
                error=str(error)[:300],
            )
            ready = [attempt for attempt in attempts if attempt.completion_seconds is None]
        left = {attempt.event.id for attempt in attempts} - {attempt.event.id for attempt in ready}
        if left:
            self._recorder.put([GivenBack(event_id, lease) for event_id in left])
        return ready

    def _isolated(self, attempts: Sequence[Attempt], lease: Lease) -> list[tuple[Attempt, bool]]:
        """Marks those whose workers were lost before, so that the next loss tells whether it was their own.

        The mark is written before the request: a worker that dies of the event leaves it.
        """
        marked: list[tuple[Attempt, bool]] = []
        for attempt in attempts:
            if attempt.event.lost_leases < SUSPECT_AFTER:
                marked.append((attempt, False))
                continue
            try:
                held = self._store.claims.isolate(attempt.event.id, lease.token)
            except STORE_FAULTS as error:
                log.warning(
                    "deliver.not_isolated",
                    message="An event that lost several workers could not be marked; it is given back",
                    event_id=attempt.event.id,
                    error=str(error)[:300],
                )
                held = False
            if held:
                marked.append((attempt, True))
            else:
                self._recorder.put([GivenBack(attempt.event.id, lease)])
        return marked


class _HandoverThread(EssentialThread):
    def __init__(self, handover: Handover) -> None:
        super().__init__("handover")
        self._handover = handover

    def work(self) -> None:
        while self._handover.take_on():
            continue


def _withdrawn(event: Event, schedule: Schedule) -> bool:
    if event.revision < schedule.first_revision:
        return True
    if event.kind in (Kind.MANUAL, Kind.BACKFILL):
        return schedule.state is ScheduleState.DELETED
    if event.lost_leases and schedule.state is not ScheduleState.DELETED:
        # It may have been sent, and the revision that followed an edit leaves this instant to it.
        return schedule.state is ScheduleState.PAUSED and event.run_time > schedule.revised_at
    return schedule.voids(event.revision, event.run_time)
