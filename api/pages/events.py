"""The list of events, one event, and what people do with one."""

from flask import Blueprint, redirect, render_template, url_for
from werkzeug.wrappers import Response

from api.auth import PAGES
from api.json_types import Loaded
from api.pages.forms import Done, Nothing, onward, takes_form, takes_query
from api.pages.names import names_of
from api.services import services
from api.tenancy import tenant
from api.wire.event_filter import EventFilter
from api.wire.paging import window
from scheduler_app.domain.event import LIFE, State

#: A worker has taken an event in these states, or it is over.
NOT_CANCELLABLE = frozenset(state for state in State if LIFE[state].final) | {State.RUNNING}


def register(blueprint: Blueprint) -> None:
    blueprint.add_url_rule("/events", view_func=events, methods=["GET"])
    blueprint.add_url_rule("/events/<event:event_id>", view_func=event, methods=["GET"])
    blueprint.add_url_rule("/events/<event:event_id>/send-again", view_func=send_again, methods=["POST"])
    blueprint.add_url_rule("/events/<event:event_id>/cancel", view_func=cancel, methods=["POST"])


@takes_query(EventFilter)
def events(query: Loaded) -> str:
    asked = window(query)
    found = services().store.event_lists.page(
        asked,
        tenant=tenant(),
        schedule_id=query.get("schedule_id"),
        states=query.get("state"),
        narrowing=query["narrowing"],
    )
    return render_template(
        "events.html",
        rows=found.rows,
        names=names_of(found.rows),
        states=list(State),
        onward=onward(found.next),
    )


@takes_query(Done)
def event(query: Loaded, event_id: str) -> str:
    found = services().events.get(event_id, tenant=tenant())
    return render_template(
        "event.html",
        event=found,
        names=names_of([found]),
        life=LIFE[found.state],
        cancellable=found.state not in NOT_CANCELLABLE,
        done=query.get("done"),
    )


@takes_form(Nothing)
def send_again(_: Loaded, event_id: str) -> Response:
    made = services()
    made.events.redrive(event_id, made.now(), tenant=tenant())
    return redirect(url_for(f"{PAGES}.event", event_id=event_id, done="sent again"), 303)


@takes_form(Nothing)
def cancel(_: Loaded, event_id: str) -> Response:
    made = services()
    made.events.cancel(event_id, made.now(), tenant=tenant())
    return redirect(url_for(f"{PAGES}.event", event_id=event_id, done="cancelled"), 303)
