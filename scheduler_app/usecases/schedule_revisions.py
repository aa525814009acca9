"""Revisions of schedules: an edit ends one and begins the next.

Changes are written by version, with the cut of their events where the future changes. The events of
occurrences are made and stored here, and cancelled where an edit or a deletion came in between.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from scheduler_app.domain import event
from scheduler_app.domain.errors import Conflict, NotFound, StaleVersion
from scheduler_app.domain.event import Event, jittered
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.schedule import MAX_OWED, OwedRange, Schedule, ScheduleState
from scheduler_app.store import Store
from scheduler_app.store.schedules.documents import CorruptSchedule
from scheduler_app.telemetry import get_logger, metrics

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
            )
        else:
            store.cancellations.cancel_past_cut(
                schedule_id,
                schedule.revision,
                schedule.revised_at,
                now,
                WITHDRAWN_BY_CHANGE,
            )


def events_of(schedule: Schedule, instants: Sequence[datetime]) -> list[Event]:
    """The events of a schedule's occurrences at these instants."""
    origin, queue = schedule.action.isolation_key, schedule.queue
    events = [event.scheduled(schedule.id, schedule.revision, instant, origin, queue) for instant in instants]
    return jittered(events, schedule.jitter_seconds)


def begin_revision(store: Store, schedule: Schedule, now: datetime) -> datetime | None:
    """Cancels the events of older revisions past the cut. Returns the instant after which the new
    revision begins, None while it has to wait.

    This side cancels and then looks; a worker claims and then reads the schedule. One of the two always
    sees the other: an event claimed before the cut is `running` here, and one claimed after it is
    cancelled by its worker.
    """
    cancellations = store.cancellations
    cancellations.cancel_past_cut(
        schedule.id, schedule.revision, schedule.revised_at, now, WITHDRAWN_BY_CHANGE
    )
    past = cancellations.look_past_cut(schedule.id, schedule.revision, schedule.revised_at)
    if past.running:
        return None
    return max(schedule.revised_at, past.last_sent) if past.last_sent else schedule.revised_at


log = get_logger(__name__)

#: How often an edit is tried while other edits come in between.
TRIES = 20


class ExpandUntil(Protocol):
    """Makes the events that a schedule's rule still owes up to an instant, before an edit replaces the rule.

    Returns what is too much for one request: the edit leaves it to beats.
    """

    def __call__(self, schedule: Schedule, until: datetime) -> OwedRange | None: ...


class OnEdit(Protocol):
    """Is told of each edit that a person made, after it was written: what was done, and the schedule before
    and after it, where they are known."""

    def __call__(
        self, schedule_id: str, what: str, before: Schedule | None, after: Schedule | None, now: datetime
    ) -> None: ...


def ignore_edit(
    schedule_id: str, what: str, before: Schedule | None, after: Schedule | None, now: datetime
) -> None:
    """Stands in where edits are not logged."""


def get_schedule(store: Store, schedule_id: str, *, linearizable: bool = False) -> Schedule:
    """As `ScheduleService.get`."""
    schedule = store.schedules.get(schedule_id, linearizable=linearizable)
    if schedule is None:
        raise NotFound(f"there is no schedule {name_of(schedule_id)}")
    if isinstance(schedule, CorruptSchedule) and schedule.readable_elsewhere:
        raise Conflict(
            f"{name_of(schedule_id)} cannot be read by this process: {schedule.reason}. Run the API with the"
            " SECRETS_KEY and the release of the other processes"
        )
    if isinstance(schedule, CorruptSchedule):
        raise Conflict(
            f"the stored document of {name_of(schedule_id)} is corrupt: {schedule.reason}. Mend that field in"
            " MongoDB and then resume the schedule, or delete it and create it again under another id"
        )
    return schedule


@dataclass(frozen=True)
class ScheduleChanges:
    """Its fields are those of `ScheduleService`."""

    store: Store
    expand_until: ExpandUntil
    expand_and_dispatch: Callable[[Sequence[Schedule], datetime], None]
    on_edit: OnEdit

    def write(
        self,
        schedule_id: str,
        now: datetime,
        change: Callable[[Schedule], Schedule],
        version: int | None,
        done: str,
    ) -> Schedule:
        """Writes what `change` makes of the schedule, and cuts its events where that begins a revision.

        Nothing is written where `change` returns the schedule itself. `version` is the one that the caller
        has read, None for any; `done` is the verb for the log and for `on_edit`. Raises NotFound,
        StaleVersion, and Conflict when others change the schedule all the time.
        """
        for _ in range(TRIES):
            schedule = get_schedule(self.store, schedule_id)
            if version is not None and version != schedule.version:
                # A primary that was just elected may not know yet how far the majority is: what it gives may
                # be older than the edit whose ETag this caller was given.
                schedule = get_schedule(self.store, schedule_id, linearizable=True)
                if version != schedule.version:
                    raise stale_version(schedule, version)
            changed = change(schedule)
            if changed is schedule:
                if schedule.cut_pending:
                    # A previous call may have crashed after its first write, or MongoDB have refused the
                    # second.
                    self._cut(schedule, now)
                return schedule
            left_to_beats = None
            if changed.revision == schedule.revision:
                written = self.store.schedules.update(changed, version=schedule.version)
            else:
                # What the old rule owes up to the cut must exist before the rule is gone, or be kept with
                # that rule by the write that replaces it: beats may be away.
                left_to_beats = self.expand_until(schedule, changed.revised_at)
                if left_to_beats is not None and len(schedule.owed) >= MAX_OWED:
                    raise Conflict(
                        f"beats have not yet made up what the last {MAX_OWED} changes left to them; try again"
                        " in some seconds, and see by `scheduler doctor` that a beat runs"
                    )
                written = self.store.schedules.revise(changed, version=schedule.version, owed=left_to_beats)
            if written:
                log.info(
                    f"schedule.{done}",
                    message=f"A schedule was {done}",
                    schedule_id=schedule_id,
                    version=changed.version,
                    revision=changed.revision,
                )
                self.on_edit(schedule_id, done, schedule, changed, now)
                if left_to_beats is not None:
                    log.info(
                        "schedule.owes",
                        message="Beats make up what was owed from before a change",
                        schedule_id=schedule_id,
                        owed_from=left_to_beats.next_run_at.isoformat(),
                        owed_until=left_to_beats.until.isoformat(),
                    )
                if changed.revision != schedule.revision:
                    self._cut(changed, now)
                return changed
        raise Conflict("the schedule is being changed by others at this moment; try again")

    def _cut(self, schedule: Schedule, now: datetime) -> None:
        self.store.cancellations.cancel_past_cut(
            schedule.id,
            schedule.revision,
            schedule.revised_at,
            now,
            WITHDRAWN_BY_CHANGE,
        )
        if schedule.state is ScheduleState.ACTIVE:
            self.expand_and_dispatch([schedule], now)


def next_version(schedule: Schedule, now: datetime) -> Schedule:
    return replace(schedule, version=schedule.version + 1, updated_at=now)


def stale_version(schedule: Schedule, version: int | None) -> StaleVersion:
    return StaleVersion(
        f"the schedule is at version {schedule.version}, not {version}: read it again, and send the ETag that"
        " you are given"
    )
