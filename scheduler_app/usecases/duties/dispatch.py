"""Dispatch: due events become messages, in turn among those who own them.

Events whose destinations have limits get their places in line first. What is dispatched is what its
destination can take within `AHEAD_SECONDS`. The rest is put off in MongoDB, each event to its own place,
so that a backlog costs one write for each event and no message in vain. Events whose destination says
which workers send them wait in that queue, unless their schedule or message names one itself.

`PromptDispatch` expands and dispatches at once, for a person's request, what would otherwise wait for the
next tick of a beat. The request has been written by then, and beats do the same work within a tick or two:
a failure there is logged, and is not an error for the request.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple, Protocol

from scheduler_app.clock import monotonic
from scheduler_app.config import DISPATCH_LEASE_SECONDS
from scheduler_app.domain.action import CALLBACKS, Lane, QueueLengths
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.event import Event
from scheduler_app.domain.flow_control import FlowGrant, FlowRequest, Limiter, WaitReason
from scheduler_app.domain.http_action import DESTINATION_PREFIX
from scheduler_app.domain.instants import shown_instant, whole_milliseconds
from scheduler_app.domain.partitions import OwnedPartitions, all_partitions
from scheduler_app.domain.schedule import OwedRange, Schedule
from scheduler_app.parallel import Parallel
from scheduler_app.store import Store
from scheduler_app.store.destinations import CorruptDestination
from scheduler_app.store.events.outbox import Deferral, DueEvent
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.usecases.duties.dispatch_selection import (
    EVENTS_A_BATCH,
    EVENTS_A_PAGE,
    Batch,
    Room,
    RoomEstimate,
    grouped,
    lane_of,
    select,
)
from scheduler_app.usecases.duties.expansion import Expansion
from scheduler_app.usecases.duties.fair_reads import TenantLook
from scheduler_app.usecases.stops import BlackoutGate, KillSwitchGate


def misplaced_events(
    by_destination: Mapping[str, Sequence[DueEvent]],
    destinations: Mapping[str, Destination | CorruptDestination],
    queue: str,
) -> dict[str, list[str]]:
    """The ids of those events that wait in `queue` and belong into another one, by that other one."""
    moves: dict[str, list[str]] = {}
    for destination_id, events in by_destination.items():
        destination = destinations.get(destination_id)
        if not isinstance(destination, Destination):
            continue
        for event in events:
            own = CALLBACKS if event.queue_by_destination else queue
            right = destination.queue_for(own)
            if right != queue:
                moves.setdefault(right, []).append(event.id)
    return moves


log = get_logger(__name__)

#: A place so near is not worth a write: the event waits for it in a worker.
AHEAD_SECONDS = 2.0
#: When events of a paused destination are looked at again.
PAUSED_SECONDS = 60.0
#: Between two that are put off to the same instant, so that they keep their order.
ORDER = timedelta(milliseconds=1)
#: Why a line stands still; that it moves by the rate and the slots needs no word.
_LOGGED_REASONS = (WaitReason.BREAKER, WaitReason.ASKED)


class DestinationLimits:
    """Knows which due events have to wait for their destinations. Threads may share it."""

    def __init__(self, store: Store, limiter: Limiter | None) -> None:
        """`limiter` None: there is none to ask, and workers put off what they cannot judge."""
        self._store = store
        self._limiter = limiter

    def in_time(
        self, events: Sequence[DueEvent], until: datetime, now: datetime, *, queue: str = CALLBACKS
    ) -> Sequence[DueEvent]:
        """Returns the events of `queue`, due up to `until`, that are to be dispatched now. It puts off the
        others, and moves those that belong into another queue, which has its own turn.

        It costs nothing where no event goes to a destination. A limiter that is away lets all pass: workers
        ask it again before anything is sent. Raises a STORE_FAULT.
        """
        by_id: dict[str, list[DueEvent]] = {}
        for event in events:
            if event.origin.startswith(DESTINATION_PREFIX):
                by_id.setdefault(event.origin.removeprefix(DESTINATION_PREFIX), []).append(event)
        if not by_id:
            return events
        found = self._store.destinations.for_delivery(list(by_id))
        if moves := misplaced_events(by_id, found, queue):
            moved = {each for ids in moves.values() for each in ids}
            self._store.outbox.move(moves, until)
            by_id = {own_id: [each for each in of if each.id not in moved] for own_id, of in by_id.items()}
            events = [event for event in events if event.id not in moved]
        if self._limiter is None:
            return events
        limited = [each for each in found.values() if isinstance(each, Destination) and each.is_limited]
        if not limited:
            return events
        later: dict[str, list[Deferral]] = {
            each.id: list(_put_off_until_resumed(by_id[each.id], now)) for each in limited if each.paused
        }
        waiting = [each for each in limited if not each.paused]
        later |= self._behind(waiting, by_id, now, self._limiter)
        put_off: set[str] = set()
        unused: list[FlowRequest] = []
        for each in limited:
            theirs = later.get(each.id)
            if theirs:
                written = self._store.outbox.put_off(theirs, until, now)
                metrics.flow_put_off.inc(written)
                put_off |= {put.id for put in theirs}
                if written < len(theirs) and not each.paused:
                    unused.append(FlowRequest(each, reserve=written - len(theirs)))
        if unused:  # another dispatcher has put them off, to places of its own
            self._decide(unused, self._limiter)
        return [event for event in events if event.id not in put_off] if put_off else events

    def _behind(
        self,
        limited: Sequence[Destination],
        by_id: dict[str, list[DueEvent]],
        now: datetime,
        limiter: Limiter,
    ) -> dict[str, list[Deferral]]:
        """The events whose place is further off. An event that was put off before has had its place."""
        new = {
            each.id: sorted(event for event in by_id[each.id] if event.postponed_from is None)
            for each in limited
        }
        asked = [each for each in limited if new[each.id]]
        if not asked:
            return {}
        grants = self._decide([FlowRequest(each, reserve=len(new[each.id])) for each in asked], limiter)
        return {
            each.id: list(_put_off(each, new[each.id], grant, now))
            for each, grant in zip(asked, grants, strict=False)
        }

    @staticmethod
    def _decide(asks: Sequence[FlowRequest], limiter: Limiter) -> list[FlowGrant]:
        """The answers; none while the limiter is away."""
        try:
            return limiter.decide(asks)
        except limiter.unavailable as error:
            log.warning(
                "flow.unknown",
                message="The limits of destinations cannot be read; workers judge their events",
                error=str(error)[:300],
            )
            return []


def _put_off(
    destination: Destination, events: Sequence[DueEvent], grant: FlowGrant, now: datetime
) -> Iterator[Deferral]:
    because = f", which waits for {grant.why.value}" if grant.why in _LOGGED_REASONS else ""
    for place, event in enumerate(events):
        seconds = grant.first + place * grant.step
        due_at = whole_milliseconds(now + timedelta(seconds=seconds))
        if seconds > AHEAD_SECONDS and due_at > event.due_at:
            yield Deferral(
                event.id,
                due_at,
                event.due_at,
                f"Postponed to {shown_instant(due_at)}: its place in the line of the destination"
                f" {destination.name}{because}",
            )


def _put_off_until_resumed(events: Sequence[DueEvent], now: datetime) -> Iterator[Deferral]:
    for place, event in enumerate(sorted(events)):
        due_at = whole_milliseconds(now + timedelta(seconds=PAUSED_SECONDS) + place * ORDER)
        yield Deferral(
            event.id,
            due_at,
            event.due_at,
            f"Postponed to {shown_instant(due_at)}: its destination is paused",
        )


PARTS_AT_ONCE = 2
#: Parts of fewer events would break up batches.
WORTH_PARTS = 4 * EVENTS_A_BATCH
#: A selection older than this may no longer name the most urgent events.
SELECTION_SECONDS = 1.0
#: A burst is claimed earlier still, by this share of the horizon: deployments that expect larger bursts than
#: usual have a longer horizon. The bound keeps the time from using up the leases.
BURST_AHEAD_SHARE = 5
MAX_BURST_AHEAD = timedelta(seconds=5)
#: Queues whose room a process remembers.
MOST_ESTIMATES = 64


@dataclass(frozen=True, slots=True)
class DispatchResult:
    """The result of dispatching one page."""

    dispatched: int
    """Events whose messages were sent."""
    full: bool
    """There may be more to dispatch at once."""


class Publisher(Protocol):
    """The way to the workers. It raises `unavailable` when the broker cannot be reached."""

    unavailable: tuple[type[Exception], ...]

    def publish(self, batches: Sequence[Batch]) -> None: ...

    def queue_lengths(self, queue: str = CALLBACKS) -> QueueLengths: ...


class Dispatch:
    """Sends what is due within the horizon. Any number of beats and API processes may do it at once."""

    def __init__(
        self,
        store: Store,
        publisher: Publisher,
        *,
        horizon_seconds: float,
        limiter: Limiter | None = None,
        partitions: OwnedPartitions = all_partitions,
    ) -> None:
        """`limiter` says when destinations have room; `partitions`, which ones to dispatch page by page."""
        self._partitions = partitions
        self._outbox = store.outbox
        self._lines = DestinationLimits(store, limiter)
        self._gate = KillSwitchGate(store)
        self._blackouts = BlackoutGate(store)
        self.publisher = publisher
        self._horizon = timedelta(seconds=horizon_seconds)
        self._burst_ahead = min(self._horizon / BURST_AHEAD_SHARE, MAX_BURST_AHEAD)
        self._parallel = Parallel(PARTS_AT_ONCE, worth=WORTH_PARTS, name="dispatch")
        self._estimates: dict[str, RoomEstimate] = {}
        self._next_queue = ""
        self._has_tenants = TenantLook(store.tenants)

    def dispatch_page(self, now: datetime, *, named_queues: bool = True) -> DispatchResult:
        """Dispatches what waits, queue by queue: what falls due now first, a share of what is late beside it,
        and each in turn among its owners. A queue ends when little is left, its lanes are full, or its time
        is over: one that nobody serves holds up no other. `named_queues`: whether to look at others than
        CALLBACKS, for a caller that knows that nothing waits in them.

        Raises a STORE_FAULT or `publisher.unavailable`; what was taken then is put back, here or by recovery.
        """
        results = [self._dispatch_queue(CALLBACKS, now)]
        began = monotonic()
        for queue in self._outbox.named_queues(after=self._next_queue) if named_queues else ():
            if monotonic() - began > SELECTION_SECONDS:
                results.append(DispatchResult(0, full=True))
                break
            results.append(self._dispatch_queue(queue, now))
            self._next_queue = queue
        return DispatchResult(
            sum(result.dispatched for result in results), full=any(result.full for result in results)
        )

    def _dispatch_queue(self, queue: str, now: datetime) -> DispatchResult:
        began = monotonic()
        room = Room.beside(self.publisher.queue_lengths(queue))
        if not room.fresh and not room.late:
            return DispatchResult(0, full=False)
        # "Full" counts candidates and not those won: another beat may have taken half of them, and both beats
        # would wait for their next tick.
        waiting = partial(self._outbox.due, queue=queue, partitions=self._partitions())
        selection = select(waiting, now, now + self._horizon, room, self._has_tenants)
        dispatched = 0
        for number, page in enumerate(selection.pages(EVENTS_A_PAGE)):
            # One page goes out however long the selection took: with a slow MongoDB none would ever.
            if number and monotonic() - began > SELECTION_SECONDS:
                return DispatchResult(dispatched, full=True)
            passed = self._gate.passed(_with_room(page, now, room), now + self._horizon, now)
            passed = self._blackouts.passed(passed, now + self._horizon, now)
            done = self._dispatch(passed, now, queue)
            dispatched, room = dispatched + done.events, room.after_publishing(done.lanes)
        return DispatchResult(dispatched, full=selection.more)

    def dispatch_these(self, events: Sequence[Event], now: datetime, *, urgent: bool = False) -> int:
        """Dispatches those of the given events that are due within the horizon, before the next tick.

        `urgent`: a person asked for them this moment; more than a batch of them is bulk, and waits its turn.
        Returns how many went out: those without room are left to beat. Raises as `dispatch_page`.
        """
        until = now + self._horizon
        by_queue: dict[str, list[DueEvent]] = {}
        for event in events:
            if event.due_at <= until:
                due = DueEvent(event.due_at, event.id, event.origin, event.lost_leases)
                by_queue.setdefault(event.queue, []).append(due)
        return sum(
            self._dispatch_due(sorted(due), queue, now, urgent=urgent) for queue, due in by_queue.items()
        )

    def _dispatch_due(self, due: Sequence[DueEvent], queue: str, now: datetime, *, urgent: bool) -> int:
        estimate, dispatched = self._estimate(queue), 0
        for first in range(0, len(due), EVENTS_A_PAGE):
            room = estimate.room()
            first_of_all = urgent and len(due) <= EVENTS_A_BATCH and room.urgent > 0
            page = due[first : first + EVENTS_A_PAGE]
            chosen = page if first_of_all else _with_room(page, now, room)
            done = self._dispatch(chosen, now, queue, urgent=first_of_all)
            estimate.published(done.lanes)
            dispatched += done.events
        return dispatched

    def _estimate(self, queue: str) -> RoomEstimate:
        """The estimate of a queue; with too many queues all estimates are dropped."""
        found = self._estimates.get(queue)
        if found is None:
            if len(self._estimates) >= MOST_ESTIMATES:
                self._estimates = {}
            found = RoomEstimate(partial(self.publisher.queue_lengths, queue))
            self._estimates[queue] = found
        return found

    def _dispatch(
        self, due: Sequence[DueEvent], now: datetime, queue: str, *, urgent: bool = False
    ) -> "_Published":
        due = self._lines.in_time(due, now + self._horizon, now, queue=queue)
        parts = self._parallel.each(
            lambda part: self._dispatch_part(part, now, queue, urgent=urgent), self._parallel.of(due)
        )
        return _Published(sum(part.events for part in parts), [lane for part in parts for lane in part.lanes])

    def _dispatch_part(
        self, due: Sequence[DueEvent], now: datetime, queue: str, *, urgent: bool
    ) -> "_Published":
        until = now + self._horizon
        token, taken = self._outbox.take(due, until, now, lease_seconds=DISPATCH_LEASE_SECONDS)
        batches = grouped(taken, now, self._burst_ahead, queue=queue, urgent=urgent)
        if batches:
            try:
                self.publisher.publish(batches)
            except self.publisher.unavailable:
                self._outbox.put_back(token, now)
                raise
        # A crash before this sends a second message, which finds the event claimed or finished.
        self._outbox.sent(token)
        metrics.messages.inc(len(batches))
        metrics.dispatched.inc(len(taken))
        return _Published(len(taken), [batch.lane for batch in batches])


class _Published(NamedTuple):
    """How many events went out, and the lane of each of their messages."""

    events: int
    lanes: list[Lane]


def _with_room(events: Sequence[DueEvent], now: datetime, room: Room) -> Sequence[DueEvent]:
    """Without those whose lane has become full."""
    if room.fresh and room.late:
        return events
    return [event for event in events if room.of(lane_of(event, now))]


IDS_IN_A_LINE = 10
#: Threads of one process that wait for the broker at the same time, and how long others wait for their turn:
#: while it does not answer, the other threads serve requests that do not need it.
PROMPT_AT_ONCE = 8
PROMPT_TURN_SECONDS = 0.2


@dataclass(frozen=True)
class PromptDispatch:
    """Expands and dispatches for one request. `faults` are the exceptions by which MongoDB and the broker
    show that they are away; timeframe and horizon are seconds. Threads may share it."""

    expansion: Expansion
    dispatch: Dispatch
    faults: tuple[type[Exception], ...]
    timeframe_seconds: float
    horizon_seconds: float
    is_away: Callable[[], bool] = lambda: False
    """Whether the broker is known not to answer: then everything is left to beats at once."""
    turns: threading.BoundedSemaphore = field(
        default_factory=lambda: threading.BoundedSemaphore(PROMPT_AT_ONCE)
    )

    def expand_and_dispatch(self, schedules: Sequence[Schedule], now: datetime) -> None:
        """Makes the first events of new and edited schedules, and dispatches those within the horizon.

        Of a single schedule the whole timeframe is expanded, and the cut that an edit left; of many only
        what cannot wait for a tick: events within the horizon.
        """
        ahead = self.timeframe_seconds if len(schedules) == 1 else self.horizon_seconds
        end = now + timedelta(seconds=ahead)
        near = [
            schedule
            for schedule in schedules
            if schedule.next_run_at and (schedule.cut_pending or schedule.next_run_at <= end)
        ]
        try:
            events = self.expansion.expand_these(near, now, end).events if near else []
            self._in_turn(events, now, urgent=False)
        except self.faults as error:
            log.warning(
                "schedule.left_to_beat",
                message="Schedules were written; their first events are left to beat",
                schedule_ids=[schedule.id for schedule in near[:IDS_IN_A_LINE]],
                count=len(near),
                error=str(error)[:300],
            )

    def expand_until(self, schedule: Schedule, until: datetime) -> OwedRange | None:
        """Makes the events that an edit at `until` must not lose, and dispatches them; returns the range that
        is too long for one request. Raises a STORE_FAULT: without these events the edit must not happen."""
        expanded = self.expansion.expand_up_to(schedule, until)
        # All of these are due by now: left to a beat, they would be late by up to a tick.
        self._dispatch(expanded.events, until, urgent=False)
        return expanded.left_to_beats

    def dispatch_soon(self, events: Sequence[Event], now: datetime) -> None:
        """Dispatches those events that are due within the horizon, in their turn."""
        self._dispatch(events, now, urgent=False)

    def dispatch_urgently(self, events: Sequence[Event], now: datetime) -> None:
        """Dispatches events that a person asked for, ahead of all others."""
        self._dispatch(events, now, urgent=True)

    def _dispatch(self, events: Sequence[Event], now: datetime, *, urgent: bool) -> None:
        try:
            self._in_turn(events, now, urgent=urgent)
        except self.faults as error:
            log.warning(
                "event.left_to_beat",
                message="Events were written; sending them is left to beat",
                event_ids=[event.id for event in events[:IDS_IN_A_LINE]],
                count=len(events),
                error=str(error)[:300],
            )

    def _in_turn(self, events: Sequence[Event], now: datetime, *, urgent: bool) -> None:
        """Dispatches if the broker answers; beats do it otherwise. Raises one of `faults`."""
        if not events or self.is_away() or not self.turns.acquire(timeout=PROMPT_TURN_SECONDS):
            return
        try:
            if not self.is_away():  # it may have shown that to the thread before
                self.dispatch.dispatch_these(events, now, urgent=urgent)
        finally:
            self.turns.release()
