"""The pages that make a schedule, with a preview, and edit one, with what the edit would change."""

import hashlib
import json
from datetime import datetime

from flask import g, render_template, url_for
from marshmallow import ValidationError
from werkzeug.wrappers import Response

from scheduler_app.api import request_limits
from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded, View
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
from scheduler_app.api.pages.when import (
    COMPARED_OCCURRENCES,
    Fields,
    NotPicked,
    picked_recurrence,
    picker_fields,
    trigger_fields,
)
from scheduler_app.api.problems import HttpProblem, problem_of
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.preview import Jitter, PreviewInput, preview_shown, unsaved_preview_shown
from scheduler_app.api.wire.schedule import NewSchedule, ScheduleInput, schedule_shown
from scheduler_app.domain.errors import Conflict, InvalidField, InvalidRecurrence, StaleVersion
from scheduler_app.domain.http_action import HttpAction
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.usecases.questions.change_preview import edit_effect

OCCURRENCES = 5
_NEW_SCHEDULE, _PREVIEW = NewSchedule(), PreviewInput()


@blueprint.get("/new-schedule")
@takes_query(NoFields)
def new_schedule(_: Loaded) -> str:
    once = services().creation.new_seed()
    return _new_form({"once": once, "timezone": viewer_zone()})


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
    except (ValidationError, InvalidField, Conflict) as error:
        problem = problem_of(error)
        return _new_form(form, problem), problem.status
    return to_page("schedule", schedule_id=schedule.id, done="created")


@blueprint.post("/new-schedule/preview")
@takes_form(ScheduleForm)
def preview_when(form: Loaded) -> str:
    return when_previewed(form)


def when_previewed(form: Loaded, goes_on: Schedule | None = None) -> str:
    """What the field "When" means: from now on, or as the schedule `goes_on`, whose times the form keeps."""
    if not form.get("when"):
        return render_template("preview.html")
    # A phrase counts from the second that has begun, `every_seconds` from the next one; the picker compares
    # both.
    now = services().now().replace(microsecond=0)
    try:
        preview = _preview(form["when"], form, now)
    except (ValidationError, InvalidField) as error:
        return render_template("preview.html", problem=problem_of(error))
    picks = _picks(form, preview, now)
    if goes_on is not None:
        given = {"limit": OCCURRENCES}
        preview = preview_shown(
            goes_on.trigger, goes_on.calendar, goes_on.recurrence(), now, given, Jitter(0.0, None)
        )
    return render_template(
        "preview.html",
        preview=preview,
        most=OCCURRENCES,
        ways=_other_ways(form["when"], preview),
        picks=picks,
    )


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
    except (ValidationError, InvalidField, Conflict) as error:
        return render_template("tested.html", refusal=problem_of(error).detail)
    return test_called(schedule)


def _preview(text: str, form: Loaded, now: datetime) -> Loaded:
    """Of the text of the field "When", beside the form's others. Raises ValidationError, InvalidField."""
    given: View = {"limit": COMPARED_OCCURRENCES, **trigger_fields(text)}
    given |= {name: form[name] for name in ("timezone", "calendar") if name in form}
    return unsaved_preview_shown(tenant(), _PREVIEW.load(given), services().calendars, now)


def _picks(form: Loaded, preview: Loaded, now: datetime) -> Fields | None:
    """The picker's fields that mean the same as the text, as far as the next occurrences tell."""
    fields = picker_fields(str(preview.get("recurrence", "")), preview["occurrences"])
    if fields is None:
        return None
    try:
        same = _preview(picked_recurrence(fields), form, now)
    except (ValidationError, InvalidField):
        return None
    times, others = ([each["run_time"] for each in one["occurrences"]] for one in (preview, same))
    return fields if times == others else None


def _other_ways(text: str, preview: View) -> list[tuple[str, str]]:
    """The same rule in the other notations, each with its name."""
    # Imported when a rule is first shown, so that the API starts without the modules for cron.
    from scheduler_app.domain.triggers.cron.as_cron import as_cron

    written = preview.get("recurrence")
    if not isinstance(written, str):
        return []
    ways = [("RRULE", written)]
    try:
        found = as_cron(Recurrence.parse(written, created_at=services().now()))
    except InvalidRecurrence:
        found = None
    if found:
        ways.append(("cron", found))
    return [(name, way) for name, way in ways if way.split() != text.split()]


def _new_form(values: Loaded, problem: HttpProblem | None = None) -> str:
    """The form, with what is wrong beside the fields that it is about."""
    return editor(
        "new_schedule.html",
        values,
        problem,
        preview_when=url_for(f"{PAGES}.preview_when"),
        test_call=url_for(f"{PAGES}.test_new"),
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
        g.edit_note = form.get("edit_note", "")
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
    except (ValidationError, InvalidField, Conflict) as error:
        problem = problem_of(error)
        return _edit_form(found, form, problem), problem.status
    return to_page("schedule", schedule_id=schedule_id, done="saved")


@blueprint.post("/schedules/<schedule:schedule_id>/preview")
@takes_form(ScheduleForm)
def preview_edited(form: Loaded, schedule_id: WholeId) -> str:
    """Previews the stored schedule unless the form changes when it fires: a preview of the text alone would
    count an interval from now."""
    found = services().manager.get(schedule_id)
    try:
        goes_on = _edited(_draft(form, found), found).revision == found.revision
        return when_previewed(form, found if goes_on else None)
    except (*_REFUSALS, InvalidRecurrence):
        return when_previewed(form)


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
        **(effect or {}),
    )
