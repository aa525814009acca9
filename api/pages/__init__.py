"""The pages for people in a browser, over the same use cases as the API.

They read and act without JavaScript; scripts only save clicks. Everything that a browser loads comes from
this host.
"""

from flask import Flask

from scheduler_app.api.pages import (  # noqa: F401 - they add their routes to `blueprint`
    api_keys,
    backfill,
    calendar,
    calendar_feeds,
    changes,
    closed_days,
    dead_letters,
    destinations,
    edit_schedule,
    events,
    failures,
    forecast,
    go,
    heartbeats,
    ledger,
    messages,
    notifications,
    overview,
    people,
    provider_sign_in,
    runs,
    runs_again,
    schedule,
    schedules,
    signing_in,
    stops,
    tag,
    tag_deletion,
    tenants,
    you,
)
from scheduler_app.api.pages.access import declare_scopes, page_access
from scheduler_app.api.pages.frame import blueprint

__all__ = ["page_access", "register"]


def register(app: Flask) -> None:
    app.register_blueprint(blueprint)
    declare_scopes(app)
