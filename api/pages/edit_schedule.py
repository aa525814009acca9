"""The pages that make a schedule, with a preview, and edit one, with what the edit would change."""

import hashlib
import json
from dataclasses import dataclass

from flask import render_template, url_for
from marshmallow import ValidationError, validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api import request_limits
from scheduler_app.api.acts import for_reason
from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.destination_picker import with_new_destination
from scheduler_app.api.pages.forms import NoFields, seed_of, takes_form, takes_query
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.pages.schedule_form import (
    ScheduleForm,
    changes_of,
    editor,
    request_of,
    test_called,
    texts_of,
)
from scheduler_app.api.pages.times import viewer_zone
from scheduler_app.api.pages.when import NotPicked, picked_recurrence
from scheduler_app.api.pages.when_preview import changed_months, is_part, when_previewed
from scheduler_app.api.problems import HttpProblem, problem_of
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.field_types import ScheduleId
from scheduler_app.api.wire.schedule import NewSchedule, ScheduleInput, schedule_shown
from scheduler_app.domain.errors import (
    Conflict,
    InvalidField,
    InvalidRecurrence,
    QuotaExceeded,
    StaleVersion,
)
from scheduler_app.domain.http_action import HttpAction
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.masking import MASK, has_masked_query, split_query
from scheduler_app.domain.schedule import MAX_NAME, Schedule
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.usecases.questions.change_preview import edit_effect

_NEW_SCHEDULE = NewSchedule()


class NewScheduleQuery(NoFields):
    name = fields.String(validate=validate.Length(max=1_000))
    copy = ScheduleId()
    """The schedule with whose values the form begins."""


@blueprint.get("/new-schedule")
@takes_query(NewScheduleQuery)
def new_schedule(query: Loaded) -> str:
    values: Loaded = {"once": services().creation.new_seed(), "timezone": viewer_zone()}
    source = query.pop("copy", None)
    if source is None:
        return _new_form({**values, **query})
    copied = _copy_of(services().manager.get(source))
    return _new_form({**values, **copied.values, **query}, copied=copied)


@blueprint.post("/new-schedule")
@takes_form(ScheduleForm)
def save_schedule(form: Loaded) -> Response | tuple[str, int]:
    assembly = services()
    try:
        _, draft = _NEW_SCHEDULE.load(request_of(form))
        schedule = assembly.creation.create(
            tenant(),
            draft,
            assembly.now(),
            request_seed=seed_of(form),
            hops=request_limits.request_hops(),
        )
    except (ValidationError, InvalidField, Conflict, QuotaExceeded) as error:
        problem = problem_of(error)
        return _new_form(form, problem), problem.status
    return to_page("schedule", schedule_id=schedule.id, done="created")


@blueprint.post("/new-schedule/preview")
@takes_form(ScheduleForm)
def preview_when(form: Loaded) -> str:
    return render_template("preview.html", **when_previewed(form)) if is_part() else _new_form(form)


@blueprint.post("/new-schedule/pick")
@takes_form(ScheduleForm)
def pick(form: Loaded) -> str:
    """What was picked, as text for the field "When"; the page writes it there."""
    try:
        return render_template("picked.html", text=picked_recurrence(form))
    except NotPicked as error:
        return render_template("picked.html", wrong=str(error))


@blueprint.post("/new-schedule/test-call")
@takes_form(ScheduleForm)
def test_new(form: Loaded) -> str:
    assembly = services()
    wanted = {"name": "test", "when": "on demand", **{name: form[name] for name in form if name != "when"}}
    try:
        _, draft = _NEW_SCHEDULE.load(request_of(wanted))
        dry = assembly.dry_run()
        schedule = dry.creation.create(tenant(), draft, assembly.now(), hops=request_limits.request_hops())
    except (ValidationError, InvalidField, Conflict, QuotaExceeded) as error:
        return render_template("tested.html", refusal=problem_of(error).detail)
    return test_called(schedule)


@blueprint.post("/new-schedule/destination")
@takes_form(ScheduleForm)
def add_destination(form: Loaded) -> str | tuple[str, int]:
    """Makes a destination, and goes on with the form that names it."""
    form, problem = with_new_destination(form)
    return (_new_form(form, problem), problem.status) if problem else _new_form(form)


@dataclass(frozen=True, slots=True)
class _CopiedSchedule:
    """What the form of a new schedule begins with, copied from another schedule."""

    name: str
    """The other schedule's."""
    values: Loaded
    left_out: list[str]
    """What was not copied, in words: a person fills it in again."""


def _copy_of(found: Schedule) -> _CopiedSchedule:
    """The values of the form, without secrets: a person with the scope `write` could send them to another
    receiver. Raises Conflict for a schedule that this form cannot make."""
    if not isinstance(found.action, HttpAction):
        raise Conflict("this page copies only schedules that call a web address; create others by the API")
    shown = schedule_shown(found, services().now())
    values, left_out = texts_of(shown), list[str]()
    for name, words in (("url", "the query of the web address"), ("path", "the query of the path")):
        if has_masked_query(values[name]):
            values[name] = split_query(values[name])[0]
            left_out.append(words)
    headers = forms.headers_of(values["headers"])
    left_out += [f"the header {name}" for name, value in headers.items() if value == MASK]
    values["headers"] = forms.headers_text({name: each for name, each in headers.items() if each != MASK})
    if values["body"] == MASK:
        values["body"] = ""
        left_out.append("the body")
    if shown.get("signing"):
        left_out.append("the choice “Sign each call”")
    return _CopiedSchedule(found.name, {**values, "name": f"Copy of {found.name}"[:MAX_NAME]}, left_out)


def _new_form(
    values: Loaded, problem: HttpProblem | None = None, *, copied: _CopiedSchedule | None = None
) -> str:
    """The form, with what is wrong beside the fields that it is about."""
    return editor(
        "new_schedule.html",
        values,
        problem,
        copied=copied,
        preview_when=url_for(f"{PAGES}.preview_when"),
        test_call=url_for(f"{PAGES}.test_new"),
        add_destination=url_for(f"{PAGES}.add_destination"),
        **when_previewed(values),
    )


_SCHEDULE_INPUT = ScheduleInput()
_REFUSALS = (ValidationError, InvalidField, Conflict, StaleVersion)


@blueprint.get("/schedules/<schedule:schedule_id>/edit")
@takes_query(NoFields)
def edit_schedule(_: Loaded, schedule_id: WholeId) -> str:
    found = services().manager.get(schedule_id)
    return _edit_form(found, texts_of(_shown(found)) | {"version": found.version})


@blueprint.post("/schedules/<schedule:schedule_id>/edit")
@takes_form(ScheduleForm)
def save_edit(form: Loaded, schedule_id: WholeId) -> Response | tuple[str, int]:
    """Saves an edit whose effect was looked at; shows the effect of one that moves occurrences first."""
    assembly = services()
    found, now = assembly.manager.get(schedule_id), assembly.now()
    try:
        draft, effect = _draft(form, found), _effect(form, found)
        if effect["moves"] and form.get("reviewed") != effect["reviewed"]:
            return _edit_form(found, form, effect=effect), 200
        with for_reason(form.get("edit_note", "")):
            assembly.manager.edit(
                schedule_id,
                draft,
                now,
                version=form.get("version"),
                hops=request_limits.request_hops(),
            )
    except StaleVersion:
        stale = (
            "This schedule was changed since you opened this page: load the page again and repeat your edit"
        )
        return _edit_form(found, form, HttpProblem(409, stale)), 409
    except (ValidationError, InvalidField, Conflict, QuotaExceeded) as error:
        problem = problem_of(error)
        return _edit_form(found, form, problem), problem.status
    return to_page("schedule", schedule_id=schedule_id, done="saved")


@blueprint.post("/schedules/<schedule:schedule_id>/preview")
@takes_form(ScheduleForm)
def preview_edited(form: Loaded, schedule_id: WholeId) -> str:
    found = services().manager.get(schedule_id)
    if is_part():
        return render_template("preview.html", **_previewed(form, found))
    try:
        return _edit_form(found, form, effect=_effect(form, found))
    except _REFUSALS as error:
        return _edit_form(found, form, problem_of(error))


def _previewed(form: Loaded, found: Schedule) -> View:
    """Previews the stored schedule unless the form changes when it fires: a preview of the text alone would
    count an interval from now."""
    try:
        goes_on = _edited(_draft(form, found), found).revision == found.revision
        return when_previewed(form, found if goes_on else None)
    except (*_REFUSALS, InvalidRecurrence):
        return when_previewed(form)


@blueprint.post("/schedules/<schedule:schedule_id>/edit/destination")
@takes_form(ScheduleForm)
def add_destination_to(form: Loaded, schedule_id: WholeId) -> str | tuple[str, int]:
    form, problem = with_new_destination(form)
    found = services().manager.get(schedule_id)
    return (_edit_form(found, form, problem), problem.status) if problem else _edit_form(found, form)


@blueprint.post("/schedules/<schedule:schedule_id>/effect")
@takes_form(ScheduleForm)
def show_effect(form: Loaded, schedule_id: WholeId) -> str:
    found = services().manager.get(schedule_id)
    try:
        return render_template("effect.html", **_effect(form, found))
    except _REFUSALS as error:
        return render_template("effect.html", effect_problem=problem_of(error).detail)


@blueprint.post("/schedules/<schedule:schedule_id>/test-call")
@takes_form(ScheduleForm)
def test_edited(form: Loaded, schedule_id: WholeId) -> str:
    found = services().manager.get(schedule_id)
    try:
        return test_called(_edited(_draft(form, found), found))
    except _REFUSALS as error:
        return render_template("tested.html", refusal=problem_of(error).detail)


def _draft(form: Loaded, found: Schedule) -> ScheduleDraft:
    """Raises ValidationError, InvalidField."""
    _, draft = _SCHEDULE_INPUT.load(changes_of(form, _shown(found)))
    checked: ScheduleDraft = draft
    return checked


def _edited(draft: ScheduleDraft, found: Schedule) -> Schedule:
    """The schedule as the edit would make it. Raises InvalidField, Conflict."""
    dry = services().dry_run()
    return dry.manager.edit(found.id, draft, services().now(), hops=request_limits.request_hops())


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
        "changed_months": changed_months(effect, after.trigger.timezone) if effect.moves else [],
        "moves": effect.moves,
        "reviewed": hashlib.sha256(seen.encode()).hexdigest()[:16],
        "zone": after.trigger.timezone,
    }


def _shown(found: Schedule) -> View:
    return schedule_shown(found, services().now())


def _edit_form(
    found: Schedule, values: Loaded, problem: HttpProblem | None = None, effect: View | None = None
) -> str:
    return editor(
        "edit_schedule.html",
        values,
        problem,
        schedule=_shown(found),
        has_request=isinstance(found.action, HttpAction),
        preview_when=url_for(f"{PAGES}.preview_edited", schedule_id=found.id),
        test_call=url_for(f"{PAGES}.test_edited", schedule_id=found.id),
        add_destination=url_for(f"{PAGES}.add_destination_to", schedule_id=found.id),
        **_previewed(values, found),
        **(effect or {}),
    )
