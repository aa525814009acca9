"""Whether a claimed event was withdrawn after it was made."""

from scheduler_app.domain.event import Event, Kind
from scheduler_app.domain.schedule import Schedule, ScheduleState


def is_withdrawn(event: Event, schedule: Schedule) -> bool:
    """Whether an edit, a pause or a deletion of its schedule withdrew the event."""
    if event.revision < schedule.first_revision:
        return True
    if event.kind in (Kind.MANUAL, Kind.BACKFILL):
        return schedule.state is ScheduleState.DELETED
    if event.lost_leases and schedule.state is not ScheduleState.DELETED:
        # A lost worker may have sent it; the revision after an edit makes no other event for this instant.
        return schedule.state is ScheduleState.PAUSED and event.run_time > schedule.revised_at
    return schedule.voids(event.revision, event.run_time)
