"""Destinations: their limits, how they are now, and what people do with one."""

from flask import Blueprint, redirect, render_template, url_for
from marshmallow import fields, validate
from werkzeug.wrappers import Response

from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages.forms import Done, Nothing, onward, takes_form, takes_query
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire.destination_output import destination_shown, flow_shown
from scheduler_app.api.wire.field_types import Cursor, DestinationName
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.destination_draft import DestinationDraft
from scheduler_app.domain.errors import Conflict
from scheduler_app.store.paging import Window

#: On a page: how each is now is asked of Redis.
ROWS = 25


class DestinationsQuery(Done):
    cursor = Cursor()


class ChangeForm(InputSchema):
    name = DestinationName(required=True)
    verb = fields.String(required=True, validate=validate.OneOf(["pause", "resume"]))


def register(blueprint: Blueprint) -> None:
    blueprint.add_url_rule("/destinations", view_func=destinations, methods=["GET"])
    blueprint.add_url_rule("/destinations/change", view_func=change_destination, methods=["POST"])
    blueprint.add_url_rule("/destinations/<name>/test-call", view_func=call_destination, methods=["POST"])


@takes_query(DestinationsQuery)
def destinations(query: Loaded) -> str:
    made = services()
    found = made.store.destinations.page(Window(limit=ROWS, after=query.get("cursor")), tenant=tenant())
    rows: list[View] = []
    for each in found.rows:
        view = destination_shown(each)
        if isinstance(each, Destination):
            flow = made.destinations.flow(each)
            in_flight = flow.in_flight if flow else None
            waiting = made.store.destinations.waiting(each.id, in_flight=in_flight, tenant=tenant())
            view["waiting"] = waiting
            view["flow"] = flow_shown(flow, waiting, made.now()) if flow else None
        rows.append(view)
    return render_template("destinations.html", rows=rows, onward=onward(found.next), done=query.get("done"))


@takes_form(ChangeForm)
def change_destination(form: Loaded) -> Response:
    made, paused = services(), form["verb"] == "pause"
    made.destinations.edit(form["name"], DestinationDraft(paused=paused), made.now(), tenant=tenant())
    done = "paused" if paused else "resumed"
    return redirect(url_for(f"{PAGES}.destinations", done=done), 303)


@takes_form(Nothing)
def call_destination(_: Loaded, name: str) -> str:
    try:
        verdict = services().destinations.test(name, services().now(), tenant=tenant()).verdict
    except Conflict as error:
        return render_template("tested.html", refusal=str(error))
    if verdict is None:
        return render_template("tested.html", refusal="Nothing was sent: this is a dry run.")
    return render_template("tested.html", verdict=verdict, ok=verdict.outcome.name == "SUCCESS")
