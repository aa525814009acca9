"""A schedule: a rule, a callback, policies."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from scheduler_app.domain.action import Action
from scheduler_app.domain.calendars import CalendarUse
from scheduler_app.domain.completion import DEFAULT_TIMEOUT_SECONDS as DEFAULT_COMPLETION_TIMEOUT
from scheduler_app.domain.completion import Completion
from scheduler_app.domain.lateness import Lateness
from scheduler_app.domain.not_given import NOT_GIVEN, NotGiven
from scheduler_app.domain.overlap import DEFAULT_QUEUE_LIMIT, OverlapScope, RunOverlap
from scheduler_app.domain.owed import OwedRange
from scheduler_app.domain.pause import Pause
from scheduler_app.domain.queues import CALLBACKS
from scheduler_app.domain.recurrence import AnyRecurrence
from scheduler_app.domain.retry import SUCCESS_CODES, Codes, RetryPolicy
from scheduler_app.domain.signing import Signing
from scheduler_app.domain.tenants import tenant_of
from scheduler_app.domain.triggers import Trigger

MAX_NAME = 200
MAX_TAGS = 20
MAX_PURPOSE = 2_000
DEFAULT_TIMEOUT_SECONDS = 10.0

DEFAULT_RETRY = RetryPolicy()
DEFAULT_LATENESS = Lateness()

#: Events of older revisions are judged by the oldest cut that is kept: edits made within one timeframe.
KEPT_CUTS = 100
#: The smallest step of time that is kept: BSON's.
TICK = timedelta(milliseconds=1)


class ScheduleState(StrEnum):
    """`finished`: no occurrence is left. `error`: set aside, with its reason, until a resume or an edit."""

    ACTIVE = "active"
    PAUSED = "paused"
    FINISHED = "finished"
    ERROR = "error"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Predecessor:
    """What a deleted schedule leaves to the next one of its id."""

    revision: int
    version: int
    revised_at: datetime
    cuts: tuple[tuple[int, datetime], ...] = ()
    request_seed: str | None = None
    """The request that made it."""


@dataclass(frozen=True, slots=True)
class LastRun:
    """How the newest event of a schedule that was attempted ended, or what came of it so far."""

    time: datetime
    """The event's run time."""
    outcome: str
    """`completed`, `error`, or `retrying` as long as another attempt follows."""
    event_id: str
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedOver:
    """The fields that a request gives and a schedule keeps as they are, under the same names in both.

    `Draft` inherits them. A field that depends on others, or on what the schedule was before, is the
    draft's own.
    """

    name: str | NotGiven = NOT_GIVEN
    timeout_seconds: float | NotGiven = NOT_GIVEN
    success: Codes | NotGiven = NOT_GIVEN
    tags: tuple[str, ...] | NotGiven = NOT_GIVEN
    run_overlap: RunOverlap | NotGiven = NOT_GIVEN
    overlap_scope: OverlapScope | NotGiven = NOT_GIVEN
    queue_limit: int | NotGiven = NOT_GIVEN
    completion: Completion | NotGiven = NOT_GIVEN
    completion_timeout_seconds: float | NotGiven = NOT_GIVEN
    pause_after_failures: int | NotGiven | None = NOT_GIVEN
    purpose: str | NotGiven = NOT_GIVEN
    on_success: str | NotGiven | None = NOT_GIVEN
    """The name of a destination; None for none."""
    on_failure: str | NotGiven | None = NOT_GIVEN
    jitter_seconds: float | NotGiven = NOT_GIVEN

    def carried_over(self) -> dict[str, Any]:
        """Those that were given."""
        values = {each.name: getattr(self, each.name) for each in fields(CarriedOver)}
        return {name: value for name, value in values.items() if value is not NOT_GIVEN}


@dataclass(frozen=True, slots=True)
class Schedule:
    """One schedule as it is stored."""

    id: str
    name: str
    trigger: Trigger
    action: Action
    created_at: datetime
    updated_at: datetime
    retry: RetryPolicy = DEFAULT_RETRY
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    success: Codes = SUCCESS_CODES
    tags: tuple[str, ...] = ()
    purpose: str = ""
    """What it is for, in words for people."""
    state: ScheduleState = ScheduleState.ACTIVE
    reason: str | None = None
    version: int = 1
    """Counts people's edits."""
    revision: int = 1
    """Rises whenever future events are planned again; it owns the time after `revised_at`."""
    revised_at: datetime = field(kw_only=True)
    first_revision: int = 1
    """Events of revisions before this one belong to a deleted schedule that had the same id."""
    cuts: tuple[tuple[int, datetime], ...] = ()
    """The revisions before that one and when they began, oldest first; the last `KEPT_CUTS` of them."""
    next_run_at: datetime | None = None
    """The first occurrence that is not an event yet."""
    finishes_at: datetime | None = None
    """The last occurrence, once it is an event."""
    cut_pending: bool = False
    """The revision has not been expanded yet: events of older ones may stand past the cut."""
    checkpoint: Mapping[str, Any] | None = None
    zone_data: str | None = None
    """The version of the zone data that events and `next_run_at` were computed with."""
    signing: Signing | None = None
    """What signs the callbacks; None: nothing does."""
    owed: tuple[OwedRange, ...] = ()
    """What edits left to beats, of revisions before this one, oldest first; `MAX_OWED` of them at most."""
    hops: int = 0
    """Callbacks of ours, one after another, that led to the request that made it."""
    queue: str = CALLBACKS
    """Which workers its events are for."""
    last_run: LastRun | None = None
    """Workers note it within seconds of a run; an edit leaves it alone."""
    calendar: CalendarUse | None = None
    lateness: Lateness = DEFAULT_LATENESS
    run_overlap: RunOverlap = "allow"
    """What an event does while an earlier one is not finished."""
    overlap_scope: OverlapScope = "event"
    queue_limit: int = DEFAULT_QUEUE_LIMIT
    """Of `queue`: how many events may wait."""
    completion: Completion = "response"
    """Who says that an event's work is done."""
    completion_timeout_seconds: float = DEFAULT_COMPLETION_TIMEOUT
    """Of `callback`: for how long an event waits to be told."""
    pause_after_failures: int | None = None
    """How many events in a row that ended in `error` pause it; None: failures never pause it."""
    failures_since: datetime | None = None
    """Only events after that instant count: it was resumed then."""
    pause: Pause | None = None
    """Of one that is paused. None too where a release paused it that kept no more than the state."""
    on_success: str | None = None
    """The name of the destination of its tenant that is told of each event that was completed."""
    on_failure: str | None = None
    """The same for each event that ended in error."""
    jitter_seconds: float = 0.0
    """How long after its occurrence an event falls due at the latest; `domain/jitter.py` says when."""

    @property
    def tenant(self) -> str:
        """Whose it is; its id says so."""
        return tenant_of(self.id)

    def recurrence(self) -> AnyRecurrence:
        """With the calendar that it observes. Raises InvalidRecurrence when what is stored no longer parses,
        or the calendar cannot be read."""
        found = self.trigger.recurrence(self.created_at, self.checkpoint)
        return found if self.calendar is None else self.calendar.observed_by(found)

    def voids(self, revision: int, run_time: datetime) -> bool:
        """Whether an edit, a pause or a deletion has withdrawn a scheduled event of this schedule.

        An event is judged by the cut that ended its own revision, and not by the latest: after a pause and
        a resume it would be one of the pause, and earlier than the cut of the resume.
        """
        if self.state is ScheduleState.DELETED or revision < self.first_revision:
            return True
        if revision >= self.revision:  # no cut ended it: mostly
            return False
        cuts = (*self.cuts, (self.revision, self.revised_at))
        ended = next((since for number, since in cuts if number > revision), None)
        return ended is not None and run_time > ended

    def succeeding(self, deleted: Predecessor) -> "Schedule":
        """This new schedule under the id of a deleted one.

        Revisions go on after the deleted one's, so that no event's id comes twice, and so do versions: an
        ETag of the deleted one matches nothing. `cut_pending` lets the first expansion withdraw what a beat
        may still have written for the deleted one.
        """
        revision = deleted.revision + 1
        return replace(
            self,
            version=deleted.version + 1,
            revision=revision,
            first_revision=revision,
            revised_at=max(self.revised_at, deleted.revised_at + TICK),
            cuts=(*deleted.cuts, (deleted.revision, deleted.revised_at))[-KEPT_CUTS:],
            cut_pending=True,
        )

    def resumed_by_itself(self) -> "Schedule":
        """What follows when the pause is over, whenever that is noticed: occurrences from its end on are
        made, and none of those within it. Nobody has edited the schedule: its version stays. Raises
        InvalidRecurrence for a rule that no longer evaluates."""
        if self.pause is None or self.pause.until is None:
            raise ValueError("this pause does not end by itself")
        return self.revise(self.pause.until - TICK, state=ScheduleState.ACTIVE)

    def revise(self, now: datetime, **changes: Any) -> "Schedule":
        """Makes the future anew from `now` on: the next revision, with `changes`.

        `revised_at` never falls, also when two hosts' clocks disagree by some milliseconds: revisions own
        time in their order.
        """
        cut = max(now, self.revised_at + TICK)
        if changes.get("state", self.state) is not ScheduleState.PAUSED:
            changes["pause"] = None
            if self.state is not ScheduleState.ACTIVE and self.pause_after_failures is not None:
                changes["failures_since"] = cut
        revised = replace(
            self,
            revision=self.revision + 1,
            revised_at=cut,
            cuts=(*self.cuts, (self.revision, self.revised_at))[-KEPT_CUTS:],
            cut_pending=True,
            next_run_at=None,
            finishes_at=None,
            reason=None,
            checkpoint=None,
            **changes,
        )
        calendar = revised.calendar and revised.calendar.up_to_date()
        revised = replace(revised, zone_data=revised.trigger.zone_data(), calendar=calendar)
        if revised.state is not ScheduleState.ACTIVE:
            return revised
        following = revised.recurrence().after(cut)
        if following is None and revised.trigger.fires_by_itself:
            return replace(revised, state=ScheduleState.FINISHED)
        return replace(revised, next_run_at=following)
