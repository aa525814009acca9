"""What a schedule does: the HTTP request that it makes, or its action of another type."""

import binascii
from base64 import b64decode
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from marshmallow import ValidationError, fields, validate, validates_schema

from scheduler_app.actions.fields import ActionFields
from scheduler_app.actions.registry import KINDS
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.field_types import DestinationName, Headers, check_path
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OutputSchema
from scheduler_app.api.wire.schedule_fields.field import ScheduleField, Show, ShownSchedule
from scheduler_app.domain.action import Action
from scheduler_app.domain.http_action import (
    DEFAULT_METHOD,
    DEFAULT_METHOD_WITH_BODY,
    MAX_BODY_BYTES,
    MAX_HEADERS,
    METHODS,
    BodyKind,
    HttpAction,
    RequestBody,
)
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.masking import HARMLESS, MASK, MASKED_BODY, masked, masked_url
from scheduler_app.store.encryption import seal_action

#: In the order of the registry. An HTTP request is no row: its fields are those of a schedule.
ACTION_TYPES: Mapping[str, ActionFields[Any]] = {
    name: action_fields for name, kind in KINDS.items() if (action_fields := kind.fields()) is not None
}


MAX_JSON_DEPTH = 100
#: The wire has one field for each way to give a body; at most one of them may be given.
BODY_FIELDS = ("body", "json", "body_base64")
_URL = {"example": "https://example.com/backup", "format": "uri", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://"}


def _body(kind: BodyKind, value: object) -> RequestBody | None:
    """The body that a request gives as `kind`. Raises ValidationError."""
    if value == MASK:
        return RequestBody(kind, MASKED_BODY)
    if kind is BodyKind.JSON:
        _check_depth(value)
        body = RequestBody.from_json(value)
    elif value is None:
        return None
    elif kind is BodyKind.TEXT:
        body = RequestBody(kind, str(value).encode("utf-8", "surrogatepass"))
    else:
        try:
            body = RequestBody(kind, b64decode(str(value), validate=True))
        except (binascii.Error, ValueError):
            raise ValidationError("is not base64", kind.value) from None
    if len(body.data) > MAX_BODY_BYTES:
        raise ValidationError(f"must not exceed {MAX_BODY_BYTES // 1024} KiB", kind.value)
    return body


def _check_depth(value: object, depth: int = 0) -> None:
    if depth > MAX_JSON_DEPTH:
        raise ValidationError(f"is nested more than {MAX_JSON_DEPTH} deep", BodyKind.JSON.value)
    children = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for child in children:
        _check_depth(child, depth + 1)


def _of_request(show: Callable[[HttpAction], object]) -> Show:
    """Shows a part of a schedule's request; nothing for an action of another kind."""

    def of(it: ShownSchedule) -> object:
        action = it.schedule.action
        return show(action) if isinstance(action, HttpAction) else None

    return of


def _destination_name(action: HttpAction) -> str | None:
    return name_of(action.destination) if action.destination else None


def _mask_of(kind: BodyKind) -> Show:
    """Shows a mask where the schedule's body was given as `kind`."""

    return _of_request(lambda action: MASK if action.body and action.body.kind is kind else None)


def _sealed_secrets(it: ShownSchedule) -> str | None:
    action = it.schedule.action
    if it.secret_box is None or not isinstance(action, HttpAction):
        return None
    return seal_action(action, it.secret_box)


REQUEST = (
    ScheduleField(
        name="callback_url",
        meaning="The http or https URL to call",
        default="this, `destination` or `action` required",
        input=fields.String(metadata=_URL),
        output=fields.String(),
        draft="url",
        shown=_of_request(lambda action: None if action.destination else masked_url(action.url)),
        shown_meaning=f"The URL to call, with `{MASK}` for the values of its query",
        aliases="url uri callback endpoint target webhook webhook_url callback_uri link address",
    ),
    ScheduleField(
        name="destination",
        meaning="The name of a destination to call, instead of `callback_url`: it says how often and how"
        " fast, and what a request needs besides",
        input=DestinationName(allow_none=True),
        output=fields.String(),
        shown=_of_request(_destination_name),
    ),
    ScheduleField(
        name="path",
        meaning="The path and query below the destination's URL, such as `/orders?kind=new`",
        default="empty",
        input=fields.String(validate=check_path, metadata={"example": "/orders"}),
        output=fields.String(),
        shown=_of_request(lambda action: masked_url(action.url) or None if action.destination else None),
        shown_meaning=f"The path and query below the destination's URL, with `{MASK}` for the values of the"
        " query",
    ),
    ScheduleField(
        name="method",
        meaning="The HTTP method, in capital letters",
        default=f"the destination's; `{DEFAULT_METHOD}`; with a body `{DEFAULT_METHOD_WITH_BODY}`",
        input=fields.String(
            validate=validate.OneOf(METHODS, error="must be one of {choices}, in capital letters")
        ),
        output=fields.String(),
        shown=_of_request(lambda action: action.method or None),
        aliases="http_method verb",
    ),
    ScheduleField(
        name="headers",
        meaning=f"Header names and values, up to {MAX_HEADERS}. Answers mask the values of all but harmless"
        " names; a mask that is sent back leaves the value as it is while the URL's scheme, host and port"
        " stay the same",
        input=Headers(validate=validate.Length(max=MAX_HEADERS)),
        output=fields.Dict(keys=fields.String(), values=fields.String()),
        shown=_of_request(lambda action: dict(masked(action.headers))),
        shown_meaning=f"Header names and values, with `{MASK}` for the values of all but harmless names"
        f" ({', '.join(sorted(HARMLESS))})",
        aliases="header http_headers",
    ),
    ScheduleField(
        name="body",
        meaning=f"The body as text, up to {MAX_BODY_BYTES // 1024} KiB; answers mask it",
        input=fields.String(
            allow_none=True, error_messages={"invalid": "must be text; give a JSON value as json instead"}
        ),
        output=fields.String(),
        read=partial(_body, BodyKind.TEXT),
        shown=_mask_of(BodyKind.TEXT),
        shown_meaning=f"`{MASK}` where the body was given as text",
    ),
    ScheduleField(
        name="json",
        meaning="The body as a JSON value, instead of `body`",
        input=fields.Raw(),
        output=fields.Raw(),
        draft="body",
        read=partial(_body, BodyKind.JSON),
        shown=_mask_of(BodyKind.JSON),
        shown_meaning=f"`{MASK}` where the body was given as JSON",
    ),
    ScheduleField(
        name="body_base64",
        meaning="The body in base64, for one that is not text, instead of `body`",
        input=fields.String(),
        output=fields.String(),
        draft="body",
        read=partial(_body, BodyKind.BASE64),
        shown=_mask_of(BodyKind.BASE64),
        shown_meaning=f"`{MASK}` where the body was given in base64",
    ),
    ScheduleField(
        name="sealed",
        meaning=f"The encrypted values of an export, which its masks (`{MASK}`) stand for",
        input=fields.String(),
        exported=_sealed_secrets,
    ),
)


class _AnyActionInput(InputSchema):
    """What actions of all types have in common."""

    type = fields.String(
        required=True,
        validate=validate.OneOf(list(ACTION_TYPES)),
        metadata={
            "description": "; ".join(f"`{name}`: {its.meaning}" for name, its in ACTION_TYPES.items()),
            "example": next(iter(ACTION_TYPES)),
        },
    )

    @validates_schema
    def _fits_its_type(self, given: dict[str, Any], **_: object) -> None:
        kind = str(given.get("type"))
        its = ACTION_TYPES.get(kind)
        if its is None:
            return  # the field says so
        missing = {name: [f"must be given for a {kind}"] for name in its.required if name not in given}
        foreign = {
            name: [f"is no field of a {kind}: leave it out"]
            for name in sorted(given.keys() - its.input.keys() - {"type"})
        }
        if missing or foreign:
            raise ValidationError(missing | foreign)


#: An action of another kind than an HTTP request, as a request gives it: the fields of all types in one.
_ActionInput = _AnyActionInput.from_dict(
    {name: field for its in ACTION_TYPES.values() for name, field in its.input.items()}, name="ActionInput"
)


class _AnyActionOutput(OutputSchema):
    """What actions of all types have in common."""

    type = fields.String(metadata={"description": " or ".join(f"`{name}`" for name in ACTION_TYPES)})


#: An action as it is stored; what may be secret of it is masked.
_ActionOutput = _AnyActionOutput.from_dict(
    {name: field for its in ACTION_TYPES.values() for name, field in its.output.items()}, name="ActionOutput"
)


def _read_action(given: Loaded) -> Action:
    """Raises ValidationError."""
    try:
        action: Action = ACTION_TYPES[given["type"]].read(given)
    except ValidationError as error:
        raise ValidationError(error.messages, "action") from None
    return action


def _action_shown(it: ShownSchedule) -> View | None:
    action = it.schedule.action
    its = ACTION_TYPES.get(action.kind)
    return {"type": action.kind, **its.shown(action)} if its else None


ACTION = (
    ScheduleField(
        name="action",
        meaning="What it does instead of an HTTP request, such as"
        ' `{"type": "command", "command": ["/opt/jobs/report", "--daily"]}`',
        input=fields.Nested(_ActionInput),
        output=fields.Nested(_ActionOutput),
        read=_read_action,
        shown=_action_shown,
    ),
)
