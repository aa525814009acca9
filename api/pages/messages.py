"""Messages: one-off deliveries, by their subject, destination and state."""

from dataclasses import replace

from flask import Blueprint, render_template, request

from api.json_types import Loaded
from api.pages.forms import LOOK_SECONDS, onward, takes_query
from api.services import services
from api.tenancy import tenant
from api.wire import window
from api.wire.message_input import MessageFilter
from api.wire.message_output import message_shown
from scheduler_app.domain.event import State


def register(blueprint: Blueprint) -> None:
    blueprint.add_url_rule("/messages", view_func=messages, methods=["GET"])


@takes_query(MessageFilter)
def messages(query: Loaded) -> str:
    found = services().store.messages.page(
        replace(window(query), seconds=LOOK_SECONDS),
        tenant=tenant(),
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
        onward=onward(found.next),
    )
