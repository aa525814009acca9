"""A schedule as it is asked for."""

import binascii
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any, get_args

from marshmallow import ValidationError, fields, post_load, validate, validates, validates_schema

from api import trigger_fields
from api.fields import BoundedList, Headers, StatusCodes, check_visible
from api.paths import SCHEDULE_WORDS
from api.schemas.common import CALENDAR_NAME, CALENDAR_NAME_ERROR, ID, ScheduleId, Strict, WriteQuery
from api.services import services
from scheduler_app.actions.http import check_header
from scheduler_app.config import MAX_TIMEOUT_SECONDS
from scheduler_app.domain.draft import Draft
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.masking import MASK, MASKED_BODY
from scheduler_app.domain.recurrence import OnHoliday
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
from scheduler_app.domain.triggers import FIELDS

MAX_HEADER_BYTES = 16 * 1024
MAX_REASON = 2_000
CALLBACK_URL = {
    "description": "Where to; http or https",
    "example": "https://example.com/backup",
    "format": "uri",
    "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://",
}

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
        raise ValidationError("is nested more than 100 deep", "json")
    children = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for child in children:
        _json_size(child, depth + 1)


def timezone_field(**options: Any) -> fields.String:
    about = {"description": "The IANA zone of local times", "example": "Europe/Zurich", "default": "UTC"}
    return fields.String(validate=validate.Length(min=1, max=64), metadata=about, **options)


def gap_field(**options: Any) -> fields.String:
    about = {"description": "A local time that a clock change leaves out", "default": "shift"}
    return fields.String(validate=validate.OneOf(["shift", "skip"]), metadata=about, **options)


def overlap_field(**options: Any) -> fields.String:
    about = {"description": "A local time that a clock change repeats", "default": "first"}
    return fields.String(validate=validate.OneOf(["first", "last"]), metadata=about, **options)


def calendar_field(**options: Any) -> fields.String:
    about = {
        "description": "The name of a calendar, whose holidays and weekend days the rule observes",
        "example": "zurich",
    }
    check = validate.Regexp(CALENDAR_NAME, error=CALENDAR_NAME_ERROR)
    return fields.String(validate=check, metadata=about, **options)


def on_holiday_field(**options: Any) -> fields.String:
    about = {
        "description": "What an occurrence on a closed day of the calendar does: it is left out (`skip`, the"
        " default), or moves to the next or the previous open day at the same time of day"
    }
    return fields.String(validate=validate.OneOf(get_args(OnHoliday)), metadata=about, **options)


class PutQuery(WriteQuery):
    if_absent = fields.String(
        data_key="if-absent",
        validate=validate.OneOf(["", "true"]),
        metadata={"description": "Only create: a schedule that is there already is a 412"},
    )


class ScheduleInput(Strict):
    """What PUT takes: any of these."""

    class Meta(Strict.Meta):
        include = trigger_fields.inputs()

    id = ScheduleId(metadata={"description": "The id in the path, once more"})
    name = fields.String(
        validate=[validate.Length(max=MAX_NAME), check_visible], metadata={"example": "Daily Backup"}
    )
    timezone = timezone_field()
    gap = gap_field()
    overlap = overlap_field()
    calendar = calendar_field(allow_none=True)
    on_holiday = on_holiday_field()
    callback_url = fields.String(metadata=CALLBACK_URL)
    method = fields.String(
        validate=validate.OneOf(METHODS, error="must be one of {choices}, in capital letters"),
        metadata={"description": "GET by default, and POST where a new schedule has a body"},
    )
    headers = Headers(validate=validate.Length(max=MAX_HEADERS))
    body = fields.String(
        allow_none=True, error_messages={"invalid": "must be text; give a JSON value as json instead"}
    )
    json = fields.Raw(metadata={"description": "A body given as JSON"})
    body_base64 = fields.String(metadata={"description": "A body that is no text"})
    sealed = fields.String(
        metadata={
            "description": f"What an export has under this name: the values that its masks ({MASK}) stand for"
        },
    )
    max_retries = fields.Integer(strict=True, validate=validate.Range(0, MAX_RETRIES))
    retry_backoff_seconds = fields.Float(validate=validate.Range(0.1, MAX_BACKOFF_SECONDS))
    retry_backoff_max_seconds = fields.Float(validate=validate.Range(0.1, MAX_BACKOFF_SECONDS))
    retry_codes = StatusCodes()
    timeout_seconds = fields.Float(validate=validate.Range(0.1, MAX_TIMEOUT_SECONDS))
    success_codes = StatusCodes()
    tags = BoundedList(
        fields.String(validate=[validate.Length(min=1, max=64), check_visible]),
        validate=validate.Length(max=MAX_TAGS),
    )
    signing = fields.Boolean(
        truthy={True},
        falsy={False},
        metadata={
            "description": "Whether callbacks are signed (Standard Webhooks). A secret that this makes is in"
            " this answer alone."
        },
    )
    state = fields.String(
        validate=validate.OneOf([each.value for each in ScheduleState if each is not ScheduleState.DELETED]),
        metadata={
            "description": "The state to be in, `active` by default. One that is not active may have a"
            " `run_at` that has passed; an active one without an occurrence left is finished."
        },
    )
    reason = fields.String(
        validate=[validate.Length(max=MAX_REASON), check_visible],
        metadata={"description": "Why it is in error"},
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
            check("callback_url", services().guard.check_url, data["callback_url"])
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
    def draft(self, data: dict[str, Any], **_: Any) -> tuple[str | None, Draft]:
        schedule_id = data.pop("id", None)
        values = {_DRAFT_NAMES.get(name, name): value for name, value in data.items()}
        given = next((field for field in ("json", "body_base64", "body") if field in values), None)
        if given:
            values["body"] = _body(given, values.pop(given))
        if "tags" in values:
            values["tags"] = tuple(dict.fromkeys(values["tags"]))
        trigger = {name: values.pop(name) for name in FIELDS if name in values}
        if trigger:
            values["trigger"] = trigger
        if "state" in values:
            values["state"] = ScheduleState(values["state"])
        return schedule_id, Draft(**values)


def check_same_id(body_id: str | None, path_id: str) -> None:
    """Raises InvalidField where a body names another schedule than its path, or a path what can be no id."""
    if body_id not in (None, path_id):
        raise InvalidField(
            "id", f"is {body_id}, but the path names {path_id[:64]}: leave it out, or make them agree"
        )
    if not ID.fullmatch(path_id):
        raise InvalidField("id", "the path must name the schedule by 1 to 64 letters, digits and hyphens")


def _body(field: str, value: Any) -> Body | None:
    if value == MASK:
        return Body(BodyKind(field), MASKED_BODY)
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

    id = ScheduleId(metadata={"description": "An id of your own; a deleted schedule's may be used again"})
    name = fields.String(
        required=True,
        validate=[validate.Length(min=1, max=MAX_NAME), check_visible],
        metadata={"example": "Daily Backup"},
    )
    callback_url = fields.String(required=True, metadata=CALLBACK_URL)

    @validates("id")
    def check_id(self, value: str, **_: Any) -> None:
        if value in SCHEDULE_WORDS:
            raise ValidationError(f"{value} is a word of this API's paths; take another")
