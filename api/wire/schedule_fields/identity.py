"""What a schedule is called and filed under, the state it is in, and what has become of it."""

from marshmallow import fields, validate

from scheduler_app.api.wire.field_types import BoundedList, Instant, ScheduleId, check_visible
from scheduler_app.api.wire.output_schema import OmitNone
from scheduler_app.api.wire.schedule_fields.field import ScheduleField, ShownSchedule
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.schedule import (
    MAX_FAILURES,
    MAX_NAME,
    MAX_NOTE,
    MAX_PURPOSE,
    MAX_TAGS,
    Pause,
    ScheduleState,
)
from scheduler_app.domain.states import State

NAMING = (
    ScheduleField(
        name="id",
        meaning="An id of your own: 1 to 64 letters, digits and hyphens. The id of a deleted schedule may be"
        " used again",
        default="generated",
        input=ScheduleId(metadata={"description": "The id in the path, once more"}),
        creation=ScheduleId(),
        preview=ScheduleId(
            metadata={"description": "The id that the schedule will have: it decides the jitter"}
        ),
        output=fields.String(required=True),
        shown_meaning="The schedule's id",
        shown=lambda it: name_of(it.schedule.id),
    ),
    ScheduleField(
        name="name",
        meaning=f"What people call it, up to {MAX_NAME} characters",
        default="required",
        input=fields.String(
            validate=[validate.Length(max=MAX_NAME), check_visible], metadata={"example": "Daily Backup"}
        ),
        creation=fields.String(
            required=True,
            validate=[validate.Length(min=1, max=MAX_NAME), check_visible],
            metadata={"example": "Daily Backup"},
        ),
        output=fields.String(),
        shown=lambda it: it.schedule.name,
        aliases="title",
    ),
    ScheduleField(
        name="purpose",
        meaning=f"What it is for, in words for people, up to {MAX_PURPOSE} characters",
        default="empty",
        input=fields.String(validate=[validate.Length(max=MAX_PURPOSE), check_visible]),
        output=fields.String(),
        shown=lambda it: it.schedule.purpose or None,
        aliases="notes comment about",
    ),
)


MAX_TAG = 64
MAX_REASON = 2_000
#: The states that a request may name.
STATES = tuple(each.value for each in ScheduleState if each is not ScheduleState.DELETED)
LAST_OUTCOMES = (State.COMPLETED.value, State.ERROR.value, State.RETRYING.value, State.EXPIRED.value)


class LastRunOutput(OmitNone):
    """The newest of the schedule's events that was attempted, and how it ended."""

    time = Instant(required=True, metadata={"description": "The event's run time"})
    outcome = fields.String(
        required=True,
        metadata={
            "description": "`completed`, `error`, `retrying` while another attempt follows, or `expired`"
        },
    )
    event_id = fields.String(required=True)
    ended_at = Instant(metadata={"description": "When that attempt ended"})


def _last_run(it: ShownSchedule) -> dict[str, object] | None:
    last = it.schedule.last_run
    if last is None:
        return None
    return {
        "time": last.time,
        "outcome": last.outcome,
        "event_id": name_of(last.event_id),
        "ended_at": last.ended_at,
    }


def _reason(it: ShownSchedule) -> str | None:
    if it.schedule.state is ScheduleState.PAUSED:
        return (it.schedule.pause or Pause()).reason
    return it.schedule.reason


LIFECYCLE = (
    ScheduleField(
        name="tags",
        meaning=f"Words to find schedules by, up to {MAX_TAGS}",
        default="none",
        input=BoundedList(
            fields.String(validate=[validate.Length(min=1, max=MAX_TAG), check_visible]),
            validate=validate.Length(max=MAX_TAGS),
        ),
        output=fields.List(fields.String()),
        read=lambda tags: tuple(dict.fromkeys(tags)),
        shown=lambda it: list(it.schedule.tags),
        aliases="tag labels label",
    ),
    ScheduleField(
        name="state",
        meaning="The state to be in. A schedule that is not active may have a `run_at` that has passed; an"
        " active one without an occurrence left is finished",
        default="`active`",
        input=fields.String(validate=validate.OneOf(STATES)),
        output=fields.String(required=True, validate=validate.OneOf([each.value for each in ScheduleState])),
        read=ScheduleState,
        shown=lambda it: it.schedule.state.value,
        shown_meaning="The state it is in",
        aliases="status enabled disabled active paused",
    ),
    ScheduleField(
        name="reason",
        meaning="Why it is in the state `error`",
        input=fields.String(validate=[validate.Length(max=MAX_REASON), check_visible]),
        output=fields.String(),
        shown=_reason,
        shown_meaning="Why it is in the state `error`; of one that is paused, `by request` or `failures`",
        exported=lambda it: it.schedule.reason if it.schedule.state is ScheduleState.ERROR else None,
    ),
    ScheduleField(
        name="note",
        meaning=f"Why it is paused, in up to {MAX_NOTE} characters; only with the state `paused`",
        input=fields.String(allow_none=True, validate=[validate.Length(1, MAX_NOTE), check_visible]),
        output=fields.String(),
        shown=lambda it: it.schedule.pause.note if it.schedule.pause else None,
        shown_meaning="What was written of its pause",
    ),
    ScheduleField(
        name="paused_until",
        meaning="When its pause ends by itself; only with the state `paused`",
        default="it stays paused until it is resumed",
        input=Instant(allow_none=True),
        output=Instant(),
        shown=lambda it: it.schedule.pause.until if it.schedule.pause else None,
        shown_meaning="When its pause ends by itself",
    ),
    ScheduleField(
        name="pause_after_failures",
        meaning="It is paused after this many events in a row that ended in `error`, 1 to"
        f" {MAX_FAILURES}; a resume starts the count over",
        default="it goes on, whatever fails",
        input=fields.Integer(strict=True, allow_none=True, validate=validate.Range(1, MAX_FAILURES)),
        output=fields.Integer(),
        shown=lambda it: it.schedule.pause_after_failures,
        aliases="max_failures max_consecutive_failures disable_after_failures",
    ),
    ScheduleField(
        name="version",
        meaning="How many times people have edited it, from 1",
        output=fields.Integer(),
        shown=lambda it: it.schedule.version,
    ),
    ScheduleField(
        name="revision",
        meaning="How many times its events were planned again, from 1",
        output=fields.Integer(),
        shown=lambda it: it.schedule.revision,
    ),
    ScheduleField(
        name="last_run",
        meaning="Its newest run. It follows within seconds of the run and is kept longer than events are",
        output=fields.Nested(LastRunOutput),
        shown=_last_run,
    ),
    ScheduleField(
        name="created_at",
        meaning="When it was created",
        output=Instant(),
        shown=lambda it: it.schedule.created_at,
    ),
    ScheduleField(
        name="updated_at",
        meaning="When it was last edited",
        output=Instant(),
        shown=lambda it: it.schedule.updated_at,
    ),
)
