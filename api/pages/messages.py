"""Messages: their list, the form that makes one, and the form that moves one to another time."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from flask import render_template, request, url_for
from marshmallow import Schema, ValidationError, validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api import idempotency, request_limits
from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.pages.schedule_form import default_of, own_receiver
from scheduler_app.api.pages.times import viewer_zone
from scheduler_app.api.pages.when import trigger_fields
from scheduler_app.api.problems import HttpProblem, problem_of
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.message import MessageFilter, NewMessage, message_shown
from scheduler_app.api.wire.paging import window
from scheduler_app.api.wire.preview import PreviewInput
from scheduler_app.domain.errors import Conflict, InvalidField, QuotaExceeded
from scheduler_app.domain.http_action import METHODS
from scheduler_app.domain.ids import WholeId, message_event_id, message_id_of
from scheduler_app.domain.message import Timing
from scheduler_app.domain.resources.message import OWN, SHARED
from scheduler_app.domain.states import State
from scheduler_app.domain.triggers import BY_NAME, FIELDS, TriggerContext, new_trigger
from scheduler_app.store.events.messages import MessageRecord

_TRIGGER = PreviewInput(only=tuple(name for name in PreviewInput().fields if name in FIELDS))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def timing_of(text: str, timezone: str, now: datetime) -> Timing:
    """At once without a text; a time that has passed means at once, too. `timezone` is that of a local time.

    Raises InvalidField and ValidationError for what is not understood, and for what recurs.
    """
    if not text.strip():
        return Timing()
    written = _TRIGGER.load(trigger_fields(text))
    trigger = new_trigger(written, TriggerContext(now, timezone=timezone, active=False))
    recurrence = trigger.recurrence(now)
    first = recurrence.after(_EPOCH)
    if first is None:
        raise InvalidField("when", "names no time: give one, or leave it empty for at once")
    if recurrence.after(first) is not None:
        raise InvalidField("when", "comes again, and a message is delivered once: make a schedule of it")
    return Timing(scheduled_at=first)


_FIELDS = NewMessage().fields
_TEXTS = ("id", "event_name", "destination", "path", "method")
#: The other fields that are one value, such as those for retries.
SETTINGS: dict[str, Any] = {
    row.name: _FIELDS[row.name]
    for row in (*OWN, *SHARED)
    if isinstance(_FIELDS[row.name], forms.ONE_LINE)
    and row.name not in (*_TEXTS, "callback_url", "body", "body_base64")
}
JSON, TEXT = "json", "text"
_LENGTHS = {"id": 200, "event_name": 1_000, "when": 2_000, "timezone": 200, "url": 10_000,
            "destination": 200, "path": 10_000, "method": 20, "headers": 40_000, "metadata": 40_000,
            "body": 300_000}  # fmt: skip
#: The fields beside which the form shows errors.
SHOWN = frozenset((*_LENGTHS, *SETTINGS))
#: The form's names of what the API's errors are about.
FORM_NAMES = dict.fromkeys(BY_NAME, "when") | {
    "callback_url": "url",
    "payload": "body",
    "body_base64": "body",
    "scheduled_at": "when",
    "delay_seconds": "when",
}

MessageForm: type[Schema] = InputSchema.from_dict(
    forms.text_fields(_LENGTHS | dict.fromkeys(SETTINGS, 1_000))
    | {
        "once": fields.String(validate=validate.Regexp(r"[0-9a-f]{24}\Z")),
        "body_as": fields.String(validate=validate.OneOf([JSON, TEXT]), load_default=JSON),
    },
    name="MessageForm",
)


def request_of(form: Loaded) -> View:
    """The body of the API's request for the message, but for its time. Raises ValidationError."""
    texts = {name: text for name, text in form.items() if text}
    given: View = {name: texts[name].strip() for name in _TEXTS if name in texts}
    if "url" in texts:
        given["callback_url"] = texts["url"].strip()
    for name in ("headers", "metadata"):
        if name in texts:
            given[name] = forms.headers_of(texts[name], name)
    if "body" in texts:
        given |= {"body": texts["body"]} if form["body_as"] == TEXT else {"payload": _payload(texts["body"])}
    for name in SETTINGS.keys() & texts.keys():
        given[name] = forms.value_of(SETTINGS[name], texts[name].strip())
    return given


def _payload(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValidationError({"payload": ["is no JSON; choose text to send it as it is"]}) from None


def refused_filter(problem: HttpProblem) -> str:
    """The page of a filter that cannot be used, with why, and no message."""
    return render_template(
        "messages.html", rows=[], states=list(State), filters=request.args, onward=None, problem=problem
    )


@blueprint.get("/messages")
@forms.takes_query(MessageFilter, otherwise=refused_filter)
def messages(query: Loaded) -> str:
    found = services().messages.page(
        tenant(),
        replace(window(query), seconds=forms.LOOK_SECONDS),
        event_name=query.get("event_name"),
        destination=query.get("destination"),
        states=query.get("state"),
        soonest_first=False,
    )
    return render_template(
        "messages.html",
        rows=list(map(message_shown, found.rows)),
        states=list(State),
        filters=request.args,
        onward=forms.next_page_query(found.next),
    )


_NEW = NewMessage()


class TimeForm(InputSchema):
    when = fields.String(validate=validate.Length(max=2_000))
    timezone = fields.String(validate=validate.Length(max=200), load_default="UTC")


@blueprint.get("/new-message")
@forms.takes_query(forms.NoFields)
def new_message(_: Loaded) -> str:
    once = services().creation.new_seed()
    return _form({"once": once, "timezone": viewer_zone()})


@blueprint.post("/new-message")
@forms.takes_form(MessageForm)
def send_message(form: Loaded) -> Response | str | tuple[str, int]:
    assembly, seed = services(), forms.seed_of(form)
    try:
        draft = _NEW.load(request_of(form))
        timing = timing_of(form.get("when", ""), form.get("timezone", "UTC"), assembly.now())
        scheduled = assembly.messages.schedule(
            tenant(),
            replace(draft, timing=timing),
            assembly.now(),
            request_seed=seed,
            hops=request_limits.request_hops(),
        )
    except (ValidationError, InvalidField, Conflict, QuotaExceeded) as error:
        if isinstance(error, Conflict) and (existing := _made_before(form, seed)):
            return _to(existing)
        problem = problem_of(error)
        return _form(form, problem), problem.status
    if scheduled.signing_secret:
        return render_template(
            "signing_secret.html",
            name=f"Message {message_id_of(scheduled.record.event.id)}",
            secret=idempotency.shown_once(scheduled.signing_secret),
            done="created",
            onward=url_for(f"{PAGES}.event", event_id=scheduled.record.event.id),
        )
    return _to(scheduled.record)


@blueprint.post("/new-message/preview")
@forms.takes_form(MessageForm)
def preview_delivery(form: Loaded) -> str:
    now, zone = services().now(), form.get("timezone", "UTC")
    try:
        at = timing_of(form.get("when", ""), zone, now).instant(now)
    except (ValidationError, InvalidField) as error:
        return render_template("delivery.html", problem=problem_of(error))
    return render_template("delivery.html", at=at, zone=zone)


@blueprint.post("/events/<event:event_id>/reschedule")
@forms.takes_form(TimeForm)
def reschedule(form: Loaded, event_id: WholeId) -> Response:
    assembly = services()
    try:
        timing = timing_of(form.get("when", ""), form["timezone"], assembly.now())
    except (ValidationError, InvalidField) as error:
        raise problem_of(error) from None
    assembly.messages.reschedule(event_id, timing, assembly.now())
    return to_page("event", event_id=event_id, done="rescheduled")


def _made_before(form: Loaded, seed: str | None) -> MessageRecord | None:
    """The message that the same form has made: a browser may send it twice."""
    if seed is None or form.get("id"):
        return None
    return services().messages.find(message_event_id(tenant(), seed))


def _to(record: MessageRecord) -> Response:
    return to_page("event", event_id=record.event.id, done="created")


def _form(values: Loaded, problem: HttpProblem | None = None) -> str:
    errors = forms.errors_by_field(problem, FORM_NAMES)
    return render_template(
        "new_message.html",
        values=values,
        errors=errors,
        others=forms.other_errors(errors, SHOWN),
        methods=METHODS,
        settings={name: forms.setting(field, default_of(name)) for name, field in SETTINGS.items()},
        own_receiver=own_receiver(),
    )
