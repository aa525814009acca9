"""Kill switches on the wire."""

from typing import ClassVar

from marshmallow import ValidationError, validate, validates_schema

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.input_schema import InputSchema, WriteQuery
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema
from scheduler_app.api.wire.resource_fields import new_fields, output_fields
from scheduler_app.domain.kill_switch import KillSwitch, Scope, Target
from scheduler_app.domain.resources.stops import KILL_SWITCH, TARGETS
from scheduler_app.store.stops import CorruptKillSwitch
from scheduler_app.usecases.stops import HoldingKillSwitch, KillSwitchEffect


class OneTarget(InputSchema):
    """What to stop: one of `OTHERS`, or `all`."""

    OTHERS: ClassVar[tuple[str, ...]] = ("tag", "destination")

    @validates_schema
    def check_one(self, data: Loaded, **_: object) -> None:
        given = [name for name in ("all", *self.OTHERS) if data.get(name)]
        if len(given) != 1:
            *others, last = "all: true", *self.OTHERS
            message = f"give one of {', '.join(others)} and {last}"
            raise ValidationError(message, given[1] if given else "all")


def target_of(data: Loaded, tenant: str) -> Target:
    """What a body or a query names."""
    if data.get("tag"):
        return Target(tenant, Scope.TAG, data["tag"])
    if data.get("destination"):
        return Target(tenant, Scope.DESTINATION, data["destination"])
    return Target(tenant, Scope.ALL)


class KillSwitchInput(OneTarget):
    """What to stop: one of `all`, `tag` and `destination`."""

    class Meta(InputSchema.Meta):
        include = new_fields(KILL_SWITCH)


class KillSwitchQuery(OneTarget, WriteQuery):
    """Which one to turn off: one of `all`, `tag` and `destination`."""

    class Meta(WriteQuery.Meta):
        include = new_fields(TARGETS[1:])

    all = fields.Boolean(TARGETS[0].meaning, truthy={"true"}, falsy={"false"})


class KillSwitchOutput(OmitNone):
    """A kill switch that is on."""

    class Meta(OmitNone.Meta):
        include = output_fields(KILL_SWITCH)


class Stop(OutputSchema):
    """What a kill switch stops."""

    schedules = fields.Integer("Active schedules that it stops", required=True)
    at_least = fields.Boolean("Whether there may be more: 10,000 are looked at", required=True)
    events = fields.Integer("Events that wait, and that it stops", required=True)
    events_at_least = fields.Boolean(
        "Whether there may be more: 10,000 are counted, of 1,000 schedules of a tag", required=True
    )


class KillSwitchTurnedOn(KillSwitchOutput):
    result = fields.String(
        "Whether this request turned it on", required=True, validate=validate.OneOf(["on", "was on"])
    )
    stopped = fields.Nested(Stop, required=True)
    warning = fields.String("Why it stops nothing now, and the name that comes nearest to the given one")


class KillSwitchTurnedOff(OutputSchema):
    message = fields.String(required=True)
    held = fields.Integer("Events that it held, now due again; 10,000 at most", required=True)


class KillSwitchList(OutputSchema):
    kill_switches = fields.List(KillSwitchOutput, required=True)


def _target_shown(target: Target) -> View:
    return {target.scope.value: True if target.scope is Scope.ALL else target.name}


def switch_shown(switch: KillSwitch | CorruptKillSwitch) -> View:
    """One that is on, in answers."""
    view = _target_shown(switch.target)
    if isinstance(switch, CorruptKillSwitch):
        return view | {"corrupt": switch.reason}
    return view | {"since": switch.since, "note": switch.note, "by": switch.by}


def kill_switch_shown(found: HoldingKillSwitch) -> View:
    """One that is on, with what it holds."""
    return switch_shown(found.switch) | {"held": found.held}


def turned_on_shown(stopped: KillSwitchEffect) -> View:
    """What turning it on has done."""
    return switch_shown(stopped.switch) | {
        "result": "was on" if stopped.was_on else "on",
        "stopped": {
            "schedules": stopped.schedules.count,
            "at_least": stopped.schedules.at_least,
            "events": stopped.events.count,
            "events_at_least": stopped.events.at_least,
        },
        "warning": stopped.warning,
    }
