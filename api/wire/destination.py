"""A destination as requests give it, and as answers show it with its limits and its test calls."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from marshmallow import ValidationError, fields, post_load, validate, validates_schema

from scheduler_app.actions.http import check_header
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import services
from scheduler_app.api.wire.field_types import BoundedList, Headers, Instant, StatusCodes
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OutputSchema
from scheduler_app.api.wire.paging import Listed
from scheduler_app.api.wire.schedule import MAX_HEADER_BYTES
from scheduler_app.config import MAX_TIMEOUT_SECONDS
from scheduler_app.domain.destination import (
    LEAST_OPEN_SECONDS,
    LEAST_RATE,
    MAX_BREAKER_FAILURES,
    MAX_BURST,
    MAX_CONCURRENCY,
    MAX_OPEN_SECONDS,
    MAX_RATE,
    Auth,
    AuthType,
    Breaker,
    Destination,
    DestinationDraft,
)
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.flow_control import FlowState
from scheduler_app.domain.http_action import MAX_HEADERS, METHODS
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.masking import MASK, masked, masked_url
from scheduler_app.domain.queues import MAX_QUEUE, NAME
from scheduler_app.domain.retry import MAX_BACKOFF_SECONDS, MAX_RETRIES
from scheduler_app.json_boolean import JsonBoolean
from scheduler_app.store.destinations import CorruptDestination

MAX_CREDENTIAL = 4_000
_LEAST_SECONDS = 0.1
_METHOD = validate.OneOf(METHODS, error="must be one of {choices}, in capital letters")


class AuthInput(InputSchema):
    """The credentials of every request: `basic` with `username` and `password`, or `bearer` with `token`."""

    type = fields.String(required=True, validate=validate.OneOf(["none", *(each.value for each in AuthType)]))
    username = fields.String(validate=validate.Length(max=MAX_CREDENTIAL))
    password = fields.String(validate=validate.Length(min=1, max=MAX_CREDENTIAL))
    token = fields.String(validate=validate.Length(min=1, max=MAX_CREDENTIAL))

    @validates_schema
    def check_parts(self, data: Loaded, **_: object) -> None:
        wanted = {"none": set(), "basic": {"username", "password"}, "bearer": {"token"}}[data["type"]]
        given = set(data) - {"type"}
        for name in sorted(wanted - given):
            raise ValidationError(f"is missing for the type {data['type']}", name)
        for name in sorted(given - wanted):
            raise ValidationError(f"does not belong to the type {data['type']}", name)
        if ":" in data.get("username", ""):
            raise ValidationError("must not contain a colon (RFC 7617)", "username")
        for name in given:
            try:
                check_header("Authorization", data[name])
                data[name].encode()
            except (InvalidField, UnicodeEncodeError):
                raise ValidationError("must not contain line ends or control characters", name) from None

    @post_load
    def auth(self, data: Loaded, **_: object) -> Auth | None:
        if data["type"] == "none":
            return None
        return Auth(AuthType(data["type"]), data.get("password") or data["token"], data.get("username", ""))


class BreakerInput(InputSchema):
    """After `failures` in a row nothing is sent for `open_seconds`; then one probe at a time."""

    failures = fields.Integer(strict=True, required=True, validate=validate.Range(1, MAX_BREAKER_FAILURES))
    open_seconds = fields.Float(required=True, validate=validate.Range(LEAST_OPEN_SECONDS, MAX_OPEN_SECONDS))

    @post_load
    def breaker(self, data: Loaded, **_: object) -> Breaker:
        return Breaker(**data)


def _text(meaning: str) -> dict[str, Any]:
    return {"description": meaning}


class DestinationChange(InputSchema):
    """What PATCH takes: any of these fields."""

    url = fields.String(metadata=_text("The http or https URL to call, with a query where all need one"))
    method = fields.String(
        allow_none=True, validate=_METHOD, metadata=_text("The method of schedules that give none")
    )
    headers = Headers(
        validate=validate.Length(max=MAX_HEADERS),
        metadata=_text("Sent with every request; a schedule's header of the same name replaces one"),
    )
    auth = fields.Nested(
        AuthInput, allow_none=True, metadata=_text("The credentials of every request; answers mask them")
    )
    allowed_methods = BoundedList(
        fields.String(validate=_METHOD),
        validate=validate.Length(min=1, max=len(METHODS)),
        metadata=_text("The methods that schedules may use; all of them unless given"),
    )
    signing = JsonBoolean(
        metadata=_text(
            "Whether requests are signed (Standard Webhooks). The answer that generates a secret is the only"
            " one that shows it"
        ),
    )
    max_retries = fields.Integer(
        strict=True,
        allow_none=True,
        validate=validate.Range(0, MAX_RETRIES),
        metadata=_text("As a schedule's; where it is given it holds for all schedules that come here"),
    )
    backoff_seconds = fields.Float(
        data_key="retry_backoff_seconds",
        allow_none=True,
        validate=validate.Range(_LEAST_SECONDS, MAX_BACKOFF_SECONDS),
        metadata=_text("As a schedule's, for all"),
    )
    backoff_max_seconds = fields.Float(
        data_key="retry_backoff_max_seconds",
        allow_none=True,
        validate=validate.Range(_LEAST_SECONDS, MAX_BACKOFF_SECONDS),
        metadata=_text("As a schedule's, for all"),
    )
    retry_codes = StatusCodes(allow_none=True, metadata=_text("As a schedule's, for all"))
    success = StatusCodes(
        data_key="success_codes", allow_none=True, metadata=_text("As a schedule's, for all")
    )
    timeout_seconds = fields.Float(
        allow_none=True,
        validate=validate.Range(_LEAST_SECONDS, MAX_TIMEOUT_SECONDS),
        metadata=_text("As a schedule's, for all"),
    )
    rate_per_second = fields.Float(
        allow_none=True,
        validate=validate.Range(LEAST_RATE, MAX_RATE),
        metadata=_text("How many requests may start each second, of all workers together"),
    )
    burst = fields.Integer(
        strict=True,
        validate=validate.Range(1, MAX_BURST),
        metadata=_text("How many may start at one instant after a quiet time; 1 unless given"),
    )
    concurrency = fields.Integer(
        strict=True,
        allow_none=True,
        validate=validate.Range(1, MAX_CONCURRENCY),
        metadata=_text("How many requests may be in flight, of all workers together"),
    )
    breaker = fields.Nested(
        BreakerInput,
        allow_none=True,
        metadata=_text("When to stop calling a receiver that fails, and for how long"),
    )
    queue = fields.String(
        allow_none=True,
        validate=validate.Regexp(NAME, error=f"must be 1 to {MAX_QUEUE} letters, digits and hyphens"),
        metadata=_text("Which workers send what comes here, where the schedule or message names no queue")
        | {"pattern": f"^[a-zA-Z0-9-]{{1,{MAX_QUEUE}}}$"},
    )
    paused = JsonBoolean(metadata=_text("Nothing is sent; what is due waits until it is resumed"))

    @validates_schema
    def check_request(self, data: Loaded, **_: object) -> None:
        problems: dict[str, list[str]] = {}

        def check(field: str, checker: Callable[..., None], *args: object) -> None:
            try:
                checker(*args)
            except InvalidField as error:
                problems.setdefault(field, []).append(error.message)

        if "url" in data:
            check("url", services().guard.check_url, data["url"])
            if "#" in data["url"]:
                problems.setdefault("url", []).append("must not have a fragment")
        for name, value in data.get("headers", ()):
            check("headers", check_header, name, value)
        if sum(len(name) + len(value) for name, value in data.get("headers", ())) > MAX_HEADER_BYTES:
            problems.setdefault("headers", []).append(f"must not exceed {MAX_HEADER_BYTES} characters in all")
        if problems:
            raise ValidationError(problems)

    @post_load
    def draft(self, data: Loaded, **_: object) -> DestinationDraft:
        if "allowed_methods" in data:
            data["allowed_methods"] = tuple(dict.fromkeys(data["allowed_methods"]))
        return DestinationDraft(**data)


class DestinationInput(DestinationChange):
    """What PUT takes: the whole destination. What is left out has its default."""

    url = fields.String(
        required=True, metadata=_text("The http or https URL to call, with a query where all need one")
    )


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
        return {"name": name_of(found.id), "corrupt": found.reason}
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
