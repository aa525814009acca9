"""The wire: the only place that knows JSON names."""

import binascii
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any

from marshmallow import RAISE, Schema, ValidationError, fields, post_load, validate, validates_schema

from api.fields import Headers, Instant, StatusCodes
from scheduler_app.callback import check_header, check_url
from scheduler_app.config import MAX_TIMEOUT_SECONDS
from scheduler_app.domain.draft import Draft
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.event import State
from scheduler_app.domain.retry import MAX_BACKOFF_SECONDS, MAX_RETRIES
from scheduler_app.domain.schedule import (
    MAX_BODY_BYTES,
    MAX_HEADERS,
    MAX_NAME,
    MAX_TAGS,
    METHODS,
    Body,
    BodyKind,
    ScheduleState,
)

MAX_RULE = 64 * 1024
MAX_PAGE = 10_000
MAX_LIMIT = 500
MAX_HEADER_BYTES = 16 * 1024

#: Wire name to Draft's name, where they differ.
_DRAFT_NAMES = {
    "callback_url": "url",
    "retry_backoff_seconds": "backoff_seconds",
    "retry_backoff_max_seconds": "backoff_max_seconds",
    "success_codes": "success",
}


def _refuses(check: Callable[..., None], *args: Any) -> None:
    try:
        check(*args)
    except InvalidField as error:
        raise ValidationError(error.message) from None


def _json_size(value: Any, depth: int = 0) -> None:
    if depth > 100:
        raise ValidationError("is nested more than 100 deep")
    children = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for child in children:
        _json_size(child, depth + 1)


class Strict(Schema):
    """Unknown fields are refused by name."""

    class Meta:
        unknown = RAISE


class ScheduleInput(Strict):
    """What PUT takes: any of these."""

    name = fields.String(validate=validate.Length(max=MAX_NAME), metadata={"example": "Daily Backup"})
    rrule = fields.String(
        allow_none=True,
        validate=validate.Length(min=1, max=MAX_RULE),
        metadata={
            "description": "An RFC 5545 rule, with or without DTSTART",
            "example": "FREQ=DAILY;INTERVAL=1",
        },
    )
    run_at = Instant(
        allow_none=True, metadata={"description": "A single instant instead of a rule; milliseconds count"}
    )
    timezone = fields.String(
        validate=validate.Length(min=1, max=64), metadata={"example": "Europe/Zurich", "default": "UTC"}
    )
    gap = fields.String(
        validate=validate.OneOf(["shift", "skip"]),
        metadata={"description": "A local time that a clock change leaves out", "default": "shift"},
    )
    overlap = fields.String(
        validate=validate.OneOf(["first", "last"]),
        metadata={"description": "A local time that a clock change repeats", "default": "first"},
    )
    callback_url = fields.String(metadata={"example": "https://example.com/backup"})
    method = fields.String(validate=validate.OneOf(METHODS), metadata={"default": "GET"})
    headers = Headers(validate=validate.Length(max=MAX_HEADERS))
    body = fields.String(allow_none=True)
    json = fields.Raw(metadata={"description": "A body given as JSON"})
    body_base64 = fields.String(metadata={"description": "A body that is no text"})
    max_retries = fields.Integer(strict=True, validate=validate.Range(0, MAX_RETRIES))
    retry_backoff_seconds = fields.Float(validate=validate.Range(0.1, MAX_BACKOFF_SECONDS))
    retry_backoff_max_seconds = fields.Float(validate=validate.Range(0.1, MAX_BACKOFF_SECONDS))
    retry_codes = StatusCodes()
    timeout_seconds = fields.Float(validate=validate.Range(0.1, MAX_TIMEOUT_SECONDS))
    success_codes = StatusCodes()
    tags = fields.List(
        fields.String(validate=validate.Length(min=1, max=64)), validate=validate.Length(max=MAX_TAGS)
    )

    @validates_schema
    def check_callback(self, data: dict[str, Any], **_: Any) -> None:
        problems: dict[str, list[str]] = {}

        def check(field: str, checker: Callable[..., None], *args: Any) -> None:
            try:
                _refuses(checker, *args)
            except ValidationError as error:
                problems.setdefault(field, []).extend(error.messages)

        if "callback_url" in data:
            check("callback_url", check_url, data["callback_url"])
        for name, value in data.get("headers", ()):
            check("headers", check_header, name, value)
        if sum(len(name) + len(value) for name, value in data.get("headers", ())) > MAX_HEADER_BYTES:
            problems.setdefault("headers", []).append(
                f"must not exceed {MAX_HEADER_BYTES} characters together"
            )
        given = [field for field in ("body", "json", "body_base64") if field in data]
        if len(given) > 1:
            problems[given[1]] = [f"give one of body, json and body_base64, not {len(given)}"]
        if problems:
            raise ValidationError(problems)

    @post_load
    def draft(self, data: dict[str, Any], **_: Any) -> Draft:
        values = {_DRAFT_NAMES.get(name, name): value for name, value in data.items()}
        for field in ("json", "body_base64", "body"):
            if field in values:
                values["body"] = _body(field, values.pop(field))
        if "tags" in values:
            values["tags"] = tuple(dict.fromkeys(values["tags"]))
        return Draft(**values)


def _body(field: str, value: Any) -> Body | None:
    if field == "json":
        _json_size(value)
        body = Body.from_json(value)
    elif value is None:
        return None
    elif field == "body":
        body = Body(BodyKind.TEXT, value.encode("utf-8", "surrogatepass"))
    else:
        try:
            body = Body(BodyKind.BASE64, b64decode(value, validate=True))
        except (binascii.Error, ValueError):
            raise ValidationError("is not base64", field) from None
    if len(body.data) > MAX_BODY_BYTES:
        raise ValidationError(f"must not exceed {MAX_BODY_BYTES // 1024} KiB", field)
    return body


class NewSchedule(ScheduleInput):
    """What POST takes."""

    id = fields.String(
        validate=validate.Regexp(
            r"[a-zA-Z0-9-]{1,64}\Z", error="must be 1 to 64 letters, digits and hyphens"
        ),
        metadata={"description": "An id of your own; it is never used twice"},
    )
    name = fields.String(
        required=True, validate=validate.Length(min=1, max=MAX_NAME), metadata={"example": "Daily Backup"}
    )
    callback_url = fields.String(required=True, metadata={"example": "https://example.com/backup"})

    @post_load
    def draft(self, data: dict[str, Any], **kwargs: Any) -> tuple[str | None, Draft]:
        schedule_id = data.pop("id", None)
        return schedule_id, super().draft(data, **kwargs)


class ScheduleOutput(Schema):
    """A schedule as it is shown. Header values that are secrets are masked."""

    id = fields.String()
    name = fields.String()
    rrule = fields.String(metadata={"description": "The rule as written"})
    recurrence = fields.String(metadata={"description": "The rule with its DTSTART made explicit"})
    dtstart = Instant()
    run_at = Instant()
    timezone = fields.String()
    gap = fields.String()
    overlap = fields.String()
    description = fields.String(metadata={"description": "What the rule says, in words"})
    callback_url = fields.String()
    method = fields.String()
    headers = fields.Dict(keys=fields.String(), values=fields.String())
    body = fields.String()
    json = fields.Raw()
    body_base64 = fields.String()
    max_retries = fields.Integer()
    retry_backoff_seconds = fields.Float()
    retry_backoff_max_seconds = fields.Float()
    retry_codes = StatusCodes()
    timeout_seconds = fields.Float()
    success_codes = StatusCodes()
    tags = fields.List(fields.String())
    state = fields.String(validate=validate.OneOf([state.value for state in ScheduleState]))
    reason = fields.String(metadata={"description": "Why it is in error"})
    version = fields.Integer()
    revision = fields.Integer()
    next_run_at = Instant()
    warnings = fields.List(fields.String())
    created_at = Instant()
    updated_at = Instant()


class Edited(ScheduleOutput):
    message = fields.String(metadata={"example": "Schedule updated successfully."})


class Message(Schema):
    message = fields.String()


class StatusLine(Schema):
    time = Instant()
    status = fields.String(validate=validate.OneOf([state.value for state in State]))
    message = fields.String()


class AttemptLine(Schema):
    number = fields.Integer()
    started_at = Instant()
    duration_ms = fields.Float()
    lag_ms = fields.Float()
    status_code = fields.Integer(allow_none=True)
    error = fields.String(allow_none=True)
    snippet = fields.String()
    worker = fields.String()
    late = fields.Boolean(metadata={"description": "It ended after its claim was lost; it changed no state"})


class EventOutput(Schema):
    """An event with its history."""

    id = fields.String(data_key="_id", attribute="_id")
    schedule_id = fields.String()
    run_time = Instant()
    kind = fields.String()
    state = fields.String(validate=validate.OneOf([state.value for state in State]))
    due_at = Instant(metadata={"description": "When the next attempt is due; finished events have none"})
    revision = fields.Integer()
    attempt = fields.Integer(metadata={"description": "Attempts made so far"})
    status = fields.List(fields.Nested(StatusLine))
    attempts = fields.List(fields.Nested(AttemptLine))
    created_at = Instant()
    archived_at = Instant()


class EventPage(Schema):
    events = fields.List(fields.Nested(EventOutput))
    page = fields.Integer()
    limit = fields.Integer()


class SchedulePage(Schema):
    schedules = fields.List(fields.Nested(ScheduleOutput))
    page = fields.Integer()
    limit = fields.Integer()


class Triggered(Schema):
    event_id = fields.String()
    message = fields.String()


class Paging(Strict):
    limit = fields.Integer(load_default=10, validate=validate.Range(1, MAX_LIMIT))
    page = fields.Integer(load_default=1, validate=validate.Range(1, MAX_PAGE))


class ScheduleFilter(Paging):
    state = fields.String(
        validate=validate.OneOf(
            [state.value for state in ScheduleState if state is not ScheduleState.DELETED]
        )
    )
    name = fields.String(validate=validate.Length(min=1, max=MAX_NAME))
    tag = fields.String(validate=validate.Length(min=1, max=64))
