"""What fails, by its cause: whom it hits, since when; it is sent again, dismissed or silenced."""

from datetime import datetime, timedelta
from typing import Any

from flask import g, render_template
from marshmallow import validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.formatting import names_of, names_of_ids
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.pages.issues import failure_title, issue_of_failure, trend_of
from scheduler_app.api.scopes import may
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.failure import CauseChoice, chosen_causes
from scheduler_app.api.wire.field_types import Cursor
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.cause import MAX_NOTE, Cause, CauseKind, CauseState, subject_shown
from scheduler_app.domain.cause_match import MAX_VALUES, CauseMatch
from scheduler_app.domain.errors import InvalidField, NotFound
from scheduler_app.domain.http_action import destination_of_key
from scheduler_app.domain.ids import WholeId, name_of, whole_id
from scheduler_app.domain.redrive import MAX_PLANNED, Redrive, RedriveChoice, RedriveTime
from scheduler_app.domain.silence import Silence
from scheduler_app.store.paging import PageRequest
from scheduler_app.usecases.deeds.failures import CauseReport
from scheduler_app.usecases.duties.redrives import RedriveAsked, RedrivePlan

ROWS = 30
#: Schedules that a failure names, and runs of a redrive.
NAMED, SHOWN = 12, 3
#: Dead letters of a failure whose page shows at once what would be sent; of more, a button does.
MOST_PREVIEWED = 500
#: Requests a second that may be chosen; without one, they are sent as fast as may be.
RATES = (1.0, 5.0, 20.0, 100.0)
SILENCE = timedelta(hours=2)
CHOICES = {
    RedriveChoice.ALL: "All",
    RedriveChoice.NEWEST: "The newest of each schedule",
    RedriveChoice.NOT_TOO_LATE: "All that are not too late",
}
TIMES = {RedriveTime.NOW: "Now", RedriveTime.RECEIVER_ANSWERS: "When the receiver answers again"}


class FailuresQuery(forms.NoFields):
    state = fields.String(
        validate=validate.OneOf([each.value for each in CauseState]), load_default=CauseState.OPEN.value
    )
    tag = fields.String(validate=validate.Length(max=64))
    cursor = Cursor()


class FailureQuery(forms.ActionResultQuery):
    redrive = fields.String(validate=validate.Length(max=64))
    """The id of one that was begun here."""


class SendAgainForm(InputSchema):
    which = fields.String(validate=validate.OneOf(list(RedriveChoice)), load_default=RedriveChoice.ALL)
    when = fields.String(validate=validate.OneOf(list(RedriveTime)), load_default=RedriveTime.NOW)
    rate = fields.Float(validate=validate.OneOf(RATES))
    once = fields.String(validate=validate.Length(max=64))
    confirmed = fields.String(validate=validate.Equal("yes"))
    """The person has seen how many runs will be sent."""
    seen = fields.String(validate=validate.Length(max=100))
    """The choice of which that was said: another one is shown first."""


class DismissForm(InputSchema):
    note = fields.String(validate=validate.Length(max=MAX_NOTE), load_default="")
    events = fields.String(validate=validate.Equal("yes"))
    """Whether the runs that gave up are given up for good, too."""


@blueprint.get("/failures")
@forms.takes_query(FailuresQuery)
def failures(query: Loaded) -> str:
    asked = services()
    now = asked.now()
    found = asked.failures.page(
        tenant(), PageRequest(limit=ROWS, after=query.get("cursor")), chosen_causes(_chosen(query))
    )
    # Failures that last come before those that are over and left dead letters.
    rows = sorted(found.rows, key=lambda each: _place(each.cause))
    return render_template(
        "failures.html",
        issues=[issue_of_failure(each, now) for each in rows],
        states=list(CauseState),
        state=query["state"],
        tag=query.get("tag", ""),
        onward=forms.next_page_query(found.next),
    )


def _place(cause: Cause) -> tuple[object, ...]:
    """The newest first; those of one instant by what they are about."""
    return (not cause.is_living, -cause.since.timestamp(), cause.key.kind, cause.key.failure)


def _chosen(query: Loaded) -> Loaded:
    given = {"state": query["state"]} | ({"tag": query["tag"]} if "tag" in query else {})
    chosen: Loaded = CauseChoice().load(given)
    return chosen


@blueprint.get("/failures/<id:failure_id>")
@forms.takes_query(FailureQuery)
def failure(query: Loaded, failure_id: WholeId) -> str:
    return _page(failure_id, done=query.get("done"), redrive=_redrive(query.get("redrive")))


@blueprint.post("/failures/<id:failure_id>/send-again")
@forms.takes_form(SendAgainForm)
def send_failure_again(form: Loaded, failure_id: WholeId) -> Response | str | tuple[str, int]:
    """Shows how many would be sent, and the first of them; sends them when that was seen."""
    assembly, now = services(), services().now()
    asked = RedriveAsked(
        cause_id=failure_id,
        choice=RedriveChoice(form["which"]),
        time=RedriveTime(form["when"]),
        rate_per_second=form.get("rate"),
    )
    try:
        if "confirmed" not in form or form.get("seen", _choice(asked)) != _choice(asked):
            return _page(failure_id, asked=asked, plan=assembly.redrives.plan(tenant(), asked, now))
        made = assembly.redrives.start(tenant(), asked, now, request_seed=forms.seed_of(form))
    except InvalidField as error:
        return _page(failure_id, asked=asked, refusal=error.message), 422
    return to_page("failure", failure_id=failure_id, redrive=name_of(made.id))


@blueprint.post("/failures/<id:failure_id>/dismiss")
@forms.takes_form(DismissForm)
def dismiss_failure(form: Loaded, failure_id: WholeId) -> Response:
    assembly = services()
    assembly.failures.dismiss(
        failure_id, assembly.now(), by=g.get("key_name", ""), note=form["note"], events="events" in form
    )
    assembly.open_failures.forget(tenant())
    return to_page("failure", failure_id=failure_id, done="dismissed")


@blueprint.post("/failures/<id:failure_id>/silence")
@forms.takes_form(forms.NoFields)
def silence_failure(_: Loaded, failure_id: WholeId) -> Response:
    """Silences the failure's destination, or else its schedules, for `SILENCE`."""
    assembly, now = services(), services().now()
    cause = assembly.failures.get(failure_id).cause
    silence = Silence(
        id=whole_id(tenant(), f"failure-{name_of(failure_id)}"),
        match=silenced_by(cause),
        until=now + SILENCE,
        reason=f"known: {failure_title(cause)}"[:MAX_NOTE],
        created_at=now,
        by=g.get("key_name") or "",
    )
    assembly.silences.put(silence, now)
    return to_page("failure", failure_id=failure_id, done="silenced")


def silenced_by(cause: Cause) -> CauseMatch:
    """What a silence of this failure is about: its destination, or else its schedules."""
    if destination := destination_of_key(cause.key.subject):
        return CauseMatch(destinations=(name_of(destination),))
    if cause.key.kind is CauseKind.STALLED:
        return CauseMatch(schedules=(name_of(cause.key.subject),))
    return CauseMatch(schedules=tuple(name_of(each) for each in cause.schedules.names[:MAX_VALUES]))


def _redrive(redrive_id: str | None) -> Redrive | None:
    """A redrive of this tenant that is still known."""
    try:
        return services().redrives.get(whole_id(tenant(), redrive_id)) if redrive_id else None
    except (NotFound, InvalidField):
        return None


def _page(
    failure_id: WholeId,
    *,
    asked: RedriveAsked | None = None,
    plan: RedrivePlan | None = None,
    refusal: str = "",
    done: str | None = None,
    redrive: Redrive | None = None,
) -> str:
    assembly, now = services(), services().now()
    report = assembly.failures.get(failure_id)
    cause = report.cause
    asked = asked or RedriveAsked(failure_id, RedriveChoice.ALL, RedriveTime.NOW, None)
    is_quick = 0 < report.counts.dead <= MOST_PREVIEWED and may(KeyScope.TRIGGER)
    if plan is None and is_quick and not refusal:
        plan = _plan(asked, now)
    shown = plan.shown[:SHOWN] if plan else ()
    return render_template(
        "failure.html",
        report=report,
        cause=cause,
        issue=issue_of_failure(report, now),
        subject=subject_shown(cause),
        schedules=cause.schedules.names[:NAMED],
        names=names_of_ids(cause.schedules.names[:NAMED]) | names_of([*report.events, *shown]),
        answer=_answer(report),
        trend=trend_of(cause, now),
        may_be_silenced=bool(silenced_by(cause).schedules or silenced_by(cause).destinations),
        asked=asked,
        seen=_choice(asked),
        is_quick=is_quick,
        plan=plan,
        shown=shown,
        refusal=refusal,
        once=assembly.creation.new_seed(),
        redrive=redrive,
        done=done,
        choices=CHOICES,
        times=TIMES,
        rates=RATES,
        most=MAX_PLANNED,
    )


def _plan(asked: RedriveAsked, now: datetime) -> RedrivePlan | None:
    """None of a failure whose runs cannot be sent again from here."""
    try:
        return services().redrives.plan(tenant(), asked, now)
    except InvalidField:
        return None


def _choice(asked: RedriveAsked) -> str:
    return f"{asked.choice} {asked.time} {asked.rate_per_second or ''}"


def _answer(report: CauseReport) -> Any:
    """The newest attempt of its newest event that says something."""
    attempts = (attempt for event in report.events for attempt in reversed(event.attempts))
    return next((each for each in attempts if each.get("snippet") or each.get("status_code")), None)
