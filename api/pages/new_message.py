"""The form that makes a message, and the one that moves it to another time."""

from dataclasses import replace

from flask import Blueprint, redirect, render_template, url_for
from marshmallow import ValidationError, fields, validate
from werkzeug.wrappers import Response

from scheduler_app.api import hop_limit, idempotency
from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages.delivery_time import timing_of
from scheduler_app.api.pages.editor import own_receiver
from scheduler_app.api.pages.form_values import choices, errors_by_field
from scheduler_app.api.pages.forms import Nothing, problem_of, seed_of, takes_form, takes_query
from scheduler_app.api.pages.message_form import (
    FORM_NAMES,
    SETTINGS,
    SHOWN,
    MessageForm,
    meaning_of,
    request_of,
)
from scheduler_app.api.problems import Problem
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire import NewMessage
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.errors import Conflict, InvalidField, QuotaExceeded
from scheduler_app.domain.http_action import METHODS
from scheduler_app.domain.message_ids import message_event_id, message_id_of
from scheduler_app.store.events.messages import MessageRecord

_NEW = NewMessage()


class TimeForm(InputSchema):
    when = fields.String(validate=validate.Length(max=2_000))
    timezone = fields.String(validate=validate.Length(max=200), load_default="UTC")


def register(blueprint: Blueprint) -> None:
    blueprint.add_url_rule("/new-message", view_func=new_message, methods=["GET"])
    blueprint.add_url_rule("/new-message", view_func=send_message, methods=["POST"])
    blueprint.add_url_rule("/new-message/preview", view_func=preview_delivery, methods=["POST"])
    path = "/events/<event:event_id>/reschedule"
    blueprint.add_url_rule(path, view_func=reschedule, methods=["POST"])


@takes_query(Nothing)
def new_message(_: Loaded) -> str:
    once = services().store.schedules.new_id(tenant=tenant())
    return _form({"once": once, "timezone": "UTC"})


@takes_form(MessageForm)
def send_message(form: Loaded) -> Response | str | tuple[str, int]:
    made, seed = services(), seed_of(form)
    try:
        draft = _NEW.load(request_of(form))
        timing = timing_of(form.get("when", ""), form.get("timezone", "UTC"), made.now())
        scheduled = made.messages.schedule(
            replace(draft, timing=timing),
            made.now(),
            tenant=tenant(),
            request_seed=seed,
            hops=hop_limit.request_hops(),
        )
    except (ValidationError, InvalidField) as error:
        return _form(form, problem_of(error)), 422
    except Conflict as error:
        if there := _made_before(form, seed):
            return _to(there)
        return _form(form, Problem(409, str(error))), 409
    except QuotaExceeded as error:
        return _form(form, Problem(429, str(error))), 429
    if scheduled.signing_secret:
        return render_template(
            "signing_secret.html",
            name=f"Message {message_id_of(scheduled.record.event.id)}",
            secret=idempotency.shown_once(scheduled.signing_secret),
            done="created",
            onward=url_for(f"{PAGES}.event", event_id=scheduled.record.event.id),
        )
    return _to(scheduled.record)


@takes_form(MessageForm)
def preview_delivery(form: Loaded) -> str:
    now, zone = services().now(), form.get("timezone", "UTC")
    try:
        at = timing_of(form.get("when", ""), zone, now).instant(now)
    except (ValidationError, InvalidField) as error:
        return render_template("delivery.html", problem=problem_of(error))
    return render_template("delivery.html", at=at, zone=zone)


@takes_form(TimeForm)
def reschedule(form: Loaded, event_id: str) -> Response:
    made = services()
    try:
        timing = timing_of(form.get("when", ""), form["timezone"], made.now())
    except (ValidationError, InvalidField) as error:
        raise problem_of(error) from None
    made.messages.reschedule(message_id_of(event_id), timing, made.now(), tenant=tenant())
    return redirect(url_for(f"{PAGES}.event", event_id=event_id, done="rescheduled"), 303)


def _made_before(form: Loaded, seed: str | None) -> MessageRecord | None:
    """The message that the same form has made: a browser may send it twice."""
    if seed is None or form.get("id"):
        return None
    return services().store.messages.get(message_event_id(seed, tenant=tenant()), tenant=tenant())


def _to(record: MessageRecord) -> Response:
    return redirect(url_for(f"{PAGES}.event", event_id=record.event.id, done="created"), 303)


def _form(values: Loaded, problem: Problem | None = None) -> str:
    errors = errors_by_field(problem, FORM_NAMES)
    return render_template(
        "new_message.html",
        values=values,
        errors=errors,
        others=[text for name in sorted(errors.keys() - SHOWN) for text in errors[name]],
        methods=METHODS,
        settings={name: {"choices": choices(field), **meaning_of(name)} for name, field in SETTINGS.items()},
        own_receiver=own_receiver(),
    )
