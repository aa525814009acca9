"""The forms that make, edit and delete a destination."""

from flask import Blueprint, redirect, render_template, url_for
from marshmallow import ValidationError, fields, validate
from werkzeug.wrappers import Response

from scheduler_app.api import idempotency
from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages.destination_form import (
    FORM_NAMES,
    SETTINGS,
    DestinationForm,
    changes_of,
    meaning_of,
    request_of,
    texts_of,
)
from scheduler_app.api.pages.editor import own_receiver
from scheduler_app.api.pages.form_values import choices, errors_by_field
from scheduler_app.api.pages.forms import Nothing, problem_of, takes_form, takes_query
from scheduler_app.api.problems import Problem
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire.destination_input import DestinationChange, DestinationInput
from scheduler_app.api.wire.destination_output import destination_shown
from scheduler_app.api.wire.field_types import DestinationName
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.errors import Conflict, InvalidField, StaleVersion
from scheduler_app.domain.http_action import METHODS
from scheduler_app.usecases.upsert import Conditions

_NEW, _CHANGE, _NAME = DestinationInput(), DestinationChange(), DestinationName(required=True)
_SHOWN = {"name", "url", "method", "headers", "auth_type", "auth_username", "auth_secret",
          "breaker_failures", "breaker_open_seconds", *SETTINGS}  # fmt: skip


class DeletionForm(InputSchema):
    confirmed = fields.String(validate=validate.Equal("yes"))


def register(blueprint: Blueprint) -> None:
    path = "/destinations/<name>"
    blueprint.add_url_rule("/new-destination", view_func=new_destination, methods=["GET"])
    blueprint.add_url_rule("/new-destination", view_func=save_destination, methods=["POST"])
    blueprint.add_url_rule(f"{path}/edit", view_func=edit_destination, methods=["GET"])
    blueprint.add_url_rule(f"{path}/edit", view_func=save_destination_edit, methods=["POST"])
    blueprint.add_url_rule(f"{path}/delete", view_func=delete_destination, methods=["POST"])


@takes_query(Nothing)
def new_destination(_: Loaded) -> str:
    return _form({})


@takes_form(DestinationForm)
def save_destination(form: Loaded) -> Response | str | tuple[str, int]:
    made = services()
    try:
        name = _named(form)
        draft = _NEW.load(request_of({key: text for key, text in form.items() if key != "name"}))
        absent = Conditions(absent=True)
        saved, _ = made.destinations.put(name, draft, made.now(), tenant=tenant(), conditions=absent)
    except (ValidationError, InvalidField) as error:
        return _form(form, problem_of(error)), 422
    except StaleVersion as error:
        return _form(form, problem_of(InvalidField("name", str(error)))), 409
    except Conflict as error:
        return _form(form, Problem(409, str(error))), 409
    return _saved(saved, None, "created")


@takes_query(Nothing)
def edit_destination(_: Loaded, name: str) -> str:
    found = services().destinations.get(name, tenant=tenant())
    return _form(texts_of(destination_shown(found)) | {"version": found.version}, editing=name)


@takes_form(DestinationForm)
def save_destination_edit(form: Loaded, name: str) -> Response | str | tuple[str, int]:
    made = services()
    before = made.destinations.get(name, tenant=tenant())
    try:
        draft = _CHANGE.load(changes_of(form, destination_shown(before)))
        saved = made.destinations.edit(
            name, draft, made.now(), tenant=tenant(), version=form.get("version", before.version)
        )
    except (ValidationError, InvalidField) as error:
        return _form(form, problem_of(error), editing=name), 422
    except StaleVersion:
        stale = "This destination was changed after the page was loaded: load it again, and edit it there"
        return _form(form, Problem(409, stale), editing=name), 409
    except Conflict as error:
        return _form(form, Problem(409, str(error)), editing=name), 409
    return _saved(saved, before, "saved")


@takes_form(DeletionForm)
def delete_destination(form: Loaded, name: str) -> Response | str | tuple[str, int]:
    """Asks first; says who still needs one that is in use."""
    if "confirmed" not in form:
        return render_template("delete_destination.html", name=name)
    try:
        services().destinations.delete(name, tenant=tenant())
    except Conflict as error:
        return render_template("delete_destination.html", name=name, refusal=str(error)), 409
    return redirect(url_for(f"{PAGES}.destinations", done="deleted"), 303)


def _named(form: Loaded) -> str:
    try:
        name: str = _NAME.deserialize(form.get("name", "").strip())
    except ValidationError as error:
        raise ValidationError({"name": error.messages}) from None
    return name


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
    return redirect(url_for(f"{PAGES}.destinations", done=done), 303)


def _form(values: Loaded, problem: Problem | None = None, *, editing: str | None = None) -> str:
    errors = errors_by_field(problem, FORM_NAMES)
    settings: dict[str, View] = {
        name: {"choices": choices(field), "meaning": meaning_of(name), "default": ""}
        for name, field in SETTINGS.items()
    }
    return render_template(
        "edit_destination.html",
        values=values,
        errors=errors,
        others=[text for name in sorted(errors.keys() - _SHOWN) for text in errors[name]],
        editing=editing,
        methods=METHODS,
        settings=settings,
        own_receiver=own_receiver(),
    )
