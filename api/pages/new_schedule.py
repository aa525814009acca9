"""The form that makes a schedule, with a preview while it is filled in."""

from datetime import datetime

from flask import Blueprint, redirect, render_template, url_for
from marshmallow import ValidationError
from werkzeug.wrappers import Response

from scheduler_app.api import hop_limit
from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages.editor import editor, test_called
from scheduler_app.api.pages.forms import Nothing, problem_of, seed_of, takes_form, takes_query
from scheduler_app.api.pages.picker import NotPicked, picked
from scheduler_app.api.pages.picker_reading import COMPARED, Fields, read_back
from scheduler_app.api.pages.schedule_form import ScheduleForm, request_of
from scheduler_app.api.pages.when import trigger_fields
from scheduler_app.api.problems import Problem
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire.jittered import Jitter
from scheduler_app.api.wire.preview import PreviewInput
from scheduler_app.api.wire.previewed import previewed, previewed_input
from scheduler_app.api.wire.schedule_input import NewSchedule
from scheduler_app.domain.errors import Conflict, InvalidField, InvalidRecurrence
from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.schedule import Schedule

OCCURRENCES = 5
_NEW_SCHEDULE, _PREVIEW = NewSchedule(), PreviewInput()


def register(blueprint: Blueprint) -> None:
    blueprint.add_url_rule("/new-schedule", view_func=new_schedule, methods=["GET"])
    blueprint.add_url_rule("/new-schedule", view_func=save_schedule, methods=["POST"])
    blueprint.add_url_rule("/new-schedule/preview", view_func=preview_when, methods=["POST"])
    blueprint.add_url_rule("/new-schedule/pick", view_func=pick, methods=["POST"])
    blueprint.add_url_rule("/new-schedule/test-call", view_func=test_new, methods=["POST"])


@takes_query(Nothing)
def new_schedule(_: Loaded) -> str:
    once = services().store.schedules.new_id(tenant=tenant())
    return _form({"once": once, "timezone": "UTC"})


@takes_form(ScheduleForm)
def save_schedule(form: Loaded) -> Response | tuple[str, int]:
    made = services()
    try:
        _, draft = _NEW_SCHEDULE.load(request_of(form))
        schedule = made.creation.create(
            draft,
            made.now(),
            tenant=tenant(),
            request_seed=seed_of(form),
            hops=hop_limit.request_hops(),
        )
    except (ValidationError, InvalidField) as error:
        return _form(form, problem_of(error)), 422
    except Conflict as error:
        return _form(form, Problem(409, str(error))), 409
    return redirect(url_for(f"{PAGES}.schedule", schedule_id=schedule.id, done="created"), 303)


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
        preview = previewed(
            goes_on.trigger, goes_on.calendar, goes_on.recurrence(), now, given, Jitter(0.0, None)
        )
    return render_template(
        "preview.html",
        preview=preview,
        most=OCCURRENCES,
        ways=_other_ways(form["when"], preview),
        picks=picks,
    )


@takes_form(ScheduleForm)
def pick(form: Loaded) -> str:
    """What was picked, as text for the field "When"; the page writes it there."""
    try:
        return render_template("picked.html", text=picked(form))
    except NotPicked as error:
        return render_template("picked.html", wrong=str(error))


@takes_form(ScheduleForm)
def test_new(form: Loaded) -> str:
    made = services()
    wanted = {"name": "test", "when": "on demand", **{name: form[name] for name in form if name != "when"}}
    try:
        _, draft = _NEW_SCHEDULE.load(request_of(wanted))
        dry = made.dry_run()
        schedule = dry.creation.create(draft, made.now(), tenant=tenant(), hops=hop_limit.request_hops())
    except (ValidationError, InvalidField) as error:
        problem = problem_of(error)
        return render_template("tested.html", refusal=problem.detail)
    except Conflict as error:
        return render_template("tested.html", refusal=str(error))
    return test_called(schedule)


def _preview(text: str, form: Loaded, now: datetime) -> Loaded:
    """Of the text of the field "When", beside the form's others. Raises ValidationError, InvalidField."""
    given: View = {"limit": COMPARED, **trigger_fields(text)}
    given |= {name: form[name] for name in ("timezone", "calendar") if name in form}
    return previewed_input(_PREVIEW.load(given), services().store, now, tenant=tenant())


def _picks(form: Loaded, preview: Loaded, now: datetime) -> Fields | None:
    """The picker's fields that mean the same as the text, as far as the next occurrences tell."""
    fields = read_back(str(preview.get("recurrence", "")), preview["occurrences"])
    if fields is None:
        return None
    try:
        same = _preview(picked(fields), form, now)
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


def _form(values: Loaded, problem: Problem | None = None) -> str:
    """The form, with what is wrong beside the fields that it is about."""
    return editor(
        "new_schedule.html",
        values,
        problem,
        preview_when=url_for(f"{PAGES}.preview_when"),
        test_call=url_for(f"{PAGES}.test_new"),
    )
