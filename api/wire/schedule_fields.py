"""A schedule's fields on the wire, made of their table, `domain/resources/schedule.py`: how requests give
them, what drafts hold of them, and what answers and exports show that a schedule holds in another form.
"""

import binascii
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property, partial
from typing import Any

from marshmallow import ValidationError, post_load, validates_schema

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.action import ACTION_TYPES, ActionInput, ActionOutput, read_action
from scheduler_app.api.wire.field_types import Instant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema, without_none
from scheduler_app.api.wire.resource_fields import (
    Show,
    edit_fields,
    new_fields,
    output_fields,
    preview_fields,
    shows,
)
from scheduler_app.domain.action import Action
from scheduler_app.domain.calendars import CalendarUse
from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.event import due
from scheduler_app.domain.expectation import Expectation
from scheduler_app.domain.http_action import MAX_BODY_BYTES, BodyKind, HttpAction, RequestBody
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.masking import MASK, MASKED_BODY, masked, masked_url
from scheduler_app.domain.recurrence import AnyRecurrence, Recurrence
from scheduler_app.domain.resource_fields import ResourceField, default_at
from scheduler_app.domain.resources.schedule import EXPECT, SCHEDULE
from scheduler_app.domain.schedule import Pause, Schedule, ScheduleState
from scheduler_app.domain.states import State
from scheduler_app.domain.triggers import FIELDS as TRIGGER_FIELDS
from scheduler_app.domain.triggers import Trigger, Value
from scheduler_app.store.encryption import SecretBox, seal_action

MAX_JSON_DEPTH = 100
#: The wire has one field for each way to give a body; at most one of them may be given.
BODY_FIELDS = ("body", "json", "body_base64")
LAST_OUTCOMES = (State.COMPLETED.value, State.ERROR.value, State.RETRYING.value, State.EXPIRED.value)


@dataclass(frozen=True, slots=True)
class RecurrenceFacts:
    """What a schedule's recurrence says of itself at one instant."""

    warnings: list[str]
    description: str | None = None
    next_run_at: datetime | None = None
    """None also for a schedule that is not active."""
    text: str | None = None
    """None for a single instant."""
    dtstart: datetime | None = None

    @classmethod
    def of(cls, schedule: Schedule, now: datetime) -> "RecurrenceFacts":
        """The facts at `now`; a stored rule that no longer evaluates becomes a warning."""
        try:
            recurrence = schedule.recurrence()
            active = schedule.state is ScheduleState.ACTIVE
            following = recurrence.after(now) if active else None
            described = recurrence.description
        except InvalidRecurrence as error:
            return cls(warnings=[f"the stored rule no longer evaluates: {error}"])
        return cls(
            warnings=warnings_of(schedule.trigger, schedule.calendar, recurrence, now),
            description=described,
            next_run_at=following,
            text=recurrence.text if isinstance(recurrence, Recurrence) else None,
            dtstart=recurrence.dtstart if isinstance(recurrence, Recurrence) else None,
        )


def warnings_of(
    trigger: Trigger,
    calendar: CalendarUse | None,
    recurrence: AnyRecurrence,
    now: datetime,
    last: datetime | None = None,
) -> list[str]:
    """What may surprise of a trigger that observes `calendar`; `recurrence` is what they come to, and `last`
    its last occurrence that is looked at."""
    of_calendar = calendar.warnings(recurrence, trigger.timezone, now, last) if calendar else ()
    return [*trigger.warnings, *recurrence.warnings, *of_calendar]


@dataclass(frozen=True)
class ShownSchedule:
    """A schedule on its way into an answer or an export."""

    schedule: Schedule
    now: datetime
    secret_box: SecretBox | None = None
    """What an export's secrets are encrypted with; answers hold none."""

    @cached_property
    def portable_trigger(self) -> Mapping[str, Value]:
        """The trigger's fields with which a new schedule fires at the same instants, whenever it is made."""
        return self.schedule.trigger.portable(self.schedule.created_at)

    @cached_property
    def facts(self) -> RecurrenceFacts:
        """Evaluated once for all rows, and not at all for an export."""
        return RecurrenceFacts.of(self.schedule, self.now)


class NextRunOutput(OutputSchema):
    """The next occurrence of a schedule that is active."""

    time = Instant(required=True)


class LastRunOutput(OmitNone):
    """The newest of the schedule's events that was attempted, and how it ended."""

    time = Instant("The event's run time", required=True)
    outcome = fields.String(
        "`completed`, `error`, `retrying` while another attempt follows, or `expired`", required=True
    )
    event_id = fields.String(required=True)
    ended_at = Instant("When that attempt ended")


EXPECTATION_FIELDS = new_fields(EXPECT)


class ExpectationInput(InputSchema):
    """What a schedule expects of its runs. A violation is reported, and ends no run."""

    class Meta(InputSchema.Meta):
        include = EXPECTATION_FIELDS

    @validates_schema
    def check_any(self, data: Loaded, **_: object) -> None:
        if not data:
            names = ", ".join(EXPECTATION_FIELDS)
            raise ValidationError(f"give one of {names}; null where nothing is expected")

    @post_load
    def expectation(self, data: Loaded, **_: object) -> Expectation:
        return Expectation(**data)


class ExpectationOutput(OmitNone):
    """What is expected of the runs of the schedule."""

    class Meta(OmitNone.Meta):
        include = output_fields(EXPECT)


_INPUTS = {"action": ActionInput, "expect": lambda: fields.Nested(ExpectationInput)}
_OUTPUTS = {
    "expect": lambda: fields.Nested(ExpectationOutput),
    "action": ActionOutput,
    "next_run": lambda: fields.Nested(NextRunOutput),
    "last_run": lambda: fields.Nested(LastRunOutput),
}

#: What PUT takes.
EDIT_FIELDS = edit_fields(SCHEDULE, _INPUTS)
#: What POST and each item of a bulk take.
CREATION_FIELDS = new_fields(SCHEDULE, _INPUTS)
#: What a preview takes.
PREVIEW_FIELDS = preview_fields(SCHEDULE)
#: What answers show.
OUTPUT_FIELDS = output_fields(SCHEDULE, _OUTPUTS)
#: What answers show of the fields of trigger kinds.
TRIGGER_OUTPUT_FIELDS = {name: OUTPUT_FIELDS[name] for name in TRIGGER_FIELDS}


def read_body(name: str, value: object) -> RequestBody | None:
    """The body that a request gives in the field `name`. Raises ValidationError."""
    kind = BodyKind(name)
    if value == MASK:
        return RequestBody(kind, MASKED_BODY)
    if kind is BodyKind.JSON:
        _check_depth(value)
        body = RequestBody.from_json(value)
    elif value is None:
        return None
    elif kind is BodyKind.TEXT:
        body = RequestBody(kind, str(value).encode("utf-8", "surrogatepass"))
    else:
        try:
            body = RequestBody(kind, b64decode(str(value), validate=True))
        except (binascii.Error, ValueError):
            raise ValidationError("is not base64", kind.value) from None
    if len(body.data) > MAX_BODY_BYTES:
        raise ValidationError(f"must not exceed {MAX_BODY_BYTES // 1024} KiB", kind.value)
    return body


def _check_depth(value: object, depth: int = 0) -> None:
    if depth > MAX_JSON_DEPTH:
        raise ValidationError(f"is nested more than {MAX_JSON_DEPTH} deep", BodyKind.JSON.value)
    children = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for child in children:
        _check_depth(child, depth + 1)


#: What reads fields of which a draft holds another value than the request gave. Each raises ValidationError.
READERS: Mapping[str, Callable[[Any], object]] = {
    **{name: partial(read_body, name) for name in BODY_FIELDS},
    "action": read_action,
}


def _of_request(show: Callable[[HttpAction], object]) -> Show:
    """Shows a part of a schedule's request; nothing for an action of another kind."""

    def of(it: ShownSchedule) -> object:
        action = it.schedule.action
        return show(action) if isinstance(action, HttpAction) else None

    return of


#: How answers show a request, of a schedule or of a message.
REQUEST_SHOWN: Mapping[str, Callable[[HttpAction], object]] = {
    "callback_url": lambda action: None if action.destination else masked_url(action.url),
    "destination": lambda action: name_of(action.destination) if action.destination else None,
    "path": lambda action: masked_url(action.url) or None if action.destination else None,
    "method": lambda action: action.method or None,
    "headers": lambda action: dict(masked(action.headers)),
    "body": lambda action: _mask_of(action, BodyKind.TEXT),
    "json": lambda action: _mask_of(action, BodyKind.JSON),
    "body_base64": lambda action: _mask_of(action, BodyKind.BASE64),
}


def _mask_of(action: HttpAction, kind: BodyKind) -> str | None:
    return MASK if action.body and action.body.kind is kind else None


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


def _next_due(it: ShownSchedule) -> datetime | None:
    schedule, following = it.schedule, it.facts.next_run_at
    return (
        due(schedule.id, following, schedule.jitter_seconds)
        if schedule.jitter_seconds and following
        else None
    )


def _action_shown(action: Action) -> View | None:
    """None for an HTTP request, whose fields are those of a schedule."""
    its = ACTION_TYPES.get(action.kind)
    return {"type": action.kind, **its.shown(action)} if its else None


def _written(name: str) -> Show:
    return lambda it: it.schedule.trigger.written.get(name)


def _portable(name: str) -> Show:
    return lambda it: it.portable_trigger.get(name)


#: What shows each field. Most are shown as a schedule has them.
SHOWN = shows(
    SCHEDULE,
    {
        **{name: _of_request(show) for name, show in REQUEST_SHOWN.items()},
        **{name: _written(name) for name in TRIGGER_FIELDS},
        "id": lambda it: name_of(it.schedule.id),
        "purpose": lambda it: it.schedule.purpose or None,
        "recurrence": lambda it: it.facts.text,
        "dtstart": lambda it: it.facts.dtstart,
        "description": lambda it: it.facts.description,
        "next_run_at": lambda it: it.facts.next_run_at,
        "next_run": lambda it: {"time": it.facts.next_run_at} if it.facts.next_run_at else None,
        "warnings": lambda it: it.facts.warnings,
        "action": lambda it: _action_shown(it.schedule.action),
        "signing": lambda it: it.schedule.signing is not None,
        "signing_overlap_until": lambda it: (
            it.schedule.signing.overlap_until(it.now) if it.schedule.signing else None
        ),
        "next_due_at": _next_due,
        "expect": lambda it: it.schedule.expect and without_none(asdict(it.schedule.expect)),
        "reason": _reason,
        "last_run": _last_run,
    },
    "schedule.",
)


def _sealed_secrets(it: ShownSchedule) -> str | None:
    action = it.schedule.action
    if it.secret_box is None or not isinstance(action, HttpAction):
        return None
    return seal_action(action, it.secret_box)


def _unless_default(row: ResourceField) -> Show:
    show, default = SHOWN[row.name], default_at(Schedule, row.path)

    def shown(it: ShownSchedule) -> object:
        value = show(it)
        return None if value == default else value

    return shown


#: What shows fields in an export, from which the same schedule can be made again, where that differs.
EXPORTED: Mapping[str, Show] = {
    **{row.name: _unless_default(row) for row in SCHEDULE if row.quiet},
    **{name: _portable(name) for name in TRIGGER_FIELDS},
    "reason": lambda it: it.schedule.reason if it.schedule.state is ScheduleState.ERROR else None,
    # Most schedules are not signed.
    "signing": lambda it: True if it.schedule.signing else None,
    "sealed": _sealed_secrets,
}
