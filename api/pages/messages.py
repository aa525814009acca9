"""Messages: one-off deliveries, by their subject, destination and state."""

from dataclasses import replace

from flask import Blueprint, render_template, request

from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages.forms import LOOK_SECONDS, onward, takes_query
from scheduler_app.api.problems import Problem
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire import window
from scheduler_app.api.wire.message_input import MessageFilter
from scheduler_app.api.wire.message_output import message_shown
from scheduler_app.domain.event import State


def register(blueprint: Blueprint) -> None:
    blueprint.add_url_rule("/messages", view_func=messages, methods=["GET"])


def refused_filter(problem: Problem) -> str:
    """The page of a filter that cannot be used, with why, and no message."""
    return render_template(
        "messages.html", rows=[], states=list(State), filters=request.args, onward=None, problem=problem
    )


@takes_query(MessageFilter, otherwise=refused_filter)
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
