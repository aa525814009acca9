"""Destinations in JSON: what answers show of them, of their limits, and of a test call."""

from datetime import datetime, timedelta
from typing import Any

from marshmallow import fields, validate

from scheduler_app.api.json_types import View
from scheduler_app.api.wire.field_types import Instant, StatusCodes
from scheduler_app.api.wire.output_schema import OutputSchema
from scheduler_app.api.wire.paging import Listed
from scheduler_app.domain.destination import Auth, AuthType, Destination
from scheduler_app.domain.flow import FlowState
from scheduler_app.domain.masking import MASK, masked, masked_url
from scheduler_app.store.destinations.documents import CorruptDestination


def _text(meaning: str) -> dict[str, Any]:
    return {"description": meaning}


class AuthOutput(OutputSchema):
    type = fields.String(required=True)
    username = fields.String()
    password = fields.String()
    token = fields.String()


class BreakerOutput(OutputSchema):
    failures = fields.Integer(required=True)
    open_seconds = fields.Float(required=True)


class AnswerOutput(OutputSchema):
    """A receiver's answer, or that there was none."""

    time = Instant(required=True)
    status_code = fields.Integer(allow_none=True)
    answer = fields.String(required=True, validate=validate.OneOf(["well", "failed"]))


class FlowOutput(OutputSchema):
    """How a destination with limits is at this moment, of all workers together."""

    breaker = fields.String(required=True, validate=validate.OneOf(["closed", "open", "half-open"]))
    failures_in_a_row = fields.Integer(required=True)
    in_flight = fields.Integer(required=True)
    waiting = fields.Integer(metadata=_text("Events that wait, counted up to 100,000"))
    tokens = fields.Float(metadata=_text("How many requests may start at this instant by the rate"))
    next_probe_at = Instant(metadata=_text("When an open breaker lets one request through"))
    asked_to_wait_until = Instant(metadata=_text("Until when the receiver asked not to be called"))
    line_until = Instant(metadata=_text("When the last event in the line has its place"))
    last_answers = fields.List(fields.Nested(AnswerOutput), required=True)


class DestinationOutput(OutputSchema):
    """A destination, its secrets masked."""

    name = fields.String(required=True)
    url = fields.String()
    method = fields.String()
    headers = fields.Dict(keys=fields.String(), values=fields.String())
    auth = fields.Nested(AuthOutput)
    allowed_methods = fields.List(fields.String())
    signing = fields.Boolean()
    signing_since = Instant()
    signing_secret = fields.String(
        metadata=_text("Only in the answer that generated it: a repeated request is answered with a mask")
    )
    max_retries = fields.Integer()
    retry_backoff_seconds = fields.Float()
    retry_backoff_max_seconds = fields.Float()
    retry_codes = StatusCodes()
    success_codes = StatusCodes()
    timeout_seconds = fields.Float()
    rate_per_second = fields.Float()
    burst = fields.Integer()
    concurrency = fields.Integer()
    breaker = fields.Nested(BreakerOutput)
    paused = fields.Boolean()
    queue = fields.String()
    version = fields.Integer()
    created_at = Instant()
    updated_at = Instant()
    flow = fields.Nested(
        FlowOutput,
        metadata=_text("Only where one destination is asked for; missing without limits, or without Redis"),
    )
    result = fields.String(metadata=_text("`created`, `changed` or `unchanged`, in answers to PUT and PATCH"))
    corrupt = fields.String(metadata=_text("Why the stored document cannot be read"))


class DestinationPage(Listed):
    destinations = fields.List(fields.Nested(DestinationOutput), required=True)


class TestOutput(OutputSchema):
    """What one call to a destination came to."""

    event_id = fields.String(required=True, metadata=_text("The Idempotency-Key that the receiver saw"))
    method = fields.String(required=True)
    url = fields.String(required=True, metadata=_text(f"With `{MASK}` for the values of the query"))
    sent = fields.Boolean(required=True, metadata=_text("False in a dry run"))
    outcome = fields.String(metadata=_text("`success`, `retry` or `permanent`: its meaning for an event"))
    status_code = fields.Integer(allow_none=True)
    error = fields.String(allow_none=True)
    snippet = fields.String(metadata=_text("The beginning of the answer; secrets of the request are masked"))
    duration_ms = fields.Float()


def destination_shown(found: Destination | CorruptDestination) -> View:
    """The fields of DestinationOutput without those that have no value."""
    if isinstance(found, CorruptDestination):
        return {"name": found.id.rpartition(":")[2], "corrupt": found.reason}
    auth = found.auth
    shown: View = {
        "name": found.name,
        "url": masked_url(found.url),
        "method": found.method,
        "headers": dict(masked(found.headers)),
        "auth": auth and _auth_shown(auth),
        "allowed_methods": list(found.allowed_methods),
        "signing": found.signing is not None,
        "signing_since": found.signing and found.signing.since,
        "max_retries": found.max_retries,
        "retry_backoff_seconds": found.backoff_seconds,
        "retry_backoff_max_seconds": found.backoff_max_seconds,
        "retry_codes": found.retry_codes,
        "success_codes": found.success,
        "timeout_seconds": found.timeout_seconds,
        "rate_per_second": found.rate_per_second,
        "burst": found.burst if found.rate_per_second else None,
        "concurrency": found.concurrency,
        "breaker": found.breaker
        and {"failures": found.breaker.failures, "open_seconds": found.breaker.open_seconds},
        "paused": found.paused,
        "queue": found.queue,
        "version": found.version,
        "created_at": found.created_at,
        "updated_at": found.updated_at,
    }
    return {name: value for name, value in shown.items() if value is not None}


def flow_shown(flow: FlowState, waiting: int, now: datetime) -> View:
    """The fields of FlowOutput without those that have no value."""

    def at(seconds: float) -> datetime | None:
        return now + timedelta(seconds=seconds) if seconds else None

    shown: View = {
        "breaker": flow.breaker,
        "failures_in_a_row": flow.failures,
        "in_flight": flow.in_flight,
        "waiting": waiting,
        "tokens": None if flow.tokens is None else round(flow.tokens, 3),
        "next_probe_at": at(flow.open_for),
        "asked_to_wait_until": at(flow.asked_to_wait),
        "line_until": at(flow.line),
        "last_answers": [
            {
                "time": now - timedelta(seconds=each.seconds_ago),
                "status_code": each.status_code,
                "answer": each.answer.value,
            }
            for each in flow.answers
        ],
    }
    return {name: value for name, value in shown.items() if value is not None}


def _auth_shown(auth: Auth) -> View:
    if auth.type is AuthType.BEARER:
        return {"type": auth.type.value, "token": MASK}
    return {"type": auth.type.value, "username": auth.username, "password": MASK}
