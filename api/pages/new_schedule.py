"""The form that makes a schedule, with a preview while it is filled in."""

import hashlib

from flask import Blueprint, redirect, render_template, request, url_for
from marshmallow import ValidationError, fields, validate
from werkzeug.wrappers import Response

from api import hop_limit
from api.auth import PAGES, is_local_name
from api.json_types import Loaded, View
from api.pages.forms import Nothing, problem_of, takes_form, takes_query
from api.pages.when import trigger_fields
from api.problems import Problem
from api.services import services
from api.tenancy import tenant
from api.wire.input_schema import InputSchema
from api.wire.preview import PreviewInput
from api.wire.previewed import previewed_input
from api.wire.schedule_input import NewSchedule
from scheduler_app.domain.errors import Conflict, InvalidField
from scheduler_app.domain.http_action import METHODS
from scheduler_app.domain.triggers import BY_NAME

OCCURRENCES = 5
#: The form's field for each of the API's whose name is another one.
FORM_FIELDS = dict.fromkeys(BY_NAME, "when") | {"callback_url": "url"}
_NEW_SCHEDULE, _PREVIEW = NewSchedule(), PreviewInput()


class ScheduleForm(InputSchema):
    """Its fields are checked as the API's: here they are only bounded."""

    once = fields.String(validate=validate.Regexp(r"[0-9a-f]{24}\Z"))
    name = fields.String(validate=validate.Length(max=1_000))
    when = fields.String(validate=validate.Length(max=20_000))
    timezone = fields.String(validate=validate.Length(max=200))
    url = fields.String(validate=validate.Length(max=10_000))
    method = fields.String(validate=validate.Length(max=20))
    body = fields.String(validate=validate.Length(max=300_000))
    tags = fields.String(validate=validate.Length(max=2_000))


def register(blueprint: Blueprint) -> None:
    blueprint.add_url_rule("/new-schedule", view_func=new_schedule, methods=["GET"])
    blueprint.add_url_rule("/new-schedule", view_func=save_schedule, methods=["POST"])
    blueprint.add_url_rule("/new-schedule/preview", view_func=preview_when, methods=["POST"])


@takes_query(Nothing)
def new_schedule(_: Loaded) -> str:
    return _form({"once": services().store.schedules.new_id(tenant=tenant()), "timezone": "UTC"})


@takes_form(ScheduleForm)
def save_schedule(form: Loaded) -> Response | tuple[str, int]:
    made = services()
    try:
        _, draft = _NEW_SCHEDULE.load(_request(form))
        schedule = made.creation.create(
            draft,
            made.now(),
            tenant=tenant(),
            request_seed=_seed(form),
            hops=hop_limit.request_hops(),
        )
    except (ValidationError, InvalidField) as error:
        return _form(form, problem_of(error)), 422
    except Conflict as error:
        return _form(form, Problem(409, str(error))), 409
    return redirect(url_for(f"{PAGES}.schedule", schedule_id=schedule.id, done="created"), 303)


@takes_form(ScheduleForm)
def preview_when(form: Loaded) -> str:
    if not form.get("when"):
        return render_template("preview.html")
    made = services()
    given: View = {"limit": OCCURRENCES, **trigger_fields(form["when"])}
    if "timezone" in form:
        given["timezone"] = form["timezone"]
    try:
        preview = previewed_input(_PREVIEW.load(given), made.store, made.now(), tenant=tenant())
    except (ValidationError, InvalidField) as error:
        return render_template("preview.html", problem=problem_of(error))
    return render_template("preview.html", preview=preview)


def _request(form: Loaded) -> View:
    """The body of the API's request for the same schedule."""
    given: View = {name: form[name] for name in ("name", "timezone", "method", "body") if name in form}
    if "url" in form:
        given["callback_url"] = form["url"].strip()
    if "when" in form:
        given |= trigger_fields(form["when"])
    if tags := [tag.strip() for tag in form.get("tags", "").split(",") if tag.strip()]:
        given["tags"] = tags
    return given


def _seed(form: Loaded) -> str | None:
    """What the id is made of: a form that is sent twice makes one schedule, one that was changed another."""
    if "once" not in form:
        return None
    content = "\n".join(f"{name}={form[name]}" for name in sorted(form))
    return hashlib.sha256(content.encode()).hexdigest()[:24]


def _form(values: Loaded, problem: Problem | None = None) -> str:
    """The form, with what is wrong beside the fields that it is about."""
    errors: dict[str, list[str]] = {}
    for each in problem.errors if problem else ():
        name = each["pointer"].lstrip("/").partition("/")[0]
        errors.setdefault(FORM_FIELDS.get(name, name), []).append(each["detail"])
    if problem and not problem.errors:
        errors[""] = [problem.detail]
    if problem and "when" not in values:
        errors["when"] = ["is missing; say when, as in “every weekday at 9:00”"]
        errors.pop("trigger", None)
    shown_fields = {"name", "when", "timezone", "url", "method", "body", "tags"}
    others = [
        f"{name}: {text}" if name else text
        for name in sorted(errors.keys() - shown_fields)
        for text in errors[name]
    ]
    return render_template(
        "new_schedule.html",
        values=values,
        errors=errors,
        others=others,
        methods=METHODS,
        problem=problem,
        own_receiver=_own_receiver(),
    )


def _own_receiver() -> str | None:
    """A URL of this very process for a first schedule, where callbacks may reach this machine."""
    if not is_local_name() or services().guard.refusal("127.0.0.1") is not None:
        return None
    return f"{request.host_url}health"
