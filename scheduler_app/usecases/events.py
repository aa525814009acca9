"""What people do with events: cancel one, redrive one or many."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduler_app.domain.errors import Conflict, NotFound
from scheduler_app.domain.event import FINAL, Event, Kind, State
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store import Store
from scheduler_app.store.events.lists import EVERYTHING, Narrowing
from scheduler_app.store.events.record import EventRecord
from scheduler_app.store.paging import Position, Window
from scheduler_app.store.schedules.corrupt import CorruptSchedule
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.claimed_cancellation import cancel_claimed

log = get_logger(__name__)

WITHDRAWN = "Withdrawn by a person"
NO_CALLBACK = "its schedule was deleted: there is no callback to send it to"
DISMISSED = "Dismissed by a person: it is not sent again"
REDRIVEN = "Redriven by a person; its attempts are counted from 1 again"


@dataclass(frozen=True, slots=True)
class Redriven:
    """The result of a page of redrives: how many events were redriven, the ids of the others with the
    reasons, and where the next page begins."""

    count: int
    skipped: list[tuple[str, str]]
    next: Position | None
    last_due: datetime | None = None
    """When the last one falls due, where a rate was given."""


@dataclass(frozen=True)
class EventService:
    """What people do with single events, and with pages of dead letters.

    `dispatch` dispatches events at once. Its failures are ignored: the next tick does the same work.
    """

    store: Store
    dispatch: Callable[[Sequence[Event], datetime], None]

    def get(self, event_id: str, *, tenant: str) -> EventRecord:
        """Raises NotFound."""
        event = self.store.events.get(event_id, tenant=tenant)
        if event is None:
            raise NotFound(f"there is no event {event_id}; it may be beyond the retention")
        return event

    def cancel(self, event_id: str, now: datetime, *, tenant: str) -> EventRecord:
        """Cancels an event whose request has not begun. Raises NotFound; Conflict when it is in flight or
        final."""
        event = self.get(event_id, tenant=tenant)
        if not self.store.cancellations.cancel(event_id, now, WITHDRAWN, tenant=tenant):
            before, event = event, self.get(event_id, tenant=tenant)
            if event.state is State.RUNNING:
                cancel_claimed(self.store, event_id, WITHDRAWN, tenant=tenant)
                event = self.get(event_id, tenant=tenant)
            if event.state is not State.CANCELLED or before.state is State.CANCELLED:
                why = "its history is final" if event.state in FINAL else "its request is in flight"
                raise Conflict(f"the event is {event.state}: {why}, and it cannot be cancelled")
        log.info("event.cancelled", message="A person cancelled an event", event_id=event_id)
        return self.get(event_id, tenant=tenant)

    def redrive(self, event_id: str, now: datetime, *, tenant: str) -> EventRecord:
        """Sends a dead letter again, at once. Raises NotFound, and Conflict when it is not one."""
        event = self.get(event_id, tenant=tenant)
        schedule_id = event.schedule_id
        if event.state is State.ERROR and event.kind is not Kind.MESSAGE:
            schedule = self.store.schedules.for_delivery([schedule_id]).get(schedule_id)
            if reason := _hopeless(event, schedule):
                raise Conflict(reason)
        redriven = self.store.events.redrive([event_id], now, REDRIVEN, tenant=tenant)
        if not redriven:
            state = self.get(event_id, tenant=tenant).state
            raise Conflict(f"the event is {state}; only one in error can be redriven")
        log.info("event.redriven", message="A person redrove an event", event_id=event_id)
        self.dispatch(redriven, now)
        return self.get(event_id, tenant=tenant)

    def redrive_page(
        self,
        window: Window,
        now: datetime,
        *,
        tenant: str,
        schedule_id: str | None = None,
        narrowing: Narrowing = EVERYTHING,
        a_second: float | None = None,
        start: datetime | None = None,
    ) -> Redriven:
        """Redrives the dead letters of a page, except those that no request could be made for: at once, or
        `a_second` of them in a second. The first is due at once, or so long after `start`, which is when the
        last one of the page before is due."""
        found = self.store.event_lists.page(
            window, tenant=tenant, schedule_id=schedule_id, states={State.ERROR}, narrowing=narrowing
        )
        schedules = self.store.schedules.for_delivery(
            list({event.schedule_id for event in found.rows} - {""})
        )
        skipped, ids = list[tuple[str, str]](), list[str]()
        for event in found.rows:
            # A message needs no schedule.
            is_message = event.kind is Kind.MESSAGE
            reason = None if is_message else _hopeless(event, schedules.get(event.schedule_id))
            if reason is None:
                ids.append(event.id)
            else:
                skipped.append((event.id, reason))
        due = None if a_second is None else _due_times(len(ids), a_second, start, now)
        redriven = self.store.events.redrive(ids, now, REDRIVEN, tenant=tenant, due=due) if ids else []
        won = {event.id for event in redriven}
        skipped += [(each, "it is no longer in error") for each in ids if each not in won]
        if redriven:
            log.info(
                "events.redriven",
                message="A person redrove events",
                count=len(redriven),
                skipped=len(skipped),
                schedule_id=schedule_id,
            )
            # Events that are due later are left to the ticks of beats.
            self.dispatch([event for event in redriven if event.due_at <= now], now)
        return Redriven(len(redriven), skipped, found.next, max(due, default=None) if due else None)

    def dismiss_page(
        self, window: Window, now: datetime, *, tenant: str, narrowing: Narrowing = EVERYTHING
    ) -> Redriven:
        """Ends the dead letters of a page for good: they are `expired`, and nothing is sent."""
        page = self.store.event_lists.page(window, tenant=tenant, states={State.ERROR}, narrowing=narrowing)
        ids = [event.id for event in page.rows]
        count = self.store.events.dismiss(ids, now, DISMISSED, tenant=tenant) if ids else 0
        if count:
            log.info("events.dismissed", message="A person dismissed dead letters", count=count)
        return Redriven(count, [], page.next)


def _due_times(count: int, a_second: float, start: datetime | None, now: datetime) -> list[datetime]:
    """When as many events are due, one after the other; `start` is when the one before them is due."""
    first = now if start is None else max(now, start + timedelta(seconds=1 / a_second))
    return [first + timedelta(seconds=i / a_second) for i in range(count)]


def _hopeless(event: EventRecord, schedule: Schedule | CorruptSchedule | None) -> str | None:
    """Why a redrive of a dead letter would end in error again without a request; None if it would not."""
    if schedule is None:
        return NO_CALLBACK
    if isinstance(schedule, CorruptSchedule):
        return None if schedule.readable_elsewhere else f"its schedule cannot be read: {schedule.reason}"
    if schedule.state is ScheduleState.DELETED:
        return NO_CALLBACK
    if event.revision < schedule.first_revision:
        return "it belongs to an earlier schedule of this id, which was deleted: a worker would withdraw it"
    if event.kind is Kind.SCHEDULED and schedule.voids(event.revision, event.run_time):
        return "its schedule was changed before it was due: a worker would withdraw it"
    return None
