"""Blackouts on the wire."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.field_types import CALENDAR_NAME, CALENDAR_NAME_ERROR, Instant
from scheduler_app.api.wire.kill_switch import OneTarget
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema, edit_result
from scheduler_app.api.wire.resource_fields import new_fields, output_fields
from scheduler_app.domain.blackout import Blackout, Blackouts, end_of
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.ids import WholeId, name_of, tenant_of
from scheduler_app.domain.kill_switch import Scope, Target
from scheduler_app.domain.resources.stops import BLACKOUT, WHEN
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store.stops import CorruptBlackout
from scheduler_app.usecases.stops import blackout_cover

_TARGETS = tuple(scope.value for scope in Scope)
_INPUTS = new_fields(BLACKOUT)
_INPUTS["policy"].load_default = "postpone"


class BlackoutInput(OneTarget):
    """When windows begin, how long they last, and what is not sent then: one of `all`, `tag`, `destination`
    and `schedule`."""

    OTHERS = ("tag", "destination", "schedule")

    class Meta(OneTarget.Meta):
        include = _INPUTS


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
        {each: given[each] for each in WHEN if each in given},
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
        include = output_fields(BLACKOUT, {"window": lambda: fields.Nested(WindowOutput)})


class BlackoutEdited(BlackoutOutput):
    result = edit_result()


class BlackoutList(OutputSchema):
    blackouts = fields.List(BlackoutOutput, required=True)


def blackout_shown(blackout: Blackout | CorruptBlackout, now: datetime) -> View:
    """A blackout in answers, and its window at `now`."""
    if isinstance(blackout, CorruptBlackout):
        return {"name": blackout.name, "corrupt": blackout.reason}
    target = blackout.target
    return {
        "name": blackout.name,
        **{name: blackout.trigger.written.get(name) for name in WHEN},
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
