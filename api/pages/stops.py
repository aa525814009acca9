"""The page of kill switches and blackouts, which keep callbacks from being sent."""

from typing import Any

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
from scheduler_app.api.services import caller, services, tenant
from scheduler_app.api.wire.blackout import BlackoutInput, blackout_of, blackout_shown
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.kill_switch import KillSwitchInput, target_of
from scheduler_app.domain.blackout import KINDS
from scheduler_app.domain.errors import Conflict, InvalidField
from scheduler_app.domain.ids import whole_id
from scheduler_app.domain.kill_switch import Scope, Target
from scheduler_app.usecases.stops import MOST_HELD, KillSwitchEffect

_SWITCH, _BLACKOUT = KillSwitchInput(), BlackoutInput()
_FORM_NAMES = dict.fromkeys(KINDS, "when") | {"duration_seconds": "minutes"}
_FORM_NAMES |= dict.fromkeys((each.value for each in Scope), "named")
_SHOWN = {"name", "when", "timezone", "minutes", "policy", "note", "scope", "named"}


class SwitchOffForm(InputSchema):
    scope = fields.String(required=True, validate=validate.OneOf(["all", "tag", "destination"]))
    named = fields.String(validate=validate.Length(max=200))


class SwitchForm(SwitchOffForm):
    note = fields.String(validate=validate.Length(max=2_000))


class BlackoutForm(InputSchema):
    name = fields.String(validate=validate.Length(max=200))
    scope = fields.String(validate=validate.OneOf([each.value for each in Scope]), load_default="all")
    named = fields.String(validate=validate.Length(max=200))
    when = fields.String(validate=validate.Length(max=20_000))
    timezone = fields.String(validate=validate.Length(max=200))
    minutes = fields.String(validate=validate.Length(max=200))
    policy = fields.String(validate=validate.Length(max=200))
    note = fields.String(validate=validate.Length(max=2_000))


class BlackoutNamed(InputSchema):
    name = fields.String(required=True, validate=validate.Length(max=200))


class StopsQuery(forms.ActionResultQuery):
    """After a kill switch was turned on, what it stops."""

    scope = fields.String(validate=validate.OneOf(["all", "tag", "destination"]))
    named = fields.String(validate=validate.Length(max=200))


@blueprint.get("/stops")
@forms.takes_query(StopsQuery)
def stops(query: Loaded) -> str:
    stopped = None
    if "scope" in query and (query["scope"] == Scope.ALL or "named" in query):
        target = Target(tenant(), Scope(query["scope"]), query.get("named", ""))
        stopped = services().kill_switches.stopped(target)
    return _page({"timezone": viewer_zone()}, done=query.get("done"), stopped=stopped)


@blueprint.post("/stops/on")
@forms.takes_form(SwitchForm)
def turn_on(form: Loaded) -> Response | tuple[str, int]:
    assembly = services()
    try:
        given = _SWITCH.load(_target(form) | ({"note": form["note"]} if "note" in form else {}))
        target, by = target_of(given, tenant()), caller().name or None
        assembly.kill_switches.turn_on(target, assembly.now(), note=given.get("note"), by=by)
        assembly.kill_switch_notice.look()
    except (ValidationError, InvalidField, Conflict) as error:
        problem = problem_of(error)
        return _page({"timezone": viewer_zone()}, switch_problem=problem, switch_values=form), problem.status
    named: dict[str, Any] = {"scope": target.scope.value} | ({"named": target.name} if target.name else {})
    return to_page("stops", done="stopped", **named)


@blueprint.post("/stops/off")
@forms.takes_form(SwitchOffForm)
def turn_off(form: Loaded) -> Response:
    assembly = services()
    assembly.kill_switches.turn_off(target_of(_target(form), tenant()))
    assembly.kill_switch_notice.look()
    return to_page("stops", done="released")


@blueprint.post("/stops/blackouts")
@forms.takes_form(BlackoutForm)
def save_blackout(form: Loaded) -> Response | tuple[str, int]:
    assembly, now = services(), services().now()
    given: View = {name: form[name] for name in ("timezone", "policy", "note") if name in form}
    if "when" in form:
        given |= trigger_fields(form["when"])
    if "minutes" in form:
        minutes = forms.value_of(fields.Float(), form["minutes"])
        given["duration_seconds"] = minutes * 60 if isinstance(minutes, int | float) else minutes
    try:
        loaded = _BLACKOUT.load(given | _target(form))
        assembly.blackouts.put(blackout_of(whole_id(tenant(), form.get("name", "")), loaded, now), now)
    except (ValidationError, InvalidField, Conflict) as error:
        problem = problem_of(error)
        return _page(form, problem), problem.status
    return to_page("stops", done="saved")


@blueprint.post("/stops/blackouts/delete")
@forms.takes_form(BlackoutNamed)
def delete_blackout(form: Loaded) -> Response:
    services().blackouts.delete(whole_id(tenant(), form["name"]))
    return to_page("stops", done="deleted")


def _target(form: Loaded) -> View:
    """The field of the API that says what is stopped."""
    return {form["scope"]: True if form["scope"] == Scope.ALL else form.get("named", "").strip()}


def _page(
    values: Loaded,
    problem: HttpProblem | None = None,
    *,
    switch_problem: HttpProblem | None = None,
    switch_values: Loaded | None = None,
    done: str | None = None,
    stopped: KillSwitchEffect | None = None,
) -> str:
    assembly, now = services(), services().now()
    errors = forms.errors_by_field(problem, _FORM_NAMES)
    return render_template(
        "stops.html",
        switches=assembly.kill_switches.that_are_on(tenant()),
        blackouts=[blackout_shown(each, now) for each in assembly.blackouts.of(tenant(), now)],
        values=values,
        errors=errors,
        others=forms.other_errors(errors, _SHOWN),
        switch_problem=switch_problem,
        switch_values=switch_values or {},
        done=done,
        stopped=stopped,
        most_held=MOST_HELD,
    )
