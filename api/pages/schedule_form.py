"""The form of a schedule, made from the table of its fields: what it shows, and what it asks the schemas of
the API to read.

An edit gives only what was changed in the form. Masks and what the form does not show stay as they are.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from marshmallow import Schema, ValidationError, fields, validate

from api.json_types import Loaded, View
from api.pages import picker
from api.pages.when import trigger_fields, when_text
from api.problems import Problem
from api.wire.field_types import StatusCodes
from api.wire.input_schema import InputSchema
from api.wire.schedule_fields import BODY_FIELDS, EDIT_FIELDS, SCHEDULE_FIELDS
from api.wire.schedule_fields.field import AnyField
from scheduler_app.domain.triggers import BY_NAME, FIELDS

#: The form's name for each field of the API that has another one there.
FORM_NAMES = dict.fromkeys(BY_NAME, "when") | dict.fromkeys(BODY_FIELDS, "body") | {"callback_url": "url"}
_ELSEWHERE = {
    "id",
    "sealed",
    "action",
    "state",
    "reason",
    "note",
    "signing",
    "name",
    "timezone",
    "method",
    "headers",
}
_ELSEWHERE |= {"callback_url", "destination", "path", "tags", "calendar", *BODY_FIELDS, *FIELDS}
_KINDS = (fields.String, fields.Integer, fields.Float, fields.Boolean, StatusCodes)
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")

#: Every other field of a schedule that is one value: policies and limits.
POLICIES: dict[str, AnyField] = {
    name: field for name, field in EDIT_FIELDS.items() if name not in _ELSEWHERE and isinstance(field, _KINDS)
}
#: What the manual says of a policy, and what a new schedule has without it.
HINTS = {row.name: (row.meaning, row.default) for row in SCHEDULE_FIELDS}
_LENGTHS = {"name": 1_000, "when": 20_000, "timezone": 200, "url": 10_000, "destination": 200, "path": 10_000,
            "method": 20, "headers": 40_000, "body": 300_000, "tags": 2_000, "calendar": 200}  # fmt: skip

#: Its fields are checked as the API's: here they are only bounded.
ScheduleForm: type[Schema] = InputSchema.from_dict(
    {name: fields.String(validate=validate.Length(max=most)) for name, most in _LENGTHS.items()}
    | {name: fields.String(validate=validate.Length(max=1_000)) for name in POLICIES}
    | picker.FIELDS
    | {
        "once": fields.String(validate=validate.Regexp(r"[0-9a-f]{24}\Z")),
        "version": fields.Integer(validate=validate.Range(1)),
        "reviewed": fields.String(validate=validate.Length(max=64)),
        "edit_note": fields.String(validate=validate.Length(max=500)),
    },
    name="ScheduleForm",
)


def choices(field: AnyField) -> list[str]:
    """What a policy may be, where that is one of some words."""
    if isinstance(field, fields.Boolean):
        return ["true", "false"]
    found = (each for each in field.validators if isinstance(each, validate.OneOf))
    return [str(each) for one_of in found for each in one_of.choices]


def request_of(form: Loaded) -> View:
    """The body of the API's request for a new schedule. Raises ValidationError."""
    return _values({name: text for name, text in form.items() if text})


def changes_of(form: Loaded, shown: View) -> View:
    """The body of the API's PUT that makes `shown` what the form says. Raises ValidationError."""
    before = texts_of(shown)
    known = set(_LENGTHS) | set(POLICIES)
    changed = {name for name in known if _plain(form.get(name, "")) != _plain(before.get(name, ""))}
    gone: View = {}
    for name in (each for each in changed if not form.get(each)):
        if name in ("headers", "tags"):
            gone[name] = {} if name == "headers" else []
        elif name == "body":
            gone |= {each: None for each in BODY_FIELDS[:1] if any(body in shown for body in BODY_FIELDS)}
        elif name not in ("url", "when"):
            gone[name] = None
    return gone | _values({name: form[name] for name in changed if form.get(name)})


def texts_of(shown: View) -> Loaded:
    """What the form's fields say of a schedule, as the API shows it."""
    written = {name: shown[name] for name in FIELDS if name in shown}
    texts: Loaded = {
        "when": when_text(written),
        "url": shown.get("callback_url", ""),
        "headers": "\n".join(f"{name}: {value}" for name, value in _mapping(shown.get("headers"))),
        "tags": ", ".join(_listed(shown.get("tags"))),
        "body": next((_text(shown[name]) for name in BODY_FIELDS if name in shown), ""),
    }
    for name in ("name", "timezone", "destination", "path", "method", "calendar", *POLICIES):
        texts[name] = _text(shown[name]) if name in shown else ""
    return texts


def errors_of(problem: Problem | None, values: Loaded) -> dict[str, list[str]]:
    """What is wrong, by the form's field that it is about; "" for what is about none."""
    if problem is None:
        return {}
    errors: dict[str, list[str]] = {}
    for each in problem.errors:
        name = each["pointer"].lstrip("/").partition("/")[0]
        errors.setdefault(FORM_NAMES.get(name, name), []).append(each["detail"])
    if not problem.errors:
        errors[""] = [problem.detail]
    if not values.get("when"):
        errors["when"] = ["is missing; say when, as in “every weekday at 9:00”"]
        errors.pop("trigger", None)
    return errors


def _values(texts: dict[str, str]) -> View:
    given: View = {name: texts[name] for name in ("name", "timezone", "method", "body") if name in texts}
    given |= {name: texts[name].strip() for name in ("destination", "path", "calendar") if name in texts}
    if "url" in texts:
        given["callback_url"] = texts["url"].strip()
    if "when" in texts:
        given |= trigger_fields(texts["when"])
    if "headers" in texts:
        given["headers"] = _headers(texts["headers"])
    if tags := [tag.strip() for tag in texts.get("tags", "").split(",") if tag.strip()]:
        given["tags"] = tags
    for name in POLICIES.keys() & texts.keys():
        given[name] = _value(POLICIES[name], texts[name].strip())
    return given


def _value(field: AnyField, text: str) -> object:
    """The JSON value that a text stands for; the text itself where it is none, for the schema to refuse."""
    readers: tuple[tuple[type[Any], Callable[[str], object]], ...] = (
        (fields.Boolean, lambda each: {"true": True, "false": False}.get(each, each)),
        (StatusCodes, lambda each: [_number(code.strip()) for code in each.split(",") if code.strip()]),
        (fields.Integer, _number),
        (fields.Float, _number),
    )
    for kind, read in readers:
        if isinstance(field, kind):
            return read(text)
    return text


def _number(text: str) -> object:
    if not _NUMBER.fullmatch(text) or len(text) > 20:
        return text
    return float(text) if "." in text else int(text)


def _headers(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, colon, value = line.partition(":")
        if not colon or name.strip() in found:
            raise ValidationError({"headers": [f"write each header once, as Name: value; not {line[:80]!r}"]})
        found[name.strip()] = value.strip()
    return found


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _plain(text: str) -> str:
    """A browser sends lines as it ends them."""
    return "\n".join(text.split("\r\n")).strip()


def _mapping(value: object) -> list[tuple[str, str]]:
    return [(str(name), str(each)) for name, each in value.items()] if isinstance(value, dict) else []


def _listed(value: object) -> list[str]:
    return list(map(str, value)) if isinstance(value, list | tuple) else []
