"""Destinations: their limits and state, and the forms that make, edit and delete one.

An edit gives only what was changed in the form, so that masks stand for what they hide.
"""

from datetime import datetime, timedelta
from typing import Any

from flask import render_template, url_for
from marshmallow import Schema, ValidationError, validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api import idempotency
from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.destination_picker import health_words
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.pages.schedule_form import own_receiver, tested
from scheduler_app.api.problems import HttpProblem, problem_of
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.destination import (
    DestinationChange,
    DestinationInput,
    destination_shown,
)
from scheduler_app.api.wire.field_types import Cursor, DestinationName
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.destination import Destination, DestinationDraft
from scheduler_app.domain.errors import Conflict, InvalidField, StaleVersion
from scheduler_app.domain.http_action import METHODS
from scheduler_app.domain.ids import WholeId, name_of, whole_id
from scheduler_app.store.paging import PageRequest
from scheduler_app.usecases.deeds.creation import Preconditions
from scheduler_app.usecases.questions.destinations import MOST_RUNS, DestinationHealth

#: On a page: how each is now is asked of Redis.
ROWS = 25


class DestinationsQuery(forms.ActionResultQuery):
    cursor = Cursor()


class ChangeForm(InputSchema):
    name = DestinationName(required=True)
    verb = fields.String(required=True, validate=validate.OneOf(["pause", "resume"]))


@blueprint.get("/destinations")
@forms.takes_query(DestinationsQuery)
def destinations(query: Loaded) -> str:
    assembly = services()
    found = assembly.destinations.page(tenant(), PageRequest(limit=ROWS, after=query.get("cursor")))
    readable = [each for each in found.rows if isinstance(each, Destination)]
    health = assembly.destination_questions.health(tenant(), readable, assembly.now())
    return render_template(
        "destinations.html",
        rows=[destination_shown(each) for each in found.rows],
        health={name_of(each): _health_shown(of, assembly.now()) for each, of in health.items()},
        most_runs=MOST_RUNS,
        onward=forms.next_page_query(found.next),
        done=query.get("done"),
    )


def _health_shown(of: DestinationHealth, now: datetime) -> View:
    flow = of.flow
    return {
        "words": health_words(of),
        "failing_since": of.failing.since if of.failing else None,
        "next_try": now + timedelta(seconds=flow.open_for) if flow and flow.open_for else None,
        "under_way": flow.in_flight if flow else 0,
        "waiting": of.waiting,
        "schedules": of.schedules,
        "last_runs": of.last_runs,
    }


@blueprint.post("/destinations/change")
@forms.takes_form(ChangeForm)
def change_destination(form: Loaded) -> Response:
    assembly, paused = services(), form["verb"] == "pause"
    assembly.destinations.edit(
        whole_id(tenant(), form["name"]), DestinationDraft(paused=paused), assembly.now()
    )
    done = "paused" if paused else "resumed"
    return to_page("destinations", done=done)


@blueprint.post("/destinations/<name:name>/test-call")
@forms.takes_form(forms.NoFields)
def call_destination(_: Loaded, name: WholeId) -> str:
    try:
        verdict = services().destinations.test(name, services().now()).verdict
    except Conflict as error:
        return render_template("tested.html", refusal=str(error))
    return tested(verdict)


_FIELDS = {field.data_key or name: field for name, field in DestinationChange().fields.items()}
_ELSEWHERE = {"url", "method", "headers", "paused"}
#: The fields of one value: limits, retries and whether requests are signed.
SETTINGS: dict[str, Any] = {
    name: field
    for name, field in _FIELDS.items()
    if name not in _ELSEWHERE and isinstance(field, (*forms.ONE_LINE, fields.List))
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

DestinationForm: type[Schema] = InputSchema.from_dict(
    forms.text_fields(_LENGTHS | dict.fromkeys(SETTINGS, 1_000))
    | {"version": fields.Integer(validate=validate.Range(1))},
    name="DestinationForm",
)


def request_of(form: Loaded) -> View:
    """The body of the API's request for a new destination. Raises ValidationError."""
    return _values({name: text for name, text in form.items() if text and name != "version"})


def changes_of(form: Loaded, shown: View) -> View:
    """The body of the API's PATCH that makes `shown` what the form says. Raises ValidationError."""
    before = texts_of(shown)
    changed = forms.changed_names(form, before, (set(_LENGTHS) | set(SETTINGS)) - {"name"})
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
    texts: Loaded = {"headers": forms.headers_text(shown.get("headers"))}
    if isinstance(auth, dict):
        texts["auth_type"], texts["auth_username"] = auth["type"], auth.get("username", "")
        texts["auth_secret"] = auth.get("password") or auth.get("token")
    if isinstance(breaker, dict):
        texts |= {f"breaker_{name}": forms.text_of(value) for name, value in breaker.items()}
    for name in ("name", "url", "method", *SETTINGS):
        texts[name] = forms.text_of(shown[name]) if name in shown else ""
    if shown.get("allowed_methods") == list(METHODS):
        texts["allowed_methods"] = ""
    if shown.get("signing") is False:
        texts["signing"] = ""
    return texts


def _values(texts: dict[str, str]) -> View:
    given: View = {name: texts[name].strip() for name in ("url", "method") if name in texts}
    if "headers" in texts:
        given["headers"] = forms.headers_of(texts["headers"])
    if auth := _auth(texts):
        given["auth"] = auth
    breaker = {
        "failures": forms.value_of(fields.Integer(), texts.get("breaker_failures", "")),
        "open_seconds": forms.value_of(fields.Float(), texts.get("breaker_open_seconds", "")),
    }
    if any(value != "" for value in breaker.values()):
        given["breaker"] = {name: value for name, value in breaker.items() if value != ""}
    for name in SETTINGS.keys() & texts.keys():
        given[name] = forms.value_of(SETTINGS[name], texts[name].strip())
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


_NEW, _CHANGE, _NAME = DestinationInput(), DestinationChange(), DestinationName(required=True)
_SHOWN = {*_LENGTHS, *SETTINGS}


class DeletionForm(InputSchema):
    confirmed = fields.String(validate=validate.Equal("yes"))


@blueprint.get("/new-destination")
@forms.takes_query(forms.NoFields)
def new_destination(_: Loaded) -> str:
    return _form({})


@blueprint.post("/new-destination")
@forms.takes_form(DestinationForm)
def save_destination(form: Loaded) -> Response | str | tuple[str, int]:
    assembly = services()
    try:
        name = _named(form)
        draft = _NEW.load(request_of({key: text for key, text in form.items() if key != "name"}))
        absent = Preconditions(absent=True)
        saved, _ = assembly.destinations.put(name, draft, assembly.now(), conditions=absent)
    except StaleVersion as error:
        return _form(form, problem_of(InvalidField("name", str(error)))), 409
    except (ValidationError, InvalidField, Conflict) as error:
        problem = problem_of(error)
        return _form(form, problem), problem.status
    return _saved(saved, None, "created")


@blueprint.get("/destinations/<name:name>/edit")
@forms.takes_query(forms.NoFields)
def edit_destination(_: Loaded, name: WholeId) -> str:
    found = services().destinations.get(name)
    return _form(texts_of(destination_shown(found)) | {"version": found.version}, editing=name_of(name))


@blueprint.post("/destinations/<name:name>/edit")
@forms.takes_form(DestinationForm)
def save_destination_edit(form: Loaded, name: WholeId) -> Response | str | tuple[str, int]:
    assembly = services()
    before = assembly.destinations.get(name)
    try:
        draft = _CHANGE.load(changes_of(form, destination_shown(before)))
        saved = assembly.destinations.edit(
            name, draft, assembly.now(), version=form.get("version", before.version)
        )
    except StaleVersion:
        stale = "This destination was changed after the page was loaded: load it again, and edit it there"
        return _form(form, HttpProblem(409, stale), editing=name_of(name)), 409
    except (ValidationError, InvalidField, Conflict) as error:
        problem = problem_of(error)
        return _form(form, problem, editing=name_of(name)), problem.status
    return _saved(saved, before, "saved")


@blueprint.post("/destinations/<name:name>/delete")
@forms.takes_form(DeletionForm)
def delete_destination(form: Loaded, name: WholeId) -> Response | str | tuple[str, int]:
    """Asks first; says who still needs one that is in use."""
    if "confirmed" not in form:
        return render_template("delete_destination.html", name=name_of(name))
    try:
        services().destinations.delete(name)
    except Conflict as error:
        return render_template("delete_destination.html", name=name_of(name), refusal=str(error)), 409
    return to_page("destinations", done="deleted")


def _named(form: Loaded) -> WholeId:
    try:
        return whole_id(tenant(), _NAME.deserialize(form.get("name", "").strip()))
    except ValidationError as error:
        raise ValidationError({"name": error.messages}) from None


def _saved(saved: Destination, before: Destination | None, done: str) -> Response | str:
    """The list; a signing secret that was generated is shown first, once."""
    if saved.signing and not (before and before.signing):
        return render_template(
            "signing_secret.html",
            name=f"Destination {saved.name}",
            secret=idempotency.shown_once(saved.signing.secret),
            done=done,
            onward=url_for(f"{PAGES}.destinations"),
        )
    return to_page("destinations", done=done)


def _form(values: Loaded, problem: HttpProblem | None = None, *, editing: str | None = None) -> str:
    errors = forms.errors_by_field(problem, FORM_NAMES)
    return render_template(
        "edit_destination.html",
        values=values,
        errors=errors,
        others=forms.other_errors(errors, _SHOWN),
        editing=editing,
        methods=METHODS,
        settings={name: forms.setting(field) for name, field in SETTINGS.items()},
        own_receiver=own_receiver(),
    )
