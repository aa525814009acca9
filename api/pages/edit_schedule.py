"""The form that edits a schedule, and what the edit would change, before it is saved."""

import hashlib
import json

from flask import Blueprint, g, redirect, render_template, url_for
from marshmallow import ValidationError
from werkzeug.wrappers import Response

from scheduler_app.api import hop_limit
from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages.editor import editor, test_called
from scheduler_app.api.pages.forms import Nothing, problem_of, takes_form, takes_query
from scheduler_app.api.pages.new_schedule import when_previewed
from scheduler_app.api.pages.schedule_form import ScheduleForm, changes_of, texts_of
from scheduler_app.api.problems import Problem
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire.presenters import shown
from scheduler_app.api.wire.schedule_input import ScheduleInput
from scheduler_app.domain.draft import Draft
from scheduler_app.domain.errors import Conflict, InvalidField, InvalidRecurrence, StaleVersion
from scheduler_app.domain.http_action import HttpAction
from scheduler_app.domain.schedule import Schedule
from scheduler_app.usecases.edit_effect import edit_effect

_SCHEDULE_INPUT = ScheduleInput()
_REFUSALS = (ValidationError, InvalidField, Conflict, StaleVersion)


def register(blueprint: Blueprint) -> None:
    path = "/schedules/<schedule:schedule_id>"
    blueprint.add_url_rule(f"{path}/edit", view_func=edit_schedule, methods=["GET"])
    blueprint.add_url_rule(f"{path}/edit", view_func=save_edit, methods=["POST"])
    blueprint.add_url_rule(f"{path}/preview", view_func=preview_edited, methods=["POST"])
    blueprint.add_url_rule(f"{path}/effect", view_func=show_effect, methods=["POST"])
    blueprint.add_url_rule(f"{path}/test-call", view_func=test_edited, methods=["POST"])


@takes_query(Nothing)
def edit_schedule(_: Loaded, schedule_id: str) -> str:
    found = services().manager.get(schedule_id, tenant=tenant())
    return _form(found, texts_of(_shown(found)) | {"version": found.version})


@takes_form(ScheduleForm)
def save_edit(form: Loaded, schedule_id: str) -> Response | tuple[str, int]:
    """Saves an edit whose effect was looked at; shows the effect of one that moves occurrences first."""
    made = services()
    found, now = made.manager.get(schedule_id, tenant=tenant()), made.now()
    try:
        draft, effect = _draft(form, found), _effect(form, found)
        if effect["moves"] and form.get("reviewed") != effect["reviewed"]:
            return _form(found, form, effect=effect), 200
        g.edit_note = form.get("edit_note", "")
        made.manager.edit(
            schedule_id,
            draft,
            now,
            tenant=tenant(),
            version=form.get("version"),
            hops=hop_limit.request_hops(),
        )
    except (ValidationError, InvalidField) as error:
        return _form(found, form, problem_of(error)), 422
    except StaleVersion:
        stale = (
            "This schedule was changed since you opened this page: load the page again and repeat your edit"
        )
        return _form(found, form, Problem(409, stale)), 409
    except Conflict as error:
        return _form(found, form, Problem(409, str(error))), 409
    return redirect(url_for(f"{PAGES}.schedule", schedule_id=schedule_id, done="saved"), 303)


@takes_form(ScheduleForm)
def preview_edited(form: Loaded, schedule_id: str) -> str:
    """Previews the stored schedule unless the form changes when it fires: a preview of the text alone would
    count an interval from now."""
    found = services().manager.get(schedule_id, tenant=tenant())
    try:
        goes_on = _edited(_draft(form, found), found).revision == found.revision
        return when_previewed(form, found if goes_on else None)
    except (*_REFUSALS, InvalidRecurrence):
        return when_previewed(form)


@takes_form(ScheduleForm)
def show_effect(form: Loaded, schedule_id: str) -> str:
    found = services().manager.get(schedule_id, tenant=tenant())
    try:
        return render_template("effect.html", **_effect(form, found))
    except _REFUSALS as error:
        return render_template("effect.html", effect_problem=_words(error))


@takes_form(ScheduleForm)
def test_edited(form: Loaded, schedule_id: str) -> str:
    found = services().manager.get(schedule_id, tenant=tenant())
    try:
        return test_called(_edited(_draft(form, found), found))
    except _REFUSALS as error:
        return render_template("tested.html", refusal=_words(error))


def _draft(form: Loaded, found: Schedule) -> Draft:
    """Raises ValidationError, InvalidField."""
    _, draft = _SCHEDULE_INPUT.load(changes_of(form, _shown(found)))
    checked: Draft = draft
    return checked


def _edited(draft: Draft, found: Schedule) -> Schedule:
    """The schedule as the edit would make it. Raises InvalidField, Conflict."""
    dry = services().dry_run()
    return dry.manager.edit(found.id, draft, services().now(), tenant=tenant(), hops=hop_limit.request_hops())


def _effect(form: Loaded, found: Schedule) -> View:
    """What `effect.html` shows. Raises as `_draft` and `_edited` do."""
    after = _edited(_draft(form, found), found)
    try:
        effect = edit_effect(services().store, found, after, services().now())
    except InvalidRecurrence as error:
        raise Conflict(f"what this changes takes too long to tell: {error}") from None
    # Computed from what is asked for: an interval that counts from now has other occurrences each second.
    seen = json.dumps([found.version, changes_of(form, _shown(found))], sort_keys=True)
    return {
        "effect": {"it": effect, "revised": after.revision != found.revision, "moves": effect.moves},
        "changed": after.version != found.version,
        "moves": effect.moves,
        "reviewed": hashlib.sha256(seen.encode()).hexdigest()[:16],
        "zone": after.trigger.timezone,
    }


def _words(error: Exception) -> str:
    return problem_of(error).detail if isinstance(error, ValidationError | InvalidField) else str(error)


def _shown(found: Schedule) -> View:
    return shown(found, services().now())


def _form(found: Schedule, values: Loaded, problem: Problem | None = None, effect: View | None = None) -> str:
    return editor(
        "edit_schedule.html",
        values,
        problem,
        schedule=_shown(found),
        has_request=isinstance(found.action, HttpAction),
        preview_when=url_for(f"{PAGES}.preview_edited", schedule_id=found.id),
        test_call=url_for(f"{PAGES}.test_edited", schedule_id=found.id),
        **(effect or {}),
    )
