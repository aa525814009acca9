"""Which events of a claimed batch are too late by the policies of their schedules and messages, and the step
that takes these out of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.event import Event, due
from scheduler_app.domain.lateness import CatchUp, Expiry, Lateness
from scheduler_app.domain.message import Message
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.states import Kind
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.telemetry import get_logger
from scheduler_app.worker.batch import ClaimedBatch, Schedules, StoreRetry, is_withdrawn
from scheduler_app.worker.overlap import Followers
from scheduler_app.worker.recorder import Expired, Recorder

log = get_logger(__name__)

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
        if not judged:
            return {}
        return self._retrying.until_answered(lambda: self._late_events.expired(judged, now))
