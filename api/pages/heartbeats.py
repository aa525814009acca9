"""Heartbeats: jobs elsewhere that report by a rule. The secret URL of one is shown once, when it is made."""

from flask import render_template
from marshmallow import ValidationError, validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.pages.times import viewer_zone
from scheduler_app.api.pages.when import trigger_fields
from scheduler_app.api.problems import HttpProblem, problem_of
from scheduler_app.api.routes.heartbeats import ping_url
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.heartbeat import HeartbeatInput, heartbeat_draft, heartbeat_shown
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.errors import Conflict, InvalidField
from scheduler_app.domain.ids import whole_id
from scheduler_app.domain.resources.heartbeat import WHEN

_LENGTHS = {"name": 200, "when": 20_000, "timezone": 200, "grace": 20, "note": 2_000, "tags": 2_000}
_FORM_NAMES = dict.fromkeys(WHEN, "when") | {"grace_seconds": "grace"}


class HeartbeatForm(InputSchema):
    class Meta(InputSchema.Meta):
        include = forms.text_fields(_LENGTHS)


class HeartbeatNamed(InputSchema):
    name = fields.String(required=True, validate=validate.Length(max=200))


@blueprint.get("/heartbeats")
@forms.takes_query(forms.ActionResultQuery)
def heartbeats(query: Loaded) -> str:
    return _page({"timezone": viewer_zone()}, done=query.get("done"))


@blueprint.post("/heartbeats")
@forms.takes_form(HeartbeatForm)
def save_heartbeat(form: Loaded) -> Response | str | tuple[str, int]:
    try:
        heartbeat_id = whole_id(tenant(), form.get("name", "").strip())
        given = HeartbeatInput().load(_given(form))
        _, _, token = services().heartbeats.put(
            heartbeat_id, heartbeat_draft(heartbeat_id, given), services().now()
        )
    except (ValidationError, InvalidField, Conflict) as error:
        problem = problem_of(error)
        return _page(form, problem), problem.status
    if token is not None:
        return _url_shown(form["name"], token)
    return to_page("heartbeats", done="saved")


@blueprint.post("/heartbeats/new-url")
@forms.takes_form(HeartbeatNamed)
def renew_heartbeat_url(form: Loaded) -> str:
    _, token = services().heartbeats.rotate(whole_id(tenant(), form["name"]))
    return _url_shown(form["name"], token)


@blueprint.post("/heartbeats/delete")
@forms.takes_form(HeartbeatNamed)
def delete_heartbeat(form: Loaded) -> Response:
    services().heartbeats.delete(whole_id(tenant(), form["name"]), services().now())
    return to_page("heartbeats", done="deleted")


def _url_shown(name: str, token: str) -> str:
    return render_template("heartbeat_url.html", name=name, url=ping_url(token))


def _given(form: Loaded) -> View:
    """The body of the API that means the same."""
    given: View = {name: form[name] for name in ("timezone", "note") if form.get(name, "").strip()}
    given |= trigger_fields(form.get("when", ""))
    if tags := forms.listed(form.get("tags", "")):
        given["tags"] = tags
    if text := form.get("grace", "").strip():
        minutes = forms.value_of(fields.Float(), text)
        given["grace_seconds"] = minutes * 60 if isinstance(minutes, int | float) else minutes
    return given


def _page(values: Loaded, problem: HttpProblem | None = None, done: str | None = None) -> str:
    errors = forms.errors_by_field(problem, _FORM_NAMES)
    return render_template(
        "heartbeats.html",
        rows=[heartbeat_shown(each) for each in services().heartbeats.all(tenant())],
        values=values,
        errors=errors,
        others=forms.other_errors(errors, set(_LENGTHS)),
        done=done,
    )
