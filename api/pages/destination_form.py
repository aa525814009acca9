"""The form of a destination: what it shows, and what it asks the schemas of the API to read.

An edit gives only what was changed in the form, so that masks stand for what they hide.
"""

from typing import Any

from marshmallow import Schema, fields, validate

from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages.form_values import (
    ONE_LINE,
    changed_names,
    headers_of,
    headers_text,
    text_of,
    value_of,
)
from scheduler_app.api.wire.destination_input import DestinationChange
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.http_action import METHODS

_FIELDS = {field.data_key or name: field for name, field in DestinationChange().fields.items()}
_ELSEWHERE = {"url", "method", "headers", "paused"}
#: The fields of one value: limits, retries and whether requests are signed.
SETTINGS: dict[str, Any] = {
    name: field
    for name, field in _FIELDS.items()
    if name not in _ELSEWHERE and isinstance(field, (*ONE_LINE, fields.List))
}
#: Fields of the form that are one field of the API together, by it.
TOGETHER = {
    "auth": ("auth_type", "auth_username", "auth_secret"),
    "breaker": ("breaker_failures", "breaker_open_seconds"),
}
_LENGTHS = {"name": 200, "url": 10_000, "method": 20, "headers": 40_000, "auth_type": 20,
            "auth_username": 4_000, "auth_secret": 4_000, "breaker_failures": 20,
            "breaker_open_seconds": 20}  # fmt: skip
#: The form's names of what the API's errors are about.
FORM_NAMES = {
    "auth": "auth_type",
    "auth/username": "auth_username",
    "auth/password": "auth_secret",
    "auth/token": "auth_secret",
    "breaker": "breaker_failures",
    "breaker/open_seconds": "breaker_open_seconds",
}
#: The value of a field that was emptied, where that is not null.
_EMPTY: View = {"headers": {}, "allowed_methods": list(METHODS), "burst": 1, "signing": False}

#: Its fields are checked as the API's: here they are only bounded.
DestinationForm: type[Schema] = InputSchema.from_dict(
    {name: fields.String(validate=validate.Length(max=most)) for name, most in _LENGTHS.items()}
    | {name: fields.String(validate=validate.Length(max=1_000)) for name in SETTINGS}
    | {"version": fields.Integer(validate=validate.Range(1))},
    name="DestinationForm",
)


def meaning_of(name: str) -> str:
    """What the API's specification says of a field."""
    return str(_FIELDS[name].metadata.get("description", ""))


def request_of(form: Loaded) -> View:
    """The body of the API's request for a new destination. Raises ValidationError."""
    return _values({name: text for name, text in form.items() if text and name != "version"})


def changes_of(form: Loaded, shown: View) -> View:
    """The body of the API's PATCH that makes `shown` what the form says. Raises ValidationError."""
    before = texts_of(shown)
    changed = changed_names(form, before, (set(_LENGTHS) | set(SETTINGS)) - {"name"})
    for parts in TOGETHER.values():
        if changed & set(parts):
            changed |= set(parts)
    gone: View = {
        name: _EMPTY.get(name)
        for name in changed
        if not form.get(name) and name != "url" and not _is_part(name)
    }
    gone |= {name: None for name, parts in TOGETHER.items() if changed & set(parts)}
    return gone | _values({name: form[name] for name in changed if form.get(name)})


def texts_of(shown: View) -> Loaded:
    """What the form's fields say of a destination, as the API shows it."""
    auth, breaker = shown.get("auth"), shown.get("breaker")
    texts: Loaded = {"headers": headers_text(shown.get("headers"))}
    if isinstance(auth, dict):
        texts["auth_type"], texts["auth_username"] = auth["type"], auth.get("username", "")
        texts["auth_secret"] = auth.get("password") or auth.get("token")
    if isinstance(breaker, dict):
        texts |= {f"breaker_{name}": text_of(value) for name, value in breaker.items()}
    for name in ("name", "url", "method", *SETTINGS):
        texts[name] = text_of(shown[name]) if name in shown else ""
    if shown.get("allowed_methods") == list(METHODS):
        texts["allowed_methods"] = ""
    if shown.get("signing") is False:
        texts["signing"] = ""
    return texts


def _values(texts: dict[str, str]) -> View:
    given: View = {name: texts[name].strip() for name in ("url", "method") if name in texts}
    if "headers" in texts:
        given["headers"] = headers_of(texts["headers"])
    if auth := _auth(texts):
        given["auth"] = auth
    breaker = {
        "failures": value_of(fields.Integer(), texts.get("breaker_failures", "")),
        "open_seconds": value_of(fields.Float(), texts.get("breaker_open_seconds", "")),
    }
    if any(value != "" for value in breaker.values()):
        given["breaker"] = {name: value for name, value in breaker.items() if value != ""}
    for name in SETTINGS.keys() & texts.keys():
        given[name] = value_of(SETTINGS[name], texts[name].strip())
    return given


def _auth(texts: dict[str, str]) -> View:
    """Empty where no type is chosen, whatever else is in the form."""
    kind = texts.get("auth_type", "")
    names = {"auth_username": "username", "auth_secret": "password"}
    if kind == "bearer":
        names = {"auth_secret": "token"}
    given: View = {api: texts[name] for name, api in names.items() if name in texts}
    return {"type": kind} | given if kind else {}


def _is_part(name: str) -> bool:
    return any(name in parts for parts in TOGETHER.values())
