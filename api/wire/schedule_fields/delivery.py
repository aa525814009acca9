"""How a schedule's events are delivered: retries, timeout, signing."""

from marshmallow import fields, validate

from scheduler_app.api.wire.field_types import DestinationName, Instant, StatusCodes
from scheduler_app.api.wire.schedule_fields.field import ScheduleField
from scheduler_app.config import MAX_TIMEOUT_SECONDS
from scheduler_app.domain.deliverable import DEFAULT_TIMEOUT_SECONDS
from scheduler_app.domain.queues import CALLBACKS, COMMANDS, MAX_QUEUE, NAME
from scheduler_app.domain.retry import DEFAULT_RETRY, MAX_BACKOFF_SECONDS, MAX_RETRIES
from scheduler_app.json_boolean import JsonBoolean

LEAST_SECONDS = 0.1

DELIVERY = (
    ScheduleField(
        name="queue",
        meaning=f"Which workers deliver its events: those started with `-Q` and this name, of up to"
        f" {MAX_QUEUE} letters, digits and hyphens",
        default=f"`{CALLBACKS}`; of a command `{COMMANDS}`",
        input=fields.String(
            validate=validate.Regexp(NAME, error=f"must be 1 to {MAX_QUEUE} letters, digits and hyphens"),
            metadata={"pattern": f"^[a-zA-Z0-9-]{{1,{MAX_QUEUE}}}$"},
        ),
        output=fields.String(),
        shown=lambda it: it.schedule.queue,
        shown_meaning="Which workers deliver its events",
    ),
    ScheduleField(
        name="max_retries",
        meaning=f"How many attempts may follow the first one, 0 to {MAX_RETRIES}",
        default="`WORKER_MAX_RETRIES`",
        input=fields.Integer(strict=True, validate=validate.Range(0, MAX_RETRIES)),
        output=fields.Integer(),
        shown=lambda it: it.schedule.retry.max_retries,
        aliases="retries retry attempts max_attempts retry_count",
    ),
    ScheduleField(
        name="retry_backoff_seconds",
        meaning="The delay before the first retry. Each later one doubles it, and each delay is drawn from"
        " its upper half",
        default=f"{DEFAULT_RETRY.backoff_seconds:g}",
        input=fields.Float(validate=validate.Range(LEAST_SECONDS, MAX_BACKOFF_SECONDS)),
        output=fields.Float(),
        draft="backoff_seconds",
        shown=lambda it: it.schedule.retry.backoff_seconds,
        aliases="backoff retry_delay retry_backoff",
    ),
    ScheduleField(
        name="retry_backoff_max_seconds",
        meaning="The longest delay before a retry",
        default=f"{DEFAULT_RETRY.backoff_max_seconds:g}",
        input=fields.Float(validate=validate.Range(LEAST_SECONDS, MAX_BACKOFF_SECONDS)),
        output=fields.Float(),
        draft="backoff_max_seconds",
        shown=lambda it: it.schedule.retry.backoff_max_seconds,
    ),
    ScheduleField(
        name="retry_codes",
        meaning='The statuses after which an attempt is retried: numbers, `"5xx"`, `"500-504"`',
        default='`[408, 425, 429, "5xx"]`',
        input=StatusCodes(),
        output=StatusCodes(),
        shown=lambda it: it.schedule.retry.codes,
    ),
    ScheduleField(
        name="timeout_seconds",
        meaning=f"How long the whole answer may take, up to {MAX_TIMEOUT_SECONDS:g} seconds",
        default=f"{DEFAULT_TIMEOUT_SECONDS:g}",
        input=fields.Float(validate=validate.Range(LEAST_SECONDS, MAX_TIMEOUT_SECONDS)),
        output=fields.Float(),
        shown=lambda it: it.schedule.timeout_seconds,
        aliases="timeout timeout_ms",
    ),
    ScheduleField(
        name="success_codes",
        meaning="The statuses that complete an event, given as `retry_codes` are",
        default='`["2xx"]`',
        input=StatusCodes(),
        output=StatusCodes(),
        draft="success",
        shown=lambda it: it.schedule.success,
    ),
    ScheduleField(
        name="on_success",
        meaning="The name of a destination that is told of each event that was completed: by a message with"
        " the event, its attempts and the beginning of the answer. A null takes it away",
        input=DestinationName(allow_none=True),
        creation=DestinationName(),
        output=fields.String(),
        shown=lambda it: it.schedule.on_success,
        shown_meaning="The destination that is told of each event that was completed",
    ),
    ScheduleField(
        name="on_failure",
        meaning="The name of a destination that is told of each event that ended in error, as `on_success`",
        input=DestinationName(allow_none=True),
        creation=DestinationName(),
        output=fields.String(),
        shown=lambda it: it.schedule.on_failure,
        shown_meaning="The destination that is told of each event that ended in error",
    ),
    ScheduleField(
        name="signing",
        meaning="Whether callbacks are signed (Standard Webhooks). The answer that generates a secret is the"
        " only one that shows it",
        default="`false`",
        input=JsonBoolean(),
        output=fields.Boolean(),
        shown=lambda it: it.schedule.signing is not None,
        # A file of exports stays readable: most schedules are not signed.
        exported=lambda it: True if it.schedule.signing else None,
        shown_meaning="Whether its callbacks are signed",
        aliases="sign signed secret signing_secret",
    ),
    ScheduleField(
        name="signing_since",
        meaning="When the signing secret in force was generated",
        output=Instant(),
        shown=lambda it: it.schedule.signing.since if it.schedule.signing else None,
    ),
    ScheduleField(
        name="signing_overlap_until",
        meaning="Until when an older secret signs as well",
        output=Instant(),
        shown=lambda it: it.schedule.signing.overlap_until(it.now) if it.schedule.signing else None,
    ),
)
