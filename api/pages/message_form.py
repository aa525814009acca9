"""The form of a message: what it shows, and what it asks the schema of the API to read."""

import json
from typing import Any

from marshmallow import Schema, ValidationError, fields, validate

from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages.form_values import ONE_LINE, headers_of, value_of
from scheduler_app.api.pages.schedule_form import default_of
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.message_input import SHARED, NewMessage
from scheduler_app.api.wire.schedule_fields.field import AnyField
from scheduler_app.domain.triggers import BY_NAME

_FIELDS = NewMessage().fields
_TEXTS = ("id", "event_name", "destination", "path", "method")
#: The fields for retries of a message, and for the destinations that are told how it ended.
SETTINGS: dict[str, Any] = {
    name: _FIELDS[name]
    for name in SHARED
    if isinstance(_FIELDS[name], ONE_LINE) and name not in (*_TEXTS, "callback_url", "body", "body_base64")
}
JSON, TEXT = "json", "text"
_LENGTHS = {"id": 200, "event_name": 1_000, "when": 2_000, "timezone": 200, "url": 10_000,
            "destination": 200, "path": 10_000, "method": 20, "headers": 40_000, "metadata": 40_000,
            "body": 300_000}  # fmt: skip
#: The fields beside which the form shows errors.
SHOWN = frozenset((*_LENGTHS, *SETTINGS))
#: The form's names of what the API's errors are about.
FORM_NAMES = dict.fromkeys(BY_NAME, "when") | {
    "callback_url": "url",
    "payload": "body",
    "body_base64": "body",
    "scheduled_at": "when",
    "delay_seconds": "when",
}

#: Its fields are checked as the API's: here they are only bounded.
_TEXT_FIELDS: dict[str, AnyField] = {
    name: fields.String(validate=validate.Length(max=most))
    for name, most in (_LENGTHS | dict.fromkeys(SETTINGS, 1_000)).items()
}
MessageForm: type[Schema] = InputSchema.from_dict(
    _TEXT_FIELDS
    | {
        "once": fields.String(validate=validate.Regexp(r"[0-9a-f]{24}\Z")),
        "body_as": fields.String(validate=validate.OneOf([JSON, TEXT]), load_default=JSON),
    },
    name="MessageForm",
)


def meaning_of(name: str) -> View:
    """What the API's specification says of a setting, and what it is unless given."""
    meaning = str(_FIELDS[name].metadata.get("description", ""))
    return {"meaning": meaning, "default": default_of(name)}


def request_of(form: Loaded) -> View:
    """The body of the API's request for the message, but for its time. Raises ValidationError."""
    texts = {name: text for name, text in form.items() if text}
    given: View = {name: texts[name].strip() for name in _TEXTS if name in texts}
    if "url" in texts:
        given["callback_url"] = texts["url"].strip()
    for name in ("headers", "metadata"):
        if name in texts:
            given[name] = headers_of(texts[name], name)
    if "body" in texts:
        given |= {"body": texts["body"]} if form["body_as"] == TEXT else {"payload": _payload(texts["body"])}
    for name in SETTINGS.keys() & texts.keys():
        given[name] = value_of(SETTINGS[name], texts[name].strip())
    return given


def _payload(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValidationError({"payload": ["is no JSON; choose text to send it as it is"]}) from None
