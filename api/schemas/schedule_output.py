"""A schedule as it is shown."""

from marshmallow import fields, validate

from api import trigger_fields
from api.fields import Instant, StatusCodes
from api.schemas.common import Listed, Output, Paging, Sparse, Strict
from scheduler_app.domain.event import State
from scheduler_app.domain.masking import HARMLESS, MASK
from scheduler_app.domain.schedule import MAX_NAME, ScheduleState


class LastRunOutput(Sparse):
    """The newest of its events that was attempted, and what came of it."""

    time = Instant(required=True, metadata={"description": "The event's run time"})
    outcome = fields.String(
        required=True, metadata={"description": "completed, error, or retrying while another attempt follows"}
    )
    event_id = fields.String(required=True)
    ended_at = Instant(metadata={"description": "When that attempt ended"})


class NextRunOutput(Output):
    """What is to come next, as long as it is active."""

    time = Instant(required=True)


class ScheduleOutput(Output):
    """A schedule as it is shown. Header values, the values of the URL's query and the body are masked."""

    class Meta(Output.Meta):
        include = trigger_fields.outputs()

    id = fields.String(required=True)
    name = fields.String()
    recurrence = fields.String(metadata={"description": "The trigger as a rule with its DTSTART explicit"})
    dtstart = Instant()
    timezone = fields.String()
    gap = fields.String()
    overlap = fields.String()
    calendar = fields.String(metadata={"description": "The calendar that it observes"})
    on_holiday = fields.String()
    description = fields.String(metadata={"description": "What the rule says, in words"})
    callback_url = fields.String(metadata={"description": f"With {MASK} for the values of its query"})
    method = fields.String()
    headers = fields.Dict(
        keys=fields.String(),
        values=fields.String(),
        metadata={
            "description": f"With {MASK} for the values of all but harmless names"
            f" ({', '.join(sorted(HARMLESS))}). A mask that is given back leaves the value as it is, as long"
            " as the URL's origin stays."
        },
    )
    body = fields.String(metadata={"description": f"{MASK}, where it was given as text"})
    json = fields.Raw(metadata={"description": f"{MASK}, where it was given as JSON"})
    body_base64 = fields.String(metadata={"description": f"{MASK}, where it was given in base64"})
    max_retries = fields.Integer()
    retry_backoff_seconds = fields.Float()
    retry_backoff_max_seconds = fields.Float()
    retry_codes = StatusCodes()
    timeout_seconds = fields.Float()
    success_codes = StatusCodes()
    tags = fields.List(fields.String())
    state = fields.String(required=True, validate=validate.OneOf([state.value for state in ScheduleState]))
    reason = fields.String(metadata={"description": "Why it is in error"})
    version = fields.Integer()
    revision = fields.Integer()
    next_run_at = Instant()
    next_run = fields.Nested(NextRunOutput)
    last_run = fields.Nested(
        LastRunOutput,
        metadata={"description": "Noted within seconds of a run, and kept beyond the retention of events"},
    )
    warnings = fields.List(fields.String())
    signing = fields.Boolean(metadata={"description": "Whether its callbacks are signed"})
    signing_since = Instant(metadata={"description": "When the signing secret in force was made"})
    signing_overlap_until = Instant(metadata={"description": "Until then an older secret signs as well"})
    created_at = Instant()
    updated_at = Instant()


class Created(ScheduleOutput):
    signing_secret = fields.String(metadata={"description": "Shown this once, where `signing` was asked for"})


class Edited(Created):
    message = fields.String(metadata={"example": "Schedule updated successfully."})
    result = fields.String(validate=validate.OneOf(["created", "changed", "unchanged"]))


class SchedulePage(Listed):
    schedules = fields.List(fields.Nested(ScheduleOutput), required=True)


LAST_OUTCOMES = [State.COMPLETED.value, State.ERROR.value, State.RETRYING.value]


class ScheduleChoice(Strict):
    """Which schedules; all that is given must match."""

    state = fields.String(
        validate=validate.OneOf(
            [state.value for state in ScheduleState if state is not ScheduleState.DELETED]
        ),
        metadata={"description": "The state they are in"},
    )
    name = fields.String(
        validate=validate.Length(min=1, max=MAX_NAME), metadata={"description": "The whole name"}
    )
    tag = fields.String(validate=validate.Length(min=1, max=64), metadata={"description": "One of its tags"})
    last_outcome = fields.String(
        validate=validate.OneOf(LAST_OUTCOMES),
        metadata={"description": "How their last run ended; `retrying`: another attempt of it follows"},
    )


class ScheduleFilter(ScheduleChoice, Paging):
    """What narrows the list of schedules."""
