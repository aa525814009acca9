"""Events in answers."""

from marshmallow import fields, validate

from scheduler_app.api.wire.field_types import Instant
from scheduler_app.api.wire.output_schema import OutputSchema
from scheduler_app.api.wire.paging import Listed
from scheduler_app.domain.event import State


class StatusLine(OutputSchema):
    """A line of an event's history."""

    time = Instant(metadata={"description": "When the event entered the state"})
    status = fields.String(
        validate=validate.OneOf([state.value for state in State]), metadata={"description": "The state"}
    )
    message = fields.String(metadata={"description": "Why, in words"})


class AttemptLine(OutputSchema):
    """One execution of the event's request."""

    number = fields.Integer(metadata={"description": "Counts the attempts, from 1"})
    started_at = Instant(metadata={"description": "When the request started"})
    duration_ms = fields.Float(metadata={"description": "How long it lasted, in milliseconds"})
    lag_ms = fields.Float(
        metadata={"description": "How late it started after the event was due, in milliseconds"}
    )
    status_code = fields.Integer(
        allow_none=True, metadata={"description": "The status of the answer; null without an answer"}
    )
    error = fields.String(allow_none=True, metadata={"description": "Why it failed; null where it succeeded"})
    snippet = fields.String(metadata={"description": "The beginning of the answer's body"})
    output = fields.String(
        metadata={"description": "What a command has printed: up to 64 KiB of its beginning and of its end"}
    )
    worker = fields.String(metadata={"description": "The worker that made it"})
    late = fields.Boolean(
        metadata={"description": "True where it ended after its lease, so that it changed no state"}
    )


class MissedOutput(OutputSchema):
    """Occurrences that were too late when a beat came to them, and that one record tells of."""

    first = Instant(required=True, metadata={"description": "The first of them"})
    last = Instant(required=True, metadata={"description": "The last of them"})
    count = fields.Integer(required=True, metadata={"description": "How many there are"})


class EventOutput(OutputSchema):
    """An event with its history."""

    id = fields.String(
        data_key="_id",
        attribute="_id",
        required=True,
        metadata={"description": "The event's id, which its callbacks carry as Idempotency-Key"},
    )
    schedule_id = fields.String(
        metadata={"description": "The schedule it belongs to; absent for a message, which has none"}
    )
    run_time = Instant(required=True, metadata={"description": "The occurrence that it stands for"})
    kind = fields.String(
        required=True,
        metadata={
            "description": "`scheduled`; `manual` for one that a person or program triggered;"
            " `backfill` for a past occurrence that was asked for; `message`"
        },
    )
    state = fields.String(
        validate=validate.OneOf([state.value for state in State]),
        metadata={"description": "The state it is in"},
    )
    due_at = Instant(metadata={"description": "When the next attempt is due; finished events have none"})
    revision = fields.Integer(metadata={"description": "The revision of the schedule that planned it"})
    attempt = fields.Integer(metadata={"description": "Attempts made so far"})
    status = fields.List(
        fields.Nested(StatusLine), metadata={"description": "Its history, the oldest line first"}
    )
    attempts = fields.List(
        fields.Nested(AttemptLine), metadata={"description": "Its attempts, the oldest first"}
    )
    created_at = Instant(metadata={"description": "When it was planned"})
    archived_at = Instant(metadata={"description": "When it was finished"})
    missed = fields.Nested(
        MissedOutput,
        metadata={
            "description": "Only in a record of missed occurrences, which stands for all of them; its"
            " `run_time` is the last one's"
        },
    )
    corrupt = fields.Dict(
        keys=fields.String(),
        values=fields.String(),
        metadata={
            "description": "The corrupt fields of its stored document, each with the reason; absent if none"
        },
    )


class EventPage(Listed):
    events = fields.List(fields.Nested(EventOutput), required=True)


class Triggered(OutputSchema):
    """The event that a trigger by hand made."""

    event_id = fields.String(required=True, metadata={"description": "The new event's id"})
    message = fields.String(required=True, metadata={"description": "The result in words"})
