"""A schedule: a rule, a callback, policies; its pause, its edits, and what an edit leaves to beats.

Overlap is what an event does while an earlier one of its schedule is not finished. The earlier one of two
events is the one with the earlier run time; at the same run time it is the one whose id sorts first. An
event looks at earlier ones only, so that two workers that judge two events at the same moment cannot both
hold back the other's.

What an edit leaves to beats are the occurrences that a revision still owes up to the cut that ended it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Literal

from scheduler_app.domain.action import CALLBACKS, Action
from scheduler_app.domain.calendars import CalendarUse
from scheduler_app.domain.deliverable import DEFAULT_TIMEOUT_SECONDS, Signing
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.event import DEFAULT_COMPLETION_TIMEOUT, Completion, Event
from scheduler_app.domain.expectation import Expectation
from scheduler_app.domain.ids import tenant_of
from scheduler_app.domain.instants import check_storable
from scheduler_app.domain.lateness import DEFAULT_LATENESS, Lateness
from scheduler_app.domain.message import Message
from scheduler_app.domain.recurrence import AnyRecurrence
from scheduler_app.domain.resource_fields import NOT_GIVEN, NotGiven, given, given_fields
from scheduler_app.domain.retry import DEFAULT_RETRY, SUCCESS_CODES, Codes, RetryPolicy
from scheduler_app.domain.triggers import Trigger

RunOverlap = Literal["allow", "skip", "queue", "cancel_earlier"]
#: Which earlier events count: those that are not finished, or those with an attempt running.
OverlapScope = Literal["event", "attempt"]

DEFAULT_QUEUE_LIMIT = 100
#: What is looked up to judge one event is bounded by it.
MAX_QUEUE_LIMIT = 1_000

#: A waiting event is woken when the earlier one ends. Where that is lost with a worker, it looks by itself,
#: within a part of the time that it has waited.
WAITED_SHARE = 4
SHORTEST_WAIT, LONGEST_WAIT = timedelta(seconds=10), timedelta(seconds=60)
#: Only the first in the line can be the next; those behind it look up as much less often.
MOST_PLACES = 10


def next_look(waited: timedelta, place: int) -> timedelta:
    """After how long an event that has `waited` looks again whether it may run, where nobody wakes it.

    `place` counts those that wait, from 1.
    """
    return min(max(waited / WAITED_SHARE, SHORTEST_WAIT), LONGEST_WAIT) * min(place, MOST_PLACES)


_PAUSED: Final = "paused"

#: A person or a program asked for it.
PAUSED_BY_REQUEST: Final = "by request"
#: As many events in a row ended in `error` as `pause_after_failures` says.
PAUSED_BY_FAILURES: Final = "failures"
MAX_NOTE: Final = 500
#: How many failures in a row `pause_after_failures` may ask for.
MAX_FAILURES: Final = 100


@dataclass(frozen=True, slots=True)
class Pause:
    """What is kept of a pause while it lasts."""

    reason: str = PAUSED_BY_REQUEST
    """Why, in words that programs may compare."""
    note: str | None = None
    """What a person wrote beside it, or what led to it."""
    until: datetime | None = None
    """When it ends by itself; None: it lasts until the schedule is resumed."""


def pause_after_edit(
    old: Pause | None,
    before: str | None,
    state: str,
    *,
    note: str | NotGiven | None,
    until: datetime | NotGiven | None,
) -> Pause | None:
    """What is kept of a pause when an edit leads from the state `before` to `state`; `before` is None for a
    new schedule. Raises InvalidField for a note or an end of a schedule that is not paused."""
    if state != _PAUSED:
        for name, value in (("note", note), ("paused_until", until)):
            if not isinstance(value, NotGiven | None):
                raise InvalidField(name, f"is of a pause, and the schedule is {state}: give state paused")
        return None
    if isinstance(until, datetime):
        check_storable(until, "paused_until")
    if before == _PAUSED and isinstance(note, NotGiven) and isinstance(until, NotGiven):
        return old
    known = old or Pause()
    return replace(known, note=given(note, known.note), until=given(until, known.until))


#: A schedule keeps no more of them; an edit that would add another is refused until beats have made up some.
MAX_OWED = 20


@dataclass(frozen=True, slots=True)
class OwedRange:
    """A stretch of time that belongs to a revision which an edit has ended, and that is not expanded yet."""

    revision: int
    trigger: Trigger
    """The rule of that revision: the schedule may have another one by now."""
    next_run_at: datetime
    """The first occurrence that is not an event yet."""
    until: datetime
    """The cut, inclusive."""
    checkpoint: Mapping[str, Any] | None = None
    calendar: CalendarUse | None = None
    """What that revision observed; its days are those that the calendar has by now."""
    jitter_seconds: float = 0.0

    def recurrence(self, created_at: datetime) -> AnyRecurrence:
        """As `Schedule.recurrence`; `created_at` is the schedule's. Raises InvalidRecurrence."""
        found = self.trigger.recurrence(created_at, self.checkpoint)
        return found if self.calendar is None else self.calendar.observed_by(found)


@dataclass(frozen=True, slots=True)
class BeforeCut:
    """What an old rule still owed before an edit: the events that were made of it, and what is left to beats
    because it is too much for a request."""

    events: tuple[Event, ...] = ()
    left_to_beats: OwedRange | None = None


MAX_NAME = 200
MAX_TAGS = 20
MAX_PURPOSE = 2_000

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

    `ScheduleDraft` inherits them. A field that depends on others, or on what the schedule was before, is the
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
    expect: Expectation | NotGiven | None = NOT_GIVEN

    def carried_over(self) -> dict[str, Any]:
        """Those that were given."""
        return given_fields(self, (each.name for each in fields(CarriedOver)))


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
    """How long after its occurrence an event falls due at the latest; `domain/event.py` says when."""
    expect: Expectation | None = None
    """What is expected of its runs; None if nothing is."""

    @property
    def tenant(self) -> str:
        """Whose it is; its id says so."""
        return tenant_of(self.id)

    def recurrence(self) -> AnyRecurrence:
        """With the calendar that it observes. Raises InvalidRecurrence when what is stored no longer parses,
        or the calendar cannot be read."""
        found = self.trigger.recurrence(self.created_at, self.checkpoint)
        return found if self.calendar is None else self.calendar.observed_by(found)

    def is_cancelled_by_edit(self, revision: int, run_time: datetime) -> bool:
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


#: What an attempt delivers.
Deliverable = Schedule | Message


#: Occurrences of each side that the record of an edit names.
MOST_NAMED: Final = 4


@dataclass(frozen=True, slots=True)
class EditedTimes:
    """What an edit changed in the future of a schedule: the first occurrences that it added and removed, and
    how many there were up to `until`; None: to the end of both."""

    added: tuple[datetime, ...]
    removed: tuple[datetime, ...]
    added_count: int
    removed_count: int
    until: datetime | None
