"""The list of schedules: its filter, and what it shows of each."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from marshmallow import ValidationError, validate, validates_schema

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.output_schema import OmitNone
from scheduler_app.api.wire.paging import Listed, Paging
from scheduler_app.api.wire.past_run import PastRunOutput, past_run_shown
from scheduler_app.api.wire.schedule import ScheduleChoice, ScheduleOutput, schedule_shown
from scheduler_app.domain.kill_switch import Scope, Target
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store.events.figures import EventSummary
from scheduler_app.store.schedules.documents import CorruptSchedule

#: How many of the last runs a list shows of each schedule, and of how many schedules at once.
MOST_OUTCOMES = 30
MOST_WITH_OUTCOMES = 100


class ScheduleFilter(ScheduleChoice, Paging):
    """The parameters of the list of schedules."""

    outcomes = fields.Integer(
        f"Show so many of the last events of each, and which kill switch stops it: {MOST_WITH_OUTCOMES}"
        " schedules at most then",
        validate=validate.Range(1, MOST_OUTCOMES),
    )

    @validates_schema
    def check_outcomes(self, data: Loaded, **_: object) -> None:
        if "outcomes" in data and data["limit"] > MOST_WITH_OUTCOMES:
            raise ValidationError(f"must be {MOST_WITH_OUTCOMES} or less with outcomes", "limit")


class HeldByOutput(OmitNone):
    """A kill switch."""

    scope = fields.String(
        "What it stops",
        required=True,
        validate=validate.OneOf([Scope.ALL.value, Scope.TAG.value, Scope.DESTINATION.value]),
    )
    name = fields.String("Which tag or destination; absent for everything")


class ListedSchedule(ScheduleOutput):
    """A schedule in a list."""

    last_outcomes = fields.List(
        PastRunOutput, "Its last events, newest first; only where `outcomes` asks for them"
    )
    held_by = fields.Nested(
        HeldByOutput,
        "The kill switch that stops it; only where `outcomes` is given, and absent where none does",
    )


class SchedulePage(Listed):
    schedules = fields.List(ListedSchedule, required=True)


def listed_schedules(
    rows: Sequence[Schedule | CorruptSchedule],
    now: datetime,
    outcomes: Mapping[str, Sequence[EventSummary]] | None = None,
    held_by: Mapping[str, Target] | None = None,
) -> Iterator[View]:
    """The fields of ListedSchedule, with the last events and the kill switches where these were asked for."""
    for each in rows:
        view = schedule_shown(each, now)
        if outcomes is not None and isinstance(each, Schedule):
            view["last_outcomes"] = list(map(past_run_shown, outcomes.get(each.id, ())))
        target = (held_by or {}).get(each.id) if isinstance(each, Schedule) else None
        if target is not None:
            view["held_by"] = {"scope": target.scope.value, "name": target.name or None}
        yield view
