"""The list of schedules, and what is done to those that were selected in it."""

from collections.abc import Callable
from datetime import datetime

from flask import Blueprint, redirect, render_template, url_for
from marshmallow import fields, validate
from werkzeug.wrappers import Response

from api import hop_limit
from api.auth import PAGES
from api.json_types import Loaded
from api.pages.forms import ROWS, Done, onward, takes_form, takes_query
from api.services import services
from api.tenancy import tenant
from api.wire.field_types import BoundedList, Cursor, ScheduleId
from api.wire.input_schema import InputSchema
from api.wire.presenters import shown
from api.wire.schedule_fields import LAST_OUTCOMES, STATES
from api.wire.schedule_output import ScheduleChoice
from scheduler_app.domain.errors import Conflict, InvalidField, NotFound, StaleVersion
from scheduler_app.store.paging import Window
from scheduler_app.usecases.schedules import ScheduleService

#: What is done to a schedule, by the word on its button; and the word for what was done.
VERBS = {"pause": "paused", "resume": "resumed", "trigger": "triggered", "delete": "deleted"}


class ListQuery(ScheduleChoice, Done):
    cursor = Cursor()


class SelectionForm(InputSchema):
    verb = fields.String(required=True, validate=validate.OneOf(list(VERBS)))
    selected = BoundedList(ScheduleId(), load_default=[], validate=validate.Length(max=ROWS))
    confirmed = fields.String(validate=validate.Equal("yes"))


def register(blueprint: Blueprint) -> None:
    blueprint.add_url_rule("/schedules", view_func=schedules, methods=["GET"])
    blueprint.add_url_rule("/schedules/selected", view_func=change_selected, methods=["POST"])


@takes_query(ListQuery)
def schedules(query: Loaded) -> str:
    made = services()
    filters = {name: query[name] for name in ("state", "name", "tag", "last_outcome") if name in query}
    window = Window(limit=ROWS, after=query.get("cursor"))
    found = made.store.schedules.page(window, tenant=tenant(), **filters)
    now = made.now()
    return render_template(
        "schedules.html",
        rows=[shown(each, now) for each in found.rows],
        filters=filters,
        states=STATES,
        outcomes=LAST_OUTCOMES,
        onward=onward(found.next),
        done=query.get("done"),
        count=query.get("count"),
    )


@takes_form(SelectionForm)
def change_selected(form: Loaded) -> Response | str:
    """Does one thing to each schedule that was selected, whatever becomes of the others."""
    verb, selected = form["verb"], form["selected"]
    if not selected:
        return redirect(url_for(f"{PAGES}.schedules"), 303)
    if verb == "delete" and "confirmed" not in form:
        return render_template("confirm_delete.html", selected=selected)
    made = services()
    now, act, refused = made.now(), _act(made.manager, verb), list[tuple[str, str]]()
    for schedule_id in selected:
        try:
            act(schedule_id, now)
        except (Conflict, InvalidField, NotFound, StaleVersion) as error:
            refused.append((schedule_id, str(error)))
    count = len(selected) - len(refused)
    if refused:
        return render_template("refused.html", done=VERBS[verb], count=count, refused=refused)
    if len(selected) == 1 and verb != "delete":
        where = url_for(f"{PAGES}.schedule", schedule_id=selected[0], done=VERBS[verb])
        return redirect(where, 303)
    return redirect(url_for(f"{PAGES}.schedules", done=VERBS[verb], count=count), 303)


def _act(manager: ScheduleService, verb: str) -> Callable[[str, datetime], object]:
    hops = hop_limit.request_hops()
    acts: dict[str, Callable[[str, datetime], object]] = {
        "pause": lambda each, now: manager.pause(each, now, tenant=tenant()),
        "resume": lambda each, now: manager.resume(each, now, tenant=tenant(), hops=hops),
        "trigger": lambda each, now: manager.trigger(each, now, tenant=tenant(), hops=hops),
        "delete": lambda each, now: manager.delete(each, now, tenant=tenant()),
    }
    return acts[verb]
