"""The form of a schedule, made from the table of its fields, and what making and editing have in common.

An edit gives only what was changed in the form. Masks and what the form does not show stay as they are.
"""

import re
from typing import Any

from flask import render_template, request
from marshmallow import Schema, post_load, validate

from scheduler_app import json_fields as fields
from scheduler_app.actions.kind import Verdict
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages import forms, when
from scheduler_app.api.pages.destination_picker import NEW_NAME, NEW_URL, destinations_offered
from scheduler_app.api.pages.policy_words import FOLDS, choice_words, request_words
from scheduler_app.api.pages.when import trigger_fields, when_text
from scheduler_app.api.problems import HttpProblem
from scheduler_app.api.routes import operations
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.resource_fields import AnyField
from scheduler_app.api.wire.schedule_fields import BODY_FIELDS, EDIT_FIELDS, EXPECTATION_FIELDS
from scheduler_app.domain.errors import Conflict, InvalidField, NotFound
from scheduler_app.domain.http_action import METHODS, HttpAction
from scheduler_app.domain.resources.schedule import EXPECT, SCHEDULE
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.triggers import BY_NAME, FIELDS
from scheduler_app.store.paging import PageRequest

#: The form's name for each field of the API that has another one there.
FORM_NAMES = dict.fromkeys(BY_NAME, "when") | dict.fromkeys(BODY_FIELDS, "body") | {"callback_url": "url"}
_LENGTHS = {"name": 1_000, "when": 20_000, "timezone": 200, "url": 10_000, "destination": 200, "path": 10_000,
            "method": 20, "headers": 40_000, "body": 300_000, "tags": 2_000, "calendar": 200}  # fmt: skip
_ELSEWHERE = {
    *("id", "sealed", "action", "state", "reason", "note", "signing", "callback_url"),
    *(*_LENGTHS, *BODY_FIELDS, *FIELDS),
}

#: Every other field of a schedule that is one value: policies and limits.
POLICIES: dict[str, AnyField] = {
    name: field
    for name, field in EDIT_FIELDS.items()
    if name not in _ELSEWHERE and isinstance(field, forms.ONE_LINE)
}
#: What a schedule expects, in an object in the API, by the names that the form has for its fields.
_EXPECTED = {f"expect_{row.name}": row for row in EXPECT}
POLICIES |= {name: EXPECTATION_FIELDS[row.name] for name, row in _EXPECTED.items()}
FORM_NAMES |= {f"expect/{row.name}": name for name, row in _EXPECTED.items()}
#: What the manual says of a policy, and what a new schedule has without it.
HINTS = {
    name: (row.meaning, row.default)
    for name, row in [*((row.name, row) for row in SCHEDULE), *_EXPECTED.items()]
}
_OF_SETTINGS = "`WORKER_MAX_RETRIES`"


class _ReadForm(InputSchema):
    @post_load
    def choose(self, data: Loaded, **_: object) -> Loaded:
        """A chosen reading replaces the text in "When"."""
        return {**data, "when": data.pop("reading")} if "reading" in data else data


ScheduleForm: type[Schema] = _ReadForm.from_dict(
    forms.text_fields(_LENGTHS | dict.fromkeys(POLICIES, 1_000))
    | when.PICKER_FIELDS
    | {
        "once": fields.String(validate=validate.Regexp(r"[0-9a-f]{24}\Z")),
        "version": fields.Integer(validate=validate.Range(1)),
        "reviewed": fields.String(validate=validate.Length(max=64)),
        "edit_note": fields.String(validate=validate.Length(max=500)),
        "reading": fields.String(validate=validate.Length(max=20_000)),
        "state": fields.String(validate=validate.Equal("paused")),
        NEW_NAME: fields.String(validate=validate.Length(max=200)),
        NEW_URL: fields.String(validate=validate.Length(max=10_000)),
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
    changed = forms.changed_names(form, before, set(_LENGTHS) | set(POLICIES))
    gone: View = {}
    if changed & _EXPECTED.keys():
        # An edit of `expect` replaces all of it.
        changed |= {name for name in _EXPECTED if form.get(name)}
        gone["expect"] = None
    for name in (each for each in changed - _EXPECTED.keys() if not form.get(each)):
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
        "headers": forms.headers_text(shown.get("headers")),
        "tags": forms.text_of(shown.get("tags") or []),
        "body": next((forms.text_of(shown[name]) for name in BODY_FIELDS if name in shown), ""),
    }
    for name in ("name", "timezone", "destination", "path", "method", "calendar", *POLICIES):
        texts[name] = forms.text_of(shown[name]) if name in shown else ""
    expected: Any = shown.get("expect") or {}
    return texts | {
        name: forms.text_of(expected[row.name]) for name, row in _EXPECTED.items() if row.name in expected
    }


def errors_of(problem: HttpProblem | None, values: Loaded) -> dict[str, list[str]]:
    """What is wrong, by the form's field that it is about; "" for what is about none."""
    errors = forms.errors_by_field(problem, FORM_NAMES)
    if problem is not None and not values.get("when"):
        errors["when"] = ["is missing; say when, as in “every weekday at 9:00”"]
        errors.pop("trigger", None)
    return errors


def _values(texts: dict[str, str]) -> View:
    given: View = {
        name: texts[name] for name in ("name", "timezone", "method", "body", "state") if name in texts
    }
    given |= {name: texts[name].strip() for name in ("destination", "path", "calendar") if name in texts}
    if "url" in texts:
        given["callback_url"] = texts["url"].strip()
    if "when" in texts:
        given |= trigger_fields(texts["when"])
    if "headers" in texts:
        given["headers"] = forms.headers_of(texts["headers"])
    if tags := forms.listed(texts.get("tags", "")):
        given["tags"] = tags
    for name in (POLICIES.keys() - _EXPECTED.keys()) & texts.keys():
        given[name] = forms.value_of(POLICIES[name], texts[name].strip())
    expected = {
        row.name: forms.value_of(POLICIES[name], texts[name].strip())
        for name, row in _EXPECTED.items()
        if name in texts
    }
    return given | ({"expect": expected} if expected else {})


REQUEST = ("path", "method", "headers", "body")
_SHOWN = {*_LENGTHS, *POLICIES, NEW_NAME, NEW_URL}
_WORD = re.compile(r"`?[\w.]+`?")
#: Names that can be chosen while one is typed.
MOST_CALENDARS = 100


def editor(template: str, values: Loaded, problem: HttpProblem | None, **more: object) -> str:
    """The form, with what is wrong beside the fields that it is about, and above them all."""
    errors = errors_of(problem, values)
    others = [
        f"{name}: {text}" if name else text
        for name in sorted(errors.keys() - _SHOWN)
        for text in errors[name]
    ]
    texts = with_defaults(values)
    given: dict[str, object] = {
        "values": values,
        "errors": errors,
        "wrong_fields": [name for name in errors if name in _SHOWN],
        "others": others,
        "methods": METHODS,
        "problem": problem,
        "own_receiver": own_receiver(),
        "has_request": True,
        "request_given": any(name in errors for name in REQUEST),
        "request_words": request_words(texts),
        "destinations": destinations_offered(),
        "calendars": _calendars(),
        "folds": [
            {
                "fold": fold,
                "summary": fold.summary(texts),
                "open": any(name in errors for name in fold.fields),
            }
            for fold in FOLDS
        ],
        "policies": {
            name: {
                "choices": [(value, choice_words(name, value)) for value in forms.choices(field)],
                "meaning": HINTS[name][0],
                "default": default_of(name),
            }
            for name, field in POLICIES.items()
        },
    }
    return render_template(template, **(given | more))


def with_defaults(values: Loaded) -> dict[str, str]:
    """What is set, or what a new schedule has without it, where that is one word."""
    defaults = {name: default_of(name).strip("`") for name in POLICIES if _WORD.fullmatch(default_of(name))}
    return defaults | {name: text for name, text in values.items() if isinstance(text, str) and text}


def _calendars() -> list[str]:
    found = services().calendars.page(tenant(), PageRequest(limit=MOST_CALENDARS))
    return [each.name for each in found.rows]


def own_receiver() -> str | None:
    """A URL of this very process for a first schedule, where callbacks may reach this machine."""
    return f"{request.host_url.rstrip('/')}{operations.ECHO_PATH}" if operations.is_echo_reachable() else None


def test_called(schedule: Schedule) -> str:
    """Calls the receiver of a schedule once, now, as a worker would; what came back, as a part of a page."""
    if not isinstance(schedule.action, HttpAction):
        return render_template("tested.html", refusal="Only HTTP requests can be tried from here.")
    try:
        return tested(services().destinations.try_out(schedule, services().now()).verdict)
    except (Conflict, InvalidField, NotFound) as error:
        return render_template("tested.html", refusal=str(error))


def tested(verdict: Verdict | None) -> str:
    """What one call came to, as a part of a page."""
    if verdict is None:
        return render_template("tested.html", refusal="Nothing was sent: this is a dry run.")
    return render_template("tested.html", verdict=verdict, ok=verdict.outcome.name == "SUCCESS")
