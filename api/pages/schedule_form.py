"""The form of a schedule, made from the table of its fields: what it shows, and what it asks the schemas of
the API to read.

An edit gives only what was changed in the form. Masks and what the form does not show stay as they are.
"""

from marshmallow import Schema, fields, validate

from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages import picker
from scheduler_app.api.pages.form_values import (
    ONE_LINE,
    changed_names,
    errors_by_field,
    headers_of,
    headers_text,
    listed,
    text_of,
    value_of,
)
from scheduler_app.api.pages.when import trigger_fields, when_text
from scheduler_app.api.problems import Problem
from scheduler_app.api.services import services
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.schedule_fields import BODY_FIELDS, EDIT_FIELDS, SCHEDULE_FIELDS
from scheduler_app.api.wire.schedule_fields.field import AnyField
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

#: Every other field of a schedule that is one value: policies and limits.
POLICIES: dict[str, AnyField] = {
    name: field
    for name, field in EDIT_FIELDS.items()
    if name not in _ELSEWHERE and isinstance(field, ONE_LINE)
}
#: What the manual says of a policy, and what a new schedule has without it.
HINTS = {row.name: (row.meaning, row.default) for row in SCHEDULE_FIELDS}
_OF_SETTINGS = "`WORKER_MAX_RETRIES`"
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


def default_of(name: str) -> str:
    """What a schedule has without a policy; a setting by its value."""
    default = HINTS[name][1] or ""
    return str(services().settings.worker_max_retries) if default == _OF_SETTINGS else default


def request_of(form: Loaded) -> View:
    """The body of the API's request for a new schedule. Raises ValidationError."""
    return _values({name: text for name, text in form.items() if text})


def changes_of(form: Loaded, shown: View) -> View:
    """The body of the API's PUT that makes `shown` what the form says. Raises ValidationError."""
    before = texts_of(shown)
    changed = changed_names(form, before, set(_LENGTHS) | set(POLICIES))
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
        "headers": headers_text(shown.get("headers")),
        "tags": text_of(shown.get("tags") or []),
        "body": next((text_of(shown[name]) for name in BODY_FIELDS if name in shown), ""),
    }
    for name in ("name", "timezone", "destination", "path", "method", "calendar", *POLICIES):
        texts[name] = text_of(shown[name]) if name in shown else ""
    return texts


def errors_of(problem: Problem | None, values: Loaded) -> dict[str, list[str]]:
    """What is wrong, by the form's field that it is about; "" for what is about none."""
    errors = errors_by_field(problem, FORM_NAMES)
    if problem is not None and not values.get("when"):
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
        given["headers"] = headers_of(texts["headers"])
    if tags := listed(texts.get("tags", "")):
        given["tags"] = tags
    for name in POLICIES.keys() & texts.keys():
        given[name] = value_of(POLICIES[name], texts[name].strip())
    return given
