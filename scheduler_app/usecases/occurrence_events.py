"""Events of occurrences: made, stored, and cancelled where an edit or a deletion came in between."""

from collections.abc import Sequence
from datetime import datetime

from scheduler_app.domain import event
from scheduler_app.domain.event import Event
from scheduler_app.domain.jitter import jittered
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store import Store
from scheduler_app.store.schedules.corrupt import CorruptSchedule
from scheduler_app.telemetry import metrics

PRE_QUEUED = "Event pre-queued for ready queue"
WITHDRAWN_BY_CHANGE = "Withdrawn: the schedule was changed"
WITHDRAWN_BY_DELETION = "Withdrawn: the schedule was deleted"


def insert_occurrences(store: Store, events: Sequence[Event], now: datetime) -> None:
    """Stores occurrences as events. Those that are events already stay as they are."""
    metrics.expanded.inc(store.events.insert(events, now, PRE_QUEUED))


def cancel_late_inserts(store: Store, ids: Sequence[str], now: datetime) -> None:
    """Cancels events of schedules that were edited or deleted between a beat's claim and its insert.

    A worker would cancel such an event when it is due. Here it is cancelled at once, so that no list shows
    what will not happen.
    """
    for schedule_id, schedule in store.schedules.for_delivery(ids).items():
        if isinstance(schedule, CorruptSchedule):
            continue
        if schedule.state is ScheduleState.DELETED:
            store.cancellations.cancel_all(
                schedule_id,
                schedule.revision,
                now,
                WITHDRAWN_BY_DELETION,
                tenant=schedule.tenant,
            )
        else:
            store.cancellations.cancel_past_cut(
                schedule_id,
                schedule.revision,
                schedule.revised_at,
                now,
                WITHDRAWN_BY_CHANGE,
                tenant=schedule.tenant,
            )


def events_of(schedule: Schedule, instants: Sequence[datetime]) -> list[Event]:
    """The events of a schedule's occurrences at these instants."""
    origin, queue = schedule.action.isolation_key, schedule.queue
    made = [event.scheduled(schedule.id, schedule.revision, instant, origin, queue) for instant in instants]
    return jittered(made, schedule.jitter_seconds)


def begin_revision(store: Store, schedule: Schedule, now: datetime) -> datetime | None:
    """Cancels the events of older revisions past the cut. Returns the instant after which the new
    revision begins, None while it has to wait.

    This side cancels and then looks; a worker claims and then reads the schedule. One of the two always
    sees the other: an event claimed before the cut is `running` here, and one claimed after it is
    cancelled by its worker.
    """
    cancellations = store.cancellations
    cancellations.cancel_past_cut(
        schedule.id, schedule.revision, schedule.revised_at, now, WITHDRAWN_BY_CHANGE, tenant=schedule.tenant
    )
    past = cancellations.look_past_cut(
        schedule.id, schedule.revision, schedule.revised_at, tenant=schedule.tenant
    )
    if past.running:
        return None
    return max(schedule.revised_at, past.last_sent) if past.last_sent else schedule.revised_at
