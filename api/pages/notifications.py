"""Who is told of failures, and what is not told for a while."""

from datetime import timedelta

from flask import g, render_template, url_for
from marshmallow import ValidationError, validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api import idempotency
from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.problems import HttpProblem, problem_of
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.notification import (
    MatchInput,
    NotificationInput,
    notification_shown,
    rule_of,
    silence_of,
    silence_shown,
)
from scheduler_app.domain.errors import Conflict, InvalidField
from scheduler_app.domain.ids import whole_id
from scheduler_app.domain.notification_rule import USUAL, Told

_LENGTHS = {"name": 200, "to": 10_000, "tags": 2_000, "destinations": 2_000, "after": 20, "remind": 20}
_FORM_NAMES = {"match": "tags", "match/destinations": "destinations"}
_FORM_NAMES |= {"after_seconds": "after", "remind_seconds": "remind"}
#: What a rule may tell, in words for people.
TOLD = {
    "failing": "a receiver fails",
    "late": "runs are late",
    "stalled": "a schedule has no next run",
    "unserved": "a queue has no worker",
    "missed": "runs were missed",
    "overrunning": "a run takes too long",
    "not_completed": "a run was not done in time",
    "no_success": "a schedule has had no success",
    "key_expiring": "a key expires within a week",
    "paused_by_failures": "a schedule was paused by its failures",
    "breaker": "calls of a destination were stopped because it fails",
    "stored_document_set_aside": "something stored cannot be read",
    "finished": "a schedule has finished",
    "kill_switch": "a stop switch is turned on",
    "machinery": "a part of the machinery fails",
    "dead_letter": "a run gave up",
    "recovered": "it is over",
}
_REFUSALS = (ValidationError, InvalidField, Conflict)
LONGEST_HOURS = 24 * 7


class NotificationForm(InputSchema):
    class Meta(InputSchema.Meta):
        include = forms.text_fields(_LENGTHS)

    on = fields.List(fields.String(validate=validate.OneOf([each.value for each in Told])), load_default=[])


class SilenceForm(InputSchema):
    silence = fields.String(validate=validate.Length(max=200))
    silenced_tags = fields.String(validate=validate.Length(max=2_000))
    hours = fields.Float(validate=validate.Range(0, LONGEST_HOURS, min_inclusive=False), load_default=2.0)
    reason = fields.String(validate=validate.Length(max=2_000))


class Named(InputSchema):
    name = fields.String(required=True, validate=validate.Length(max=200))


@blueprint.get("/notifications")
@forms.takes_query(forms.ActionResultQuery)
def notifications(query: Loaded) -> str:
    return _page({"on": [each.value for each in USUAL]}, done=query.get("done"))


@blueprint.post("/notifications")
@forms.takes_form(NotificationForm)
def save_notification(form: Loaded) -> Response | str | tuple[str, int]:
    """Makes one, or sets all of it anew; a signing secret that was generated is shown once."""
    assembly, now = services(), services().now()
    try:
        rule_id = whole_id(tenant(), form.get("name", "").strip())
        asked = rule_of(rule_id, NotificationInput().load(_given(form)), now)
        rule, _, is_signed_anew = assembly.notification_rules.put(asked, now)
    except _REFUSALS as error:
        problem = problem_of(error)
        return _page(form, problem), problem.status
    if is_signed_anew and rule.signing is not None:
        return render_template(
            "signing_secret.html",
            name=f"Notification {form['name']}",
            secret=idempotency.shown_once(rule.signing.secret),
            done="saved",
            onward=url_for(f"{PAGES}.notifications"),
        )
    return to_page("notifications", done="saved")


@blueprint.post("/notifications/test")
@forms.takes_form(Named)
def try_notification(form: Loaded) -> Response:
    services().notification_rules.test(whole_id(tenant(), form["name"]), services().now())
    return to_page("notifications", done="tested")


@blueprint.post("/notifications/delete")
@forms.takes_form(Named)
def delete_notification(form: Loaded) -> Response:
    services().notification_rules.delete(whole_id(tenant(), form["name"]), services().now())
    return to_page("notifications", done="deleted")


@blueprint.post("/notifications/silences")
@forms.takes_form(SilenceForm)
def save_silence(form: Loaded) -> Response | tuple[str, int]:
    assembly, now = services(), services().now()
    tags = forms.listed(form.get("silenced_tags", ""))
    try:
        given: View = {
            "match": MatchInput().load({"tags": tags} if tags else {}),
            "until": now + timedelta(hours=form["hours"]),
            "reason": form.get("reason", ""),
        }
        if not given["reason"]:
            raise InvalidField("reason", "say why: whoever looks sees it")
        silence_id = whole_id(tenant(), form.get("silence", "").strip())
        assembly.silences.put(silence_of(silence_id, given, now, g.get("key_name") or ""), now)
    except _REFUSALS as error:
        problem = problem_of(error)
        return _page({"on": [each.value for each in USUAL], **form}, silence_problem=problem), problem.status
    return to_page("notifications", done="silenced")


@blueprint.post("/notifications/silences/end")
@forms.takes_form(Named)
def end_silence(form: Loaded) -> Response:
    services().silences.delete(whole_id(tenant(), form["name"]))
    return to_page("notifications", done="deleted")


def _given(form: Loaded) -> View:
    """The body of the API that means the same."""
    given: View = {"to": [_channel(line) for line in form.get("to", "").splitlines() if line.strip()]}
    match = {
        name: forms.listed(form[name]) for name in ("tags", "destinations") if form.get(name, "").strip()
    }
    if match:
        given["match"] = match
    if form["on"]:
        given["on"] = form["on"]
    for name, field in (("after", "after_seconds"), ("remind", "remind_seconds")):
        if text := form.get(name, "").strip():
            minutes = forms.value_of(fields.Float(), text)
            given[field] = minutes * 60 if isinstance(minutes, int | float) else minutes
    return given


def _channel(line: str) -> View:
    """A web address is a webhook, another address with `://` an Apprise service, anything else a mailbox."""
    text = line.strip()
    if text.startswith(("http://", "https://")):
        return {"type": "webhook", "url": text}
    return {"type": "apprise", "url": text} if "://" in text else {"type": "email", "address": text}


def _page(
    values: Loaded,
    problem: HttpProblem | None = None,
    *,
    silence_problem: HttpProblem | None = None,
    done: str | None = None,
) -> str:
    assembly, now = services(), services().now()
    errors = forms.errors_by_field(problem, _FORM_NAMES)
    return render_template(
        "notifications.html",
        rows=[notification_shown(each) for each in assembly.notification_rules.of(tenant())],
        silences=[silence_shown(each) for each in assembly.silences.of(tenant()) if each.until > now],
        told={each.value: TOLD[each.value] for each in Told},
        values=values,
        errors=errors,
        others=forms.other_errors(errors, {*_LENGTHS, "on"}),
        silence_problem=silence_problem,
        done=done,
    )
