"""Heartbeats on the wire."""

from datetime import datetime
from functools import partial

from marshmallow import validate

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.field_types import ID, Instant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema, edit_result
from scheduler_app.api.wire.resource_fields import Show, new_fields, output_fields, shows, view_of
from scheduler_app.domain.errors import InvalidField, InvalidRecurrence
from scheduler_app.domain.heartbeat import (
    DEFAULT_GRACE,
    MAX_EXIT_STATUS,
    MAX_OUTPUT,
    Heartbeat,
    Ping,
    PingKind,
)
from scheduler_app.domain.ids import WholeId, name_of
from scheduler_app.domain.resources.heartbeat import BESIDE, HEARTBEAT, WHEN
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.store.heartbeats import CorruptHeartbeat
from scheduler_app.usecases.deeds.heartbeats import HeartbeatDraft


class HeartbeatInput(InputSchema):
    """When pings are due, by any trigger but `on_demand`, and how late they may come."""

    class Meta(InputSchema.Meta):
        include = new_fields(HEARTBEAT)


def heartbeat_draft(heartbeat_id: WholeId, given: Loaded) -> HeartbeatDraft:
    """What a body asks for. Raises InvalidField for a name that no heartbeat can have."""
    if not ID.fullmatch(name_of(heartbeat_id)):
        raise InvalidField("name", "the path must name it by 1 to 64 letters, digits and hyphens")
    return HeartbeatDraft(
        given={name: given[name] for name in WHEN if name in given},
        timing=ScheduleDraft(**{name: given[name] for name in BESIDE if name in given}),
        grace_seconds=given.get("grace_seconds", DEFAULT_GRACE),
        note=given.get("note"),
        tags=tuple(dict.fromkeys(given.get("tags", ()))),
    )


class PingInput(InputSchema):
    """What a run says; an empty body says that it has succeeded."""

    body_optional = True

    kind = fields.String(
        "`success`, `start` or `fail`", validate=validate.OneOf([each.value for each in PingKind])
    )
    exit_status = fields.Integer(
        "The exit status of the run: 0 is a success, another one is a failure",
        strict=True,
        validate=validate.Range(0, MAX_EXIT_STATUS),
    )
    output = fields.String("What the run has written", validate=validate.Length(max=MAX_OUTPUT))


def ping_given(given: Loaded, at: datetime) -> Ping:
    """The ping of a body. Raises InvalidField."""
    status: int | None = given.get("exit_status")
    if status is None:
        return Ping(at, PingKind(given.get("kind", PingKind.SUCCESS)))
    kind = PingKind.FAIL if status else PingKind.SUCCESS
    if given.get("kind", kind) != kind:
        raise InvalidField("kind", f"is {kind.value} for this exit_status: leave one of both out")
    return Ping(at, kind, status)


class PingOutput(OmitNone):
    at = Instant("When it came", required=True)
    kind = fields.String(
        "What it said", required=True, validate=validate.OneOf([each.value for each in PingKind])
    )
    exit_status = fields.Integer("The exit status that it told")


class HeartbeatOutput(OmitNone):
    class Meta(OmitNone.Meta):
        include = output_fields(HEARTBEAT, {"ping": lambda: fields.Nested(PingOutput)})


class HeartbeatEdited(HeartbeatOutput):
    result = edit_result()


class HeartbeatList(OutputSchema):
    heartbeats = fields.List(HeartbeatOutput, required=True)


def _pings(heartbeat: Heartbeat) -> list[View]:
    return [
        {"at": each.at, "kind": each.kind.value, "exit_status": each.exit_status} for each in heartbeat.pings
    ]


def _description(heartbeat: Heartbeat) -> str | None:
    try:
        return heartbeat.trigger.recurrence(heartbeat.created_at).description
    except InvalidRecurrence:
        return None  # `missed_why` says it


def _written(name: str, heartbeat: Heartbeat) -> object:
    return heartbeat.trigger.written.get(name)


_SHOWS: dict[str, Show] = shows(
    HEARTBEAT,
    {
        "name": lambda it: name_of(it.id),
        **{name: partial(_written, name) for name in WHEN},
        "tags": lambda it: list(it.tags) or None,
        "missed_why": lambda it: it.missed_why or None,
        "pings": _pings,
        "description": _description,
    },
)


def heartbeat_shown(heartbeat: Heartbeat | CorruptHeartbeat) -> View:
    """A heartbeat in answers."""
    if isinstance(heartbeat, CorruptHeartbeat):
        return {"name": heartbeat.name, "corrupt": heartbeat.reason}
    return view_of(_SHOWS, heartbeat)
