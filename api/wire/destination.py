"""A destination as requests give it, and as answers show it with its limits and its test calls."""

from dataclasses import asdict
from datetime import datetime, timedelta

from marshmallow import ValidationError, post_load, validate, validates_schema

from scheduler_app import json_fields as fields
from scheduler_app.actions.http import check_header
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import services
from scheduler_app.api.wire.destination_health import HealthOutput, health_shown
from scheduler_app.api.wire.field_types import Instant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OutputSchema, without_none
from scheduler_app.api.wire.paging import Listed
from scheduler_app.api.wire.resource_fields import (
    draft_values,
    edit_fields,
    new_fields,
    output_fields,
    shows,
    view_of,
)
from scheduler_app.api.wire.schedule import MAX_HEADER_BYTES, note_problem
from scheduler_app.domain.destination import (
    LEAST_OPEN_SECONDS,
    MAX_BREAKER_FAILURES,
    MAX_OPEN_SECONDS,
    Auth,
    AuthType,
    Breaker,
    Destination,
    DestinationDraft,
)
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.flow_control import FlowState
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.masking import MASK, masked, masked_url
from scheduler_app.domain.resources.destination import DESTINATION, DESTINATION_FIELDS
from scheduler_app.store.destinations import CorruptDestination
from scheduler_app.usecases.questions.destinations import DestinationHealth

MAX_CREDENTIAL = 4_000


class AuthInput(InputSchema):
    """The credentials of every request: `basic` with `username` and `password`, or `bearer` with `token`."""

    type = fields.String(required=True, validate=validate.OneOf(["none", *(each.value for each in AuthType)]))
    username = fields.String(validate=validate.Length(max=MAX_CREDENTIAL))
    password = fields.String(validate=validate.Length(1, MAX_CREDENTIAL))
    token = fields.String(validate=validate.Length(1, MAX_CREDENTIAL))

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


_INPUTS = {"auth": lambda: fields.Nested(AuthInput), "breaker": lambda: fields.Nested(BreakerInput)}


class DestinationChange(InputSchema):
    """What PATCH takes: any of these fields."""

    class Meta(InputSchema.Meta):
        include = edit_fields(DESTINATION, _INPUTS)

    @validates_schema
    def check_request(self, data: Loaded, **_: object) -> None:
        problems: dict[str, list[str]] = {}
        if "url" in data:
            note_problem(problems, "url", services().guard.check_url, data["url"])
            if "#" in data["url"]:
                problems.setdefault("url", []).append("must not have a fragment")
        for name, value in data.get("headers", ()):
            note_problem(problems, "headers", check_header, name, value)
        if sum(len(name) + len(value) for name, value in data.get("headers", ())) > MAX_HEADER_BYTES:
            problems.setdefault("headers", []).append(f"must not exceed {MAX_HEADER_BYTES} characters in all")
        if problems:
            raise ValidationError(problems)

    @post_load
    def draft(self, data: Loaded, **_: object) -> DestinationDraft:
        return DestinationDraft(**draft_values(DESTINATION_FIELDS, data))


class DestinationInput(DestinationChange):
    """What PUT takes: the whole destination. What is left out has its default."""

    class Meta(InputSchema.Meta):
        include = new_fields(DESTINATION, _INPUTS)


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
    waiting = fields.Integer("Events that wait, counted up to 100,000")
    tokens = fields.Float("How many requests may start at this instant by the rate")
    next_probe_at = Instant("When an open breaker lets one request through")
    asked_to_wait_until = Instant("Until when the receiver asked not to be called")
    line_until = Instant("When the last event in the line has its place")
    last_answers = fields.List(AnswerOutput, required=True)


_OUTPUTS = {"auth": lambda: fields.Nested(AuthOutput), "breaker": lambda: fields.Nested(BreakerOutput)}


class _StoredDestination(OutputSchema):
    class Meta(OutputSchema.Meta):
        include = output_fields(DESTINATION, _OUTPUTS)


class DestinationOutput(_StoredDestination):
    """A destination, its secrets masked."""

    flow = fields.Nested(
        FlowOutput,
        "Only where one destination, or `health`, is asked for; missing without limits, or without Redis",
    )
    health = fields.Nested(HealthOutput, "Only in a list that `health` is asked of")
    result = fields.String("`created`, `changed` or `unchanged`, in answers to PUT and PATCH")
    corrupt = fields.String("Why the stored document cannot be read")


class DestinationPage(Listed):
    destinations = fields.List(DestinationOutput, required=True)


class TestOutput(OutputSchema):
    """What one call to a destination came to."""

    event_id = fields.String("The Idempotency-Key that the receiver saw", required=True)
    method = fields.String(required=True)
    url = fields.String(f"With `{MASK}` for the values of the query", required=True)
    sent = fields.Boolean("False in a dry run", required=True)
    outcome = fields.String("`success`, `retry` or `permanent`: its meaning for an event")
    status_code = fields.Integer(allow_none=True)
    error = fields.String(allow_none=True)
    snippet = fields.String("The beginning of the answer; secrets of the request are masked")
    duration_ms = fields.Float()


def _auth_shown(destination: Destination) -> View | None:
    auth = destination.auth
    if auth is None:
        return None
    if auth.type is AuthType.BEARER:
        return {"type": auth.type.value, "token": MASK}
    return {"type": auth.type.value, "username": auth.username, "password": MASK}


#: What shows each field. Most are shown as a destination has them.
_SHOWN = shows(
    DESTINATION,
    {
        "url": lambda found: masked_url(found.url),
        "headers": lambda found: dict(masked(found.headers)),
        "auth": _auth_shown,
        "signing": lambda found: found.signing is not None,
        "burst": lambda found: found.burst if found.rate_per_second else None,
        "breaker": lambda found: found.breaker and asdict(found.breaker),
    },
)


def destination_shown(found: Destination | CorruptDestination) -> View:
    """The fields of DestinationOutput without those that have no value."""
    if isinstance(found, CorruptDestination):
        return {"name": name_of(found.id), "corrupt": found.reason}
    return view_of(_SHOWN, found)


def healthy_shown(
    found: Destination | CorruptDestination, health: DestinationHealth | None, now: datetime
) -> View:
    """The same with how it is, where that is known."""
    view = destination_shown(found)
    if health is None:
        return view
    if health.flow is not None:
        view["flow"] = flow_shown(health.flow, health.waiting, now)
    return view | {"health": health_shown(health)}


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
    return without_none(shown)
