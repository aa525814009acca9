"""Past runs of a schedule, made up for: how many there would be, how far it is, and its end."""

from datetime import datetime

from flask import render_template
from marshmallow import Schema, ValidationError, validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.problems import HttpProblem, problem_of
from scheduler_app.api.services import services
from scheduler_app.api.wire.backlog import BackfillInput, backfill_shown
from scheduler_app.api.wire.field_types import LocalOrInstant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.backfill import DEFAULT_RATE, BackfillOverlap
from scheduler_app.domain.errors import Conflict, InvalidField, InvalidRecurrence, NotFound
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.recurrence.zones import instant_at
from scheduler_app.domain.schedule import Schedule
from scheduler_app.usecases.duties.backfills import BackfillProgress, BackfillRequest

#: Runs a second that may be chosen.
RATES = (1.0, DEFAULT_RATE, 100.0)
OVERLAPS = {
    BackfillOverlap.ALLOW: "They run beside each other",
    BackfillOverlap.QUEUE: "Each waits for the end of the one before",
}
_LENGTHS = {"from": 40, "to": 40, "rate": 20, "overlap": 20}
_FORM_NAMES = {"rate_per_second": "rate"}
_REFUSALS = (ValidationError, InvalidField, InvalidRecurrence, Conflict)
_MOMENT = LocalOrInstant(dates=True)

BackfillForm: type[Schema] = InputSchema.from_dict(
    forms.text_fields(_LENGTHS)
    | {
        "every": fields.String(validate=validate.Equal("yes")),
        "once": fields.String(validate=validate.Regexp(r"[0-9a-f]{24}\Z")),
        "confirmed": fields.String(validate=validate.Equal("yes")),
        "seen": fields.String(validate=validate.Length(max=200)),
    },
    name="BackfillForm",
)


@blueprint.get("/schedules/<schedule:schedule_id>/backfill")
@forms.takes_query(forms.ActionResultQuery)
def backfill(query: Loaded, schedule_id: WholeId) -> str:
    return _page(services().manager.get(schedule_id), {}, done=query.get("done"))


@blueprint.post("/schedules/<schedule:schedule_id>/backfill")
@forms.takes_form(BackfillForm)
def ask_backfill(form: Loaded, schedule_id: WholeId) -> Response | str | tuple[str, int]:
    """Shows how many runs there would be; makes them when that was seen."""
    assembly = services()
    found, now = assembly.manager.get(schedule_id), assembly.now()
    try:
        asked = _asked(form, found, now)
        if "confirmed" not in form or form.get("seen", _choice(form)) != _choice(form):
            return _page(found, form, plan=assembly.backfills.plan(found, asked, now))
        assembly.backfills.start(found, asked, now, request_seed=forms.seed_of(form))
    except _REFUSALS as error:
        problem = problem_of(error)
        return _page(found, form, problem=problem), problem.status
    return to_page("backfill", schedule_id=schedule_id, done="begun")


@blueprint.post("/schedules/<schedule:schedule_id>/backfill/cancel")
@forms.takes_form(forms.NoFields)
def cancel_backfill(_: Loaded, schedule_id: WholeId) -> Response:
    services().backfills.cancel(schedule_id, services().now())
    return to_page("backfill", schedule_id=schedule_id, done="cancelled")


def _asked(form: Loaded, found: Schedule, now: datetime) -> BackfillRequest:
    """Times without an offset are in the schedule's zone. Raises ValidationError, InvalidField."""
    given: View = {"only_missing": "every" not in form}
    for name in ("from", "to"):
        if text := form.get(name, "").strip():
            given[name] = _instant(name, text, found.trigger.timezone)
    if "rate" in form:
        given["rate_per_second"] = forms.value_of(fields.Float(), form["rate"])
    if "overlap" in form:
        given["overlap"] = form["overlap"]
    loaded = BackfillInput().load(given)
    return BackfillRequest(
        loaded["since"],
        loaded.get("until", now),
        loaded["rate_per_second"],
        BackfillOverlap(loaded["overlap"]),
        loaded["only_missing"],
    )


def _choice(form: Loaded) -> str:
    """The form's lengths and interval as one text. The page counts the runs again, and makes none yet, when a
    person has changed them since the number was shown."""
    return " ".join(form.get(name, "").strip() or "-" for name in (*_LENGTHS, "every"))


def _instant(name: str, text: str, zone: str) -> str:
    try:
        moment: datetime = _MOMENT.deserialize(text)
    except ValidationError as error:
        raise ValidationError({name: error.messages}) from None
    return (moment if moment.tzinfo else instant_at(moment, zone)).isoformat()


def _page(
    found: Schedule,
    values: Loaded,
    *,
    plan: BackfillProgress | None = None,
    problem: HttpProblem | None = None,
    done: str | None = None,
) -> str:
    errors = forms.errors_by_field(problem, _FORM_NAMES)
    values = {"rate": f"{DEFAULT_RATE:g}", "overlap": BackfillOverlap.ALLOW.value, **values}
    return render_template(
        "backfill.html",
        schedule=found,
        values=values,
        seen=_choice(values),
        errors=errors,
        others=forms.other_errors(errors, _LENGTHS),
        rates=[(f"{each:g}", f"{each:g} a second") for each in RATES],
        overlaps=[(each.value, words) for each, words in OVERLAPS.items()],
        plan=backfill_shown(plan) if plan else None,
        progress=_progress(found),
        once=values.get("once") or services().creation.new_seed(),
        done=done,
    )


def _progress(found: Schedule) -> View | None:
    """Of the schedule's newest backfill."""
    try:
        return backfill_shown(services().backfills.progress(found.id))
    except NotFound:
        return None
