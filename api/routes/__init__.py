"""The routes, a module for each group: a route reads its arguments, calls a use case and answers."""

from flask import Flask
from flask_smorest import Api

from scheduler_app.api import converters
from scheduler_app.api.routes import (
    backfills,
    backlog,
    blackouts,
    bulk,
    bulk_edits,
    calendar_feeds,
    calendars,
    destinations,
    edits,
    events,
    explanation,
    export,
    forecast,
    ics_import,
    kill_switch,
    messages,
    preview,
    schedules,
    signing,
    zone_check,
)
from scheduler_app.api.tasks_facade import routes as tasks


def register(app: Flask) -> Api:
    """Adds every route below /api/v1, and /tasks; this order is the order of the specification."""
    converters.register(app)
    api = Api(app)
    for module in (
        *(
            schedules,
            bulk,
            bulk_edits,
            export,
            ics_import,
            preview,
            explanation,
            edits,
            signing,
            events,
            messages,
        ),
        *(
            calendars,
            calendar_feeds,
            destinations,
            kill_switch,
            blackouts,
            backfills,
            backlog,
            forecast,
            zone_check,
            tasks,
        ),
    ):
        api.register_blueprint(module.blueprint)
    return api
