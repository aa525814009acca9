"""The routes, a file for each resource: a route reads its arguments, calls a use case and answers."""

from flask import Flask
from flask_smorest import Api

from scheduler_app.api.openapi import tagged_union
from scheduler_app.api.routes import (
    access,
    audit,
    backlog,
    bulk,
    calendars,
    destinations,
    events,
    failures,
    heartbeats,
    ledger,
    messages,
    notifications,
    people,
    preview,
    run_calendar,
    schedules,
    search,
    stops,
    tasks,
    timed_figures,
)
from scheduler_app.api.wire import field_types


def register(app: Flask) -> Api:
    """Adds every route below /api/v1, and /tasks; this order is the order of the specification."""
    field_types.register_converters(app)
    api = Api(app)
    api.ma_plugin.converter.add_attribute_function(tagged_union)
    for blueprint in (
        schedules.schedules_blueprint,
        bulk.bulk_blueprint,
        bulk.bulk_edits_blueprint,
        bulk.export_blueprint,
        bulk.ics_import_blueprint,
        preview.preview_blueprint,
        preview.explanation_blueprint,
        schedules.edits_blueprint,
        schedules.edit_log_blueprint,
        schedules.signing_blueprint,
        events.blueprint,
        failures.failures_blueprint,
        failures.status_blueprint,
        events.redrives_blueprint,
        messages.blueprint,
        calendars.calendars_blueprint,
        calendars.calendar_feeds_blueprint,
        destinations.blueprint,
        stops.kill_switch_blueprint,
        stops.blackouts_blueprint,
        heartbeats.blueprint,
        notifications.notifications_blueprint,
        notifications.silences_blueprint,
        backlog.backfills_blueprint,
        backlog.backlog_blueprint,
        preview.forecast_blueprint,
        run_calendar.run_calendar_blueprint,
        search.search_blueprint,
        search.tags_blueprint,
        timed_figures.figures_blueprint,
        ledger.ledger_blueprint,
        calendars.zone_check_blueprint,
        access.keys_blueprint,
        people.people_blueprint,
        people.sign_in_blueprint,
        access.tenants_blueprint,
        access.deletions_blueprint,
        audit.audit_blueprint,
        tasks.blueprint,
    ):
        api.register_blueprint(blueprint)
    return api
