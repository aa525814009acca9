"""One schedule: its rule, its next occurrences, its history, its request, who edited it."""

import json
import shlex
from datetime import datetime
from typing import Any, cast

from flask import Blueprint, redirect, render_template, url_for
from marshmallow import ValidationError, fields, validate
from werkzeug.wrappers import Response

from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages.forms import Done, Nothing, takes_form, takes_query
from scheduler_app.api.pages.history import history
from scheduler_app.api.pages.when import when_text
from scheduler_app.api.reverting import revert
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire.blackout import note_blackouts
from scheduler_app.api.wire.explanation import WhyQuery, explained
from scheduler_app.api.wire.field_types import Cursor, LocalOrInstant
from scheduler_app.api.wire.jittered import Jitter
from scheduler_app.api.wire.presenters import shown
from scheduler_app.api.wire.preview import PreviewQuery
from scheduler_app.api.wire.previewed import previewed
from scheduler_app.api.wire.schedule_fields import BODY_FIELDS
from scheduler_app.domain.errors import InvalidField, InvalidRecurrence
from scheduler_app.domain.event import LIVING
from scheduler_app.store.paging import Window
from scheduler_app.usecases.explanation import explain_schedule, zone_of

OCCURRENCES = 20
PENDING = 10
EDITS = 10


class ScheduleQuery(Done):
    cursor = Cursor()
    of = fields.String(validate=validate.OneOf(["lag", "duration"]), load_default="lag")
    since = LocalOrInstant(dates=True, data_key="from")
    until = LocalOrInstant(dates=True, data_key="to")
    why = fields.String(validate=validate.Length(max=64))
    display_timezone = fields.String(validate=validate.Length(max=200))


def register(blueprint: Blueprint) -> None:
    path = "/schedules/<schedule:schedule_id>"
    blueprint.add_url_rule(path, view_func=schedule, methods=["GET"])
    blueprint.add_url_rule(f"{path}/edits/<edit_id>/revert", view_func=revert_on_page, methods=["POST"])


@takes_query(ScheduleQuery)
def schedule(query: Loaded, schedule_id: str) -> str:
    made = services()
    now, lists = made.now(), made.store.event_lists
    found = made.manager.get(schedule_id, tenant=tenant())
    view = shown(found, now)
    pending = lists.page(
        Window(limit=PENDING), tenant=tenant(), schedule_id=schedule_id, states=LIVING, soonest_first=True
    )
    asked, wrong_zone = _asked(query)
    try:
        jitter = Jitter(found.jitter_seconds, found.id)
        preview = previewed(found.trigger, found.calendar, found.recurrence(), now, asked, jitter)
        note_blackouts(cast("list[dict[str, Any]]", preview["occurrences"]), found, made.store, now)
    except InvalidRecurrence:
        preview = {"occurrences": []}  # the reason is among the warnings of the view
    return render_template(
        "schedule.html",
        schedule=view,
        written=when_text(view),
        preview=preview,
        pending=pending.rows,
        curl=curl(view),
        done=query.get("done"),
        **history(schedule_id, query, now),
        edits=made.store.edits.page(Window(limit=EDITS), schedule_id, tenant=tenant()).rows,
        display_timezone=query.get("display_timezone", ""),
        wrong_zone=wrong_zone,
        asked=query.get("why", ""),
        **_why(query, schedule_id, now),
    )


@takes_form(Nothing)
def revert_on_page(_: Loaded, schedule_id: str, edit_id: str) -> Response:
    revert(schedule_id, edit_id)
    return redirect(url_for(f"{PAGES}.schedule", schedule_id=schedule_id, done="reverted"), 303)


def curl(view: View) -> str:
    """The request as a command for a shell; secrets are masked in it as in every answer."""
    words = ["curl", "-X", str(view.get("method")), str(view.get("callback_url"))]
    headers = view.get("headers")
    for name, value in headers.items() if isinstance(headers, dict) else ():
        words += ["-H", f"{name}: {value}"]
    for name in BODY_FIELDS:
        if (body := view.get(name)) is not None:
            words += ["--data-raw", body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)]
    return shlex.join(words)


def _asked(query: Loaded) -> tuple[Loaded, str]:
    """Which occurrences to show, and what is wrong with the zone that was asked for."""
    if zone := query.get("display_timezone"):
        try:
            return PreviewQuery().load({"limit": OCCURRENCES, "display_timezone": zone}), ""
        except ValidationError as error:
            return {"limit": OCCURRENCES}, "; ".join(error.messages_dict.get("display_timezone", []))
    return {"limit": OCCURRENCES}, ""


def _why(query: Loaded, schedule_id: str, now: datetime) -> View:
    """Why it fires at the instant that was asked about, or does not."""
    if not query.get("why"):
        return {}
    try:
        at = WhyQuery().load({"at": query["why"].strip()})["at"]
        found, explanation, event = explain_schedule(services().store, schedule_id, at, now, tenant=tenant())
    except ValidationError as error:
        return {"why_wrong": "; ".join(error.messages_dict.get("at", []))}
    except (InvalidField, InvalidRecurrence) as error:
        return {"why_wrong": str(error)}
    jitter = Jitter(found.jitter_seconds, found.id)
    return {"why": explained(explanation, event, zone_of(found), jitter)}
