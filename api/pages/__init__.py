"""The pages for people in a browser, over the same use cases as the API.

They read and act without JavaScript; scripts only save clicks. Everything that a browser loads comes from
this host.
"""

from flask import Flask

from scheduler_app.api.pages import (  # noqa: F401 - they add their routes to `blueprint`
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
from scheduler_app.api.pages.frame import blueprint
from scheduler_app.config import Settings


def register(app: Flask, settings: Settings) -> None:
    """Must follow the API's authentication, which leaves the pages to theirs, and precede every other check
    of requests."""
    access.register(app, settings)
    app.register_blueprint(blueprint)
