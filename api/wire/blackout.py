"""Blackouts on the wire."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from marshmallow import ValidationError, fields, validate, validates_schema

from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.field_types import (
    CALENDAR_NAME,
    CALENDAR_NAME_ERROR,
    DestinationName,
    Instant,
    ScheduleId,
    check_visible,
)
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema
from scheduler_app.api.wire.schedule_fields import OUTPUT_FIELDS, PREVIEW_FIELDS
from scheduler_app.domain.blackout import (
    KINDS,
    LEAST_DURATION,
    MAX_DURATION,
    POLICIES,
    Blackout,
    Blackouts,
    end_of,
)
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.ids import WholeId, name_of, tenant_of
from scheduler_app.domain.kill_switch import Scope, Target
from scheduler_app.domain.schedule import MAX_NOTE, Schedule
from scheduler_app.json_boolean import JsonBoolean
from scheduler_app.store.blackouts import CorruptBlackout
from scheduler_app.usecases.stops import blackout_cover

_TRIGGERS = (*KINDS, "cron_seconds")
_TARGETS = tuple(scope.value for scope in Scope)
_POLICY = (
    "`skip`: an occurrence within a window ends as `skipped`. `postpone`: it falls due at the window's end"
)


class BlackoutInput(InputSchema):
    """When windows begin, how long they last, and what is not sent then: one of `all`, `tag`, `destination`
    and `schedule`."""

    class Meta(InputSchema.Meta):
        include = {name: PREVIEW_FIELDS[name] for name in (*_TRIGGERS, "timezone")}  # noqa: RUF012

    duration_seconds = fields.Float(
        required=True,
        validate=validate.Range(LEAST_DURATION.total_seconds(), MAX_DURATION.total_seconds()),
        metadata={"description": "How long each window lasts, in elapsed time"},
    )
    policy = fields.String(
        load_default="postpone",
        validate=validate.OneOf(POLICIES),
        metadata={"description": f"What becomes of what falls due within. {_POLICY}"},
    )
    all = JsonBoolean(metadata={"description": "It is of everything"})
    tag = fields.String(
        validate=[validate.Length(1, 64), check_visible],
        metadata={"description": "It is of what has this tag", "example": "billing"},
    )
    destination = DestinationName(metadata={"description": "It is of what goes to this destination"})
    schedule = ScheduleId(metadata={"description": "It is of this schedule"})
    note = fields.String(
        validate=[validate.Length(1, MAX_NOTE), check_visible],
        metadata={"description": f"Why, in up to {MAX_NOTE} characters"},
    )

    @validates_schema
    def check_one(self, data: Loaded, **_: object) -> None:
        given = [name for name in _TARGETS if data.get(name)]
        if len(given) != 1:
            message = "give one of all: true, tag, destination and schedule"
            raise ValidationError(message, given[1] if given else "all")


def blackout_of(blackout_id: WholeId, given: Loaded, now: datetime) -> Blackout:
    """The blackout that a body asks for. Raises InvalidField."""
    name = name_of(blackout_id)
    if not CALENDAR_NAME.match(name):
        raise InvalidField("name", f"the path's {CALENDAR_NAME_ERROR}")
    scope = Scope(next(each for each in _TARGETS if given.get(each)))
    named = {**given, "all": "", "schedule": name_of(given.get("schedule", ""))}
    target = Target(tenant_of(blackout_id), scope, named[scope.value])
    return Blackout.of(
        name,
        target,
        {each: given[each] for each in _TRIGGERS if each in given},
        timedelta(seconds=given["duration_seconds"]),
        given["policy"],
        now,
        timezone=given.get("timezone", "UTC"),
        note=given.get("note"),
    )


class WindowOutput(OutputSchema):
    begins = Instant(required=True)
    ends = Instant(required=True)


class BlackoutOutput(OmitNone):
    class Meta(OmitNone.Meta):
        include = {name: OUTPUT_FIELDS[name] for name in (*_TRIGGERS, "timezone")}  # noqa: RUF012

    name = fields.String(required=True)
    duration_seconds = fields.Float()
    policy = fields.String(metadata={"description": _POLICY})
    all = fields.Boolean()
    tag = fields.String()
    destination = fields.String()
    schedule = fields.String()
    note = fields.String()
    created_at = Instant()
    description = fields.String(metadata={"description": "When its windows begin, in words"})
    window = fields.Nested(
        WindowOutput,
        metadata={"description": "The window that lasts now, or else the next one; absent if none comes"},
    )
    is_on = fields.Boolean(metadata={"description": "Whether that window lasts now"})
    corrupt = fields.String(metadata={"description": "Why it cannot be read; it stops nothing then"})


class BlackoutEdited(BlackoutOutput):
    result = fields.String(
        validate=validate.OneOf(["created", "changed", "unchanged"]),
        metadata={"description": "What the request did"},
    )


class BlackoutList(OutputSchema):
    blackouts = fields.List(fields.Nested(BlackoutOutput), required=True)


def blackout_shown(blackout: Blackout | CorruptBlackout, now: datetime) -> View:
    """A blackout in answers, and its window at `now`."""
    if isinstance(blackout, CorruptBlackout):
        return {"name": blackout.name, "corrupt": blackout.reason}
    target = blackout.target
    return {
        "name": blackout.name,
        **{name: blackout.trigger.written.get(name) for name in _TRIGGERS},
        "timezone": blackout.trigger.timezone,
        "duration_seconds": blackout.duration.total_seconds(),
        "policy": blackout.policy,
        target.scope.value: True if target.scope is Scope.ALL else target.name,
        "note": blackout.note,
        "created_at": blackout.created_at,
        **_window(blackout, now),
    }


def _window(blackout: Blackout, now: datetime) -> View:
    view: View = {"description": blackout.trigger.recurrence(blackout.since).description}
    begins = now if blackout.window(now) else blackout.next_start(now)
    if begins is None:
        return view | {"is_on": False}
    lasting = blackout.window(begins)
    ends = end_of((blackout,), begins)
    window = {"begins": lasting[0] if lasting else begins, "ends": ends} if ends else None
    return view | {"is_on": begins == now, "window": window}


def note_blackouts(occurrences: Sequence[dict[str, Any]], schedule: Schedule, known: Blackouts) -> None:
    """Adds to each occurrence of a preview the blackout that it falls into."""
    for each in occurrences if known else ():
        cover = blackout_cover(known, schedule, each.get("due_at", each["run_time"]))
        if cover is not None:
            skips = cover.skips(each["run_time"])
            each["blackout"] = {
                "name": cover.name,
                "until": cover.ends,
                "policy": "skip" if skips else "postpone",
            }
