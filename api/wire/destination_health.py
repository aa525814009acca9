"""How destinations are, in their list."""

from marshmallow import ValidationError, validate, validates_schema

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.field_types import Instant
from scheduler_app.api.wire.output_schema import OmitNone
from scheduler_app.api.wire.paging import Paging
from scheduler_app.api.wire.past_run import PastRunOutput, past_run_shown
from scheduler_app.domain.ids import name_of
from scheduler_app.usecases.questions.destinations import (
    MOST_AT_ONCE,
    MOST_RUNS,
    MOST_SCHEDULES,
    SCHEDULES_LOOKED_AT,
    DestinationHealth,
    DestinationState,
)


class HealthOutput(OmitNone):
    """How a destination is at this moment."""

    state = fields.String(
        "In one word; of several that are true, the first",
        required=True,
        validate=validate.OneOf([each.value for each in DestinationState]),
    )
    failing_since = Instant("Since when it fails; absent while it does not")
    failure_id = fields.String("The failure of GET /api/v1/failures that is meant")
    error = fields.String("The last error, in words")
    waiting = fields.Integer("Events and messages that wait for it, counted up to 100,000", required=True)
    schedules = fields.Integer(f"Schedules that call it, counted up to {MOST_SCHEDULES:,}", required=True)
    last_runs = fields.List(
        PastRunOutput,
        f"The last runs of {SCHEDULES_LOOKED_AT} of its schedules, newest first, {MOST_RUNS} at most",
        required=True,
    )


class DestinationListQuery(Paging):
    """Which page of the destinations."""

    health = fields.Boolean(f"Show how each is, of {MOST_AT_ONCE} destinations at most", load_default=False)

    @validates_schema
    def check_health(self, data: Loaded, **_: object) -> None:
        if data["health"] and data["limit"] > MOST_AT_ONCE:
            raise ValidationError(f"must be {MOST_AT_ONCE} or less with health", "limit")


def health_shown(health: DestinationHealth) -> View:
    """The fields of HealthOutput."""
    cause = health.failing
    return {
        "state": health.state.value,
        "failing_since": None if cause is None else cause.since,
        "failure_id": None if cause is None else name_of(cause.id),
        "error": None if cause is None else cause.error or None,
        "waiting": health.waiting,
        "schedules": health.schedules,
        "last_runs": list(map(past_run_shown, health.last_runs)),
    }
