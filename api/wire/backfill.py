"""Backfills: what people ask for, and how far it has come."""

from marshmallow import fields, validate

from scheduler_app.api.json_types import View
from scheduler_app.api.wire.field_types import Instant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OmitNone
from scheduler_app.domain.backfill import (
    DEFAULT_RATE,
    LEAST_RATE,
    MAX_OCCURRENCES,
    MAX_RATE,
    BackfillState,
    RunOverlap,
)
from scheduler_app.json_boolean import JsonBoolean
from scheduler_app.usecases.backfills import Progress


class BackfillInput(InputSchema):
    """Which past occurrences to make up for, and how fast."""

    since = Instant(
        required=True, data_key="from", metadata={"description": "The first instant that is looked at"}
    )
    until = Instant(data_key="to", metadata={"description": "The last one; default: now"})
    rate_per_second = fields.Float(
        load_default=DEFAULT_RATE,
        validate=validate.Range(LEAST_RATE, MAX_RATE),
        metadata={"description": "How many callbacks fall due in a second at most"},
    )
    overlap = fields.String(
        load_default=RunOverlap.ALLOW.value,
        validate=validate.OneOf([each.value for each in RunOverlap]),
        metadata={
            "description": "`allow`: its callbacks run beside each other; `queue`: each waits for the end of"
            " the one before, retries included"
        },
    )
    only_missing = JsonBoolean(
        load_default=True,
        metadata={
            "description": "Leave out occurrences that have an event that waits, succeeded or ended in"
            " `error`; `false` makes every one once more"
        },
    )
    dry_run = JsonBoolean(
        load_default=False,
        metadata={"description": "Only tell what it would do"},
    )


class BackfillOutput(OmitNone):
    """A backfill and how far it has come."""

    schedule_id = fields.String(required=True)
    state = fields.String(
        required=True,
        validate=validate.OneOf([*(each.value for each in BackfillState), "done"]),
        metadata={
            "description": "`running`: beats make its events; `made`: all are made, and some wait; `done`;"
            " `cancelled`; `error`, with its `reason`"
        },
    )
    reason = fields.String(metadata={"description": "Why it ended"})
    since = Instant(required=True, data_key="from")
    until = Instant(required=True, data_key="to")
    rate_per_second = fields.Float(required=True)
    overlap = fields.String(required=True)
    only_missing = fields.Boolean(required=True)
    occurrences = fields.Integer(
        required=True,
        metadata={"description": f"Occurrences of the rule in that time, {MAX_OCCURRENCES} at most"},
    )
    made = fields.Integer(required=True, metadata={"description": "Of these, how many are events by now"})
    left_out = fields.Integer(
        required=True, metadata={"description": "How many had an event already; of a dry run all of them"}
    )
    waiting = fields.Integer(required=True, metadata={"description": "Its events that are not finished"})
    completed = fields.Integer(required=True, metadata={"description": "Its events that succeeded"})
    failed = fields.Integer(required=True, metadata={"description": "Its events that ended in `error`"})
    seconds_left = fields.Integer(
        metadata={"description": "How long the rest takes at its rate; absent once all is made"}
    )
    started_at = Instant(required=True)
    ended_at = Instant(metadata={"description": "When all was made, or it was cancelled"})


def backfill_shown(progress: Progress) -> View:
    """The fields of BackfillOutput."""
    found, waiting = progress.backfill, progress.waiting
    left_out = found.left_out or progress.there
    over = found.state is BackfillState.MADE and not waiting
    running = found.state is BackfillState.RUNNING
    rest = max(0, found.occurrences - found.made - left_out)
    return {
        "schedule_id": found.schedule_id.rpartition(":")[2],
        "state": "done" if over else found.state.value,
        "reason": found.reason,
        "since": found.since,
        "until": found.until,
        "rate_per_second": found.rate_per_second,
        "overlap": found.overlap.value,
        "only_missing": found.only_missing,
        "occurrences": found.occurrences,
        "made": found.made,
        "left_out": left_out,
        "waiting": waiting,
        "completed": progress.completed,
        "failed": progress.failed,
        "seconds_left": round(rest / found.rate_per_second) if running else None,
        "started_at": found.started_at,
        "ended_at": found.ended_at,
    }
