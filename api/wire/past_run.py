"""A past run in few words, for lists that show the last ones of something."""

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import View
from scheduler_app.api.wire.field_types import Instant
from scheduler_app.api.wire.output_schema import OmitNone
from scheduler_app.domain.ids import name_of
from scheduler_app.store.events.figures import EventSummary


class PastRunOutput(OmitNone):
    """An event that was due, and what became of it."""

    event_id = fields.String("Its id", required=True)
    run_time = Instant("When it was due by the rule", required=True)
    state = fields.String("Its state", required=True)
    tries = fields.Integer("How many attempts were made", required=True)
    status_code = fields.Integer("What the last attempt was answered")
    duration_ms = fields.Float("How long the last attempt took")


def past_run_shown(found: EventSummary) -> View:
    """The fields of PastRunOutput."""
    return {
        "event_id": name_of(found.id),
        "run_time": found.run_time,
        "state": found.state.value,
        "tries": found.tries,
        "status_code": found.status_code,
        "duration_ms": found.duration_ms,
    }
