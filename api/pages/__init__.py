"""The pages for people in a browser, over the same use cases as the API.

They read and act without JavaScript; scripts only save clicks. Everything that a browser loads comes from
this host.
"""

from flask import Flask

from scheduler_app.api.pages import (
    access,
    calendar,
    dead_letters,
    destinations,
    edit_schedule,
    events,
    go,
    messages,
    overview,
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
    for add in (
        *(overview.register_overview, schedules.register, edit_schedule.register_new_schedule),
        *(schedule.register, edit_schedule.register_edit_schedule, calendar.register_calendar),
        *(events.register, dead_letters.register, calendar.register_forecast),
        *(destinations.register_destinations, destinations.register_edit_destination),
        *(messages.register_messages, messages.register_new_message, stops.register),
        *(overview.register_processes, go.register, signing_in.register),
    ):
        add(blueprint)
    app.register_blueprint(blueprint)
