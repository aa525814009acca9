"""What the policies of schedules and messages make of claimed events, before anything else is done for them:
which are too late, and which wait for earlier ones, are left out or end these.

A worker judges an event after it has claimed it, and by what MongoDB says of earlier events of the
schedule then. The earliest unfinished event is never held back, so that the others wait for something that
ends: for an attempt, for the last retry, or for recovery, which ends the claims of dead workers. A worker
that dies between the claim and the verdict leaves an event without an attempt; its next worker judges it
again. Events that wait for earlier ones are woken as soon as those end.
"""

import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from scheduler_app.clock import monotonic
from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.event import Event, due
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.instants import shown_instant, whole_milliseconds
from scheduler_app.domain.lateness import CatchUp, Expiry, Lateness
from scheduler_app.domain.message import Message
from scheduler_app.domain.schedule import OverlapScope, Schedule, ScheduleState, next_look
from scheduler_app.domain.states import Kind, State
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.events.claims import Postponement
from scheduler_app.store.events.overlaps import UnfinishedEvent, UnsentOutcome, superseded_message
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.telemetry.logs import UnexpectedErrors
from scheduler_app.worker.attempt import set_aside
from scheduler_app.worker.batch import ClaimedBatch, Schedules, StoreRetry, is_withdrawn
from scheduler_app.worker.capacity import WorkerStopping
from scheduler_app.worker.lease import Lease
from scheduler_app.worker.recorder import AttemptResult, Delayed, EndedUnsent, Expired, Recorder

log = get_logger(__name__)

#: Schedules whose next event is looked up. Beyond that bound, a waiting event finds out by itself: it looks
#: now and then.
MAX_WAITING = 10_000
#: Claimed events that are remembered. An event that loses its lease before its request may never be settled.
MAX_HELD = 100_000
STOP = ""


class Followers(threading.Thread):
    """A thread of each worker process; it does nothing where no schedule queues its events.

    It is told of each event of such a schedule that this worker is done with, also of one that began to wait:
    the one that it waits for may have ended before that was written.
    """

    def __init__(self, store: Store, *, now: Callable[[], datetime]) -> None:
        super().__init__(name="followers", daemon=True)
        self._overlaps = store.overlaps
        self._now = now
        self._deliver: Callable[[list[str]], int] | None = None
        self._held: dict[str, tuple[str, OverlapScope]] = {}
        self._ended: queue.Queue[tuple[str, OverlapScope]] = queue.Queue(MAX_WAITING)
        self._lock = threading.Lock()
        self._unexpected = UnexpectedErrors(
            metrics.worker_failures,
            "followers.failed",
            "A waiting event could not be woken",
            monotonic=monotonic,
        )

    def deliver_by(self, deliver: Callable[[list[str]], int]) -> None:
        """Sets what claims the events that were woken. Call it before `start`."""
        self._deliver = deliver

    def note(self, pairs: Iterable[tuple[Event, Schedule]]) -> None:
        """Takes events that this worker has claimed."""
        with self._lock:
            for event, schedule in pairs:
                if schedule.run_overlap == "queue":
                    self._held[event.id] = schedule.id, schedule.overlap_scope
            while len(self._held) > MAX_HELD:
                del self._held[next(iter(self._held))]

    def settled(self, event_ids: Collection[str]) -> None:
        """Takes events that this worker has nothing to do with any more."""
        if not self._held:
            return
        with self._lock:
            found = {self._held.pop(each) for each in event_ids if each in self._held}
        for each in found:
            self._put(each)

    def _put(self, schedule: tuple[str, OverlapScope]) -> None:
        try:
            self._ended.put_nowait(schedule)
        except queue.Full:
            log.warning(
                "followers.full",
                message="More schedules wait than can be looked up; their next events look by themselves",
            )

    def run(self) -> None:
        while True:
            schedule_id, scope = self._ended.get()
            if schedule_id == STOP:
                return
            try:
                woken = self._overlaps.wake_next(schedule_id, self._now(), scope=scope)
                if woken is not None and self._deliver is not None:
                    # Without a message: a beat sends one as well, should this worker not claim it.
                    self._deliver([woken.id])
            except STORE_FAULTS as error:
                # The event looks by itself after some seconds.
                log.warning(
                    "followers.delayed",
                    message="The next event of a schedule could not be woken; it will check by itself",
                    schedule_id=schedule_id,
                    error=str(error)[:300],
                )
            except WorkerStopping:
                return
            except Exception as error:  # one schedule's fault must not keep the others' events waiting
                # Its event looks by itself, as after a fault of the store.
                self._unexpected.note("followers", error, schedule_id=schedule_id)

    def stop(self) -> None:
        """Ends the thread after the schedules that were put before; a full queue has no room for that, and
        the thread ends with the process."""
        try:
            self._ended.put_nowait((STOP, "event"))
        except queue.Full:
            log.debug("followers.abandoned", message="The process ends with events to be woken")


HeldBack = dict[str, Delayed | EndedUnsent | AttemptResult]


class Overlap:
    """Judges events of schedules whose `run_overlap` is not `allow`. Threads share it."""

    def __init__(self, store: Store, *, now: Callable[[], datetime], worker: str) -> None:
        """`now` is the clock, in UTC; `worker` is the name that people are shown."""
        self._overlaps = store.overlaps
        self._now = now
        self._worker = worker

    def held_back(self, pairs: Sequence[tuple[Event, Schedule]], lease: Lease) -> HeldBack:
        """The claimed events whose requests are not made now, by their ids, and what becomes of
        them instead. Raises a STORE_FAULT."""
        by_schedule: defaultdict[str, list[Event]] = defaultdict(list)
        schedules = {}
        for event, schedule in pairs:
            if event.kind is Kind.BACKFILL:
                continue
            by_schedule[schedule.id].append(event)
            schedules[schedule.id] = schedule
        held: HeldBack = {}
        for schedule_id, events in by_schedule.items():
            held |= self._held_of(schedules[schedule_id], events, lease)
        return held

    def _held_of(self, schedule: Schedule, events: Sequence[Event], lease: Lease) -> HeldBack:
        """Judges the events of one schedule. A schedule that breaks our code stops no other one: its events
        are set aside, because without a judgement their runs might overlap."""
        if schedule.run_overlap != "cancel_earlier":
            # A retry belongs to a run that has begun, which nothing holds back.
            events = [event for event in events if event.attempt == event.attempts_before]
            if not events:
                return {}
        try:
            if schedule.run_overlap == "cancel_earlier":
                return self._cancelled(events, lease)
            return self._after_earlier(schedule, events, lease)
        except STORE_FAULTS:
            raise
        except Exception as error:
            log.exception(
                "overlap.unjudged",
                message="The overlap of a schedule's runs cannot be judged; its claimed events are set aside",
                schedule_id=schedule.id,
            )
            reason = f"run_overlap cannot be judged: {type(error).__name__}: {error}"
            return {event.id: self._set_aside(event, schedule, reason, lease) for event in events}

    def _set_aside(self, event: Event, schedule: Schedule, reason: str, lease: Lease) -> AttemptResult:
        return set_aside(event, lease, self._worker, reason, self._now(), schedule)

    def _cancelled(self, events: Sequence[Event], lease: Lease) -> HeldBack:
        # First cancel what is older than the newest event of the batch, then ask which events newer ones have
        # cancelled: of several in one batch the newest runs, as if they had come one by one.
        self._overlaps.supersede(max(events, key=_order), self._now())
        found = self._overlaps.superseded([event.id for event in events])
        metrics.overlaps.labels("cancelled").inc(len(found))
        return {
            event_id: EndedUnsent(
                UnsentOutcome(event_id, lease.token, State.CANCELLED, superseded_message(newer)), lease
            )
            for event_id, newer in found.items()
        }

    def _after_earlier(self, schedule: Schedule, events: Sequence[Event], lease: Lease) -> HeldBack:
        queues = schedule.run_overlap == "queue"
        unfinished = self._overlaps.unfinished(
            schedule.id,
            max(event.run_time for event in events),
            scope=schedule.overlap_scope,
            # Enough to know which waiting event has the last place in the queue.
            limit=schedule.queue_limit + 1 if queues else 1,
        )
        places = {each.id: place for place, each in enumerate(unfinished)}
        held: HeldBack = {}
        for event in events:
            place = places.get(event.id, len(unfinished))
            if not unfinished or _order(event) <= _order(unfinished[0]):
                continue
            if not queues:
                held[event.id] = self._skipped(event, lease, unfinished[0], "skip")
            elif event.id in places or event.postponed_from is not None:
                held[event.id] = self._queued(event, lease, unfinished[place - 1], place)
            else:
                policy = f"queue with room for {schedule.queue_limit}"
                held[event.id] = self._skipped(event, lease, unfinished[0], policy)
        return held

    @staticmethod
    def _skipped(event: Event, lease: Lease, earlier: UnfinishedEvent, policy: str) -> EndedUnsent:
        metrics.overlaps.labels("skipped").inc()
        message = (
            f"Skipped: run_overlap is {policy}, and the earlier event {name_of(earlier.id)} is"
            f" {earlier.state.value}"
        )
        return EndedUnsent(UnsentOutcome(event.id, lease.token, State.SKIPPED, message), lease)

    def _queued(self, event: Event, lease: Lease, earlier: UnfinishedEvent, place: int) -> Delayed:
        metrics.overlaps.labels("queued").inc()
        now, since = self._now(), event.postponed_from or event.due_at
        due_at = whole_milliseconds(now + next_look(now - since, place))
        message = (
            f"Waits in place {place} for the earlier event {name_of(earlier.id)}, until"
            f" {shown_instant(due_at)} at the latest: run_overlap is queue"
        )
        return Delayed(
            Postponement(event.id, lease.token, due_at, since, message, waits_for=earlier.id), lease
        )


def _order(each: Event | UnfinishedEvent) -> tuple[datetime, str]:
    return each.run_time, each.id


class OverlapCheck:
    """Threads share it."""

    def __init__(self, overlap: Overlap, followers: Followers, retrying: StoreRetry) -> None:
        self._overlap = overlap
        self._followers = followers
        self._retrying = retrying

    def held_back(self, batch: ClaimedBatch, schedules: Schedules) -> HeldBack:
        """The events whose requests are not made now, by their ids; most schedules allow runs to overlap.
        Raises Stopping."""
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
            if (schedule := asking.get(event.schedule_id)) and not is_withdrawn(event, schedule)
        ]
        self._followers.note(pairs)
        return self._retrying.until_answered(lambda: self._overlap.held_back(pairs, batch.lease))


Judged = tuple[Event, Schedule | Message]
#: The revision of a schedule that a later occurrence is asked of.
_Revision = tuple[str, int]


class LateEvents:
    """Judges where events are claimed, before anything else is done for them. Threads share it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def expired(self, judged: Sequence[Judged], now: datetime) -> dict[str, Expiry]:
        """The events that expire at `now`, by their ids. Raises a STORE_FAULT."""
        newest = _newest(judged)
        known: dict[_Revision, datetime | None] = {}

        def later(event: Event, asked: Schedule | Message) -> datetime | None:
            """A later occurrence that is due too. One question for each schedule: what is older than an
            event of the batch has that one after it."""
            of = event.schedule_id, event.revision
            if event.run_time < newest[of].run_time:
                return newest[of].run_time
            if of not in known:
                known[of] = self._later(event, asked, now) if isinstance(asked, Schedule) else None
            return known[of]

        found = {}
        for event, asked in judged:
            try:
                event = _with_jitter(event, asked)
                expiry = _lateness(event, asked).expiry(event, now, partial(later, event, asked))
            except STORE_FAULTS:
                raise
            except Exception:  # the other events of the batch are judged; this one is sent
                log.exception("late.unjudged", message="A late event cannot be judged", event_id=event.id)
                continue
            if expiry is not None:
                found[event.id] = expiry
        return found

    def _later(self, event: Event, schedule: Schedule, now: datetime) -> datetime | None:
        if event.revision != schedule.revision:
            # Its rule may be gone. What became of that, and of the one that came after it, are events.
            return self._store.expirations.newest_due(event, now)
        if schedule.state not in (ScheduleState.ACTIVE, ScheduleState.FINISHED):
            return None  # set aside: nothing later is made
        if schedule.calendar is not None:
            calendar = self._store.calendars.attached_use(schedule.calendar, schedule.tenant)
            schedule = replace(schedule, calendar=calendar)
        try:
            following = schedule.recurrence().after(event.run_time)
        except InvalidRecurrence:
            return None  # it is sent: no later one is known
        if following is None or due(schedule.id, following, schedule.jitter_seconds) > now:
            return None
        return following


def judged_again_at(event: Event, asked: Schedule | Message, now: datetime) -> datetime | None:
    """When an event that was not late at `now` has to be judged again if it was not sent by then; None:
    never."""
    if not asked.lateness.judges:
        return None
    event = _with_jitter(event, asked)
    return _lateness(event, asked).changes_after(event, now)


def _lateness(event: Event, asked: Schedule | Message) -> Lateness:
    """The policy for the event. An event that waited in turn for an earlier run was not missed, so that
    `catch_up` does not drop it."""
    queues = isinstance(asked, Schedule) and asked.run_overlap == "queue" and event.postponed_from is not None
    return replace(asked.lateness, catch_up=CatchUp.ALL) if queues else asked.lateness


def _with_jitter(event: Event, asked: Schedule | Message) -> Event:
    """The event, late since its jitter was over."""
    if isinstance(asked, Message) or not asked.jitter_seconds:
        return event
    if event.kind is not Kind.SCHEDULED or event.due_since is not None:
        return event
    return event._replace(due_since=due(event.schedule_id, event.run_time, asked.jitter_seconds))


def _newest(judged: Sequence[Judged]) -> dict[_Revision, Event]:
    newest: dict[_Revision, Event] = {}
    for event, asked in judged:
        of = event.schedule_id, event.revision
        withdrawn = isinstance(asked, Schedule) and asked.is_cancelled_by_edit(event.revision, event.run_time)
        if not withdrawn and (of not in newest or newest[of].run_time < event.run_time):
            newest[of] = event
    return newest


class ExpiryStep:
    """Threads share it."""

    def __init__(
        self,
        late_events: LateEvents,
        followers: Followers,
        recorder: Recorder,
        retrying: StoreRetry,
    ) -> None:
        self._late_events = late_events
        self._followers = followers
        self._recorder = recorder
        self._retrying = retrying

    def without_late(self, batch: ClaimedBatch, schedules: Schedules, now: datetime) -> ClaimedBatch:
        """Gives the events that are late `now` to the recorder and returns the batch without them. Raises
        Stopping."""
        expired = self._expired(batch, schedules, now)
        if not expired:
            return batch
        late = [event for event in batch.events if event.id in expired]
        owners = ((event, schedules.get(event.schedule_id)) for event in late)
        # An event that waits for a late one is released when that one is recorded.
        self._followers.note([(event, owner) for event, owner in owners if isinstance(owner, Schedule)])
        self._recorder.put([Expired(event.id, batch.lease, expired[event.id]) for event in late])
        return batch._replace(events=[event for event in batch.events if event.id not in expired])

    def _expired(self, batch: ClaimedBatch, schedules: Schedules, now: datetime) -> Mapping[str, Expiry]:
        """The late events by their ids; most schedules and messages have no such policy."""
        judged = [
            (event, asked)
            for event in batch.events
            if isinstance(asked := event.message or schedules.get(event.schedule_id), Schedule | Message)
            and asked.lateness.judges
            and not (isinstance(asked, Schedule) and is_withdrawn(event, asked))
        ]
        return self._retrying.until_answered(lambda: self._late_events.expired(judged, now))
