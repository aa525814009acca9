"""The pages for people in a browser, over the same use cases as the API.

They read and act without JavaScript; scripts only save clicks. Everything that a browser loads comes from
this host.
"""

from flask import Flask

from scheduler_app.api.pages import (
    access,
    calendar_view,
    dead_letters,
    destinations,
    edit_destination,
    edit_schedule,
    events,
    forecast,
    go,
    messages,
    new_message,
    new_schedule,
    overview,
    processes,
    schedule,
    schedules,
    signing_in,
    stops,
)
from scheduler_app.api.pages.frame import new_blueprint
from scheduler_app.config import Settings

__all__ = ["register"]


def register(app: Flask, settings: Settings) -> None:
    """Must follow the API's authentication, which leaves the pages to theirs, and precede every other check
    of requests."""
    access.register(app, settings)
    blueprint = new_blueprint()
    for module in (
        *(overview, schedules, new_schedule, schedule, edit_schedule, calendar_view, events, dead_letters),
        *(forecast, destinations, edit_destination, messages, new_message, stops, processes, go, signing_in),
    ):
        module.register(blueprint)
    app.register_blueprint(blueprint)
