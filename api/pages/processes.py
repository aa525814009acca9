"""The processes as they report themselves, and the calendars of closed days that schedules observe."""

from flask import Blueprint, render_template

from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages.forms import Nothing, onward, takes_query
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire.calendar import calendar_shown
from scheduler_app.api.wire.field_types import Cursor
from scheduler_app.health.agreement import check_settings
from scheduler_app.health.fleet import check_fleet
from scheduler_app.health.receivers import check_receivers
from scheduler_app.health.releases import check_releases
from scheduler_app.store.paging import Window
from scheduler_app.version import POLICY_LEVEL, __version__

ROWS = 50
ORIGINS = 5


class CalendarsQuery(Nothing):
    cursor = Cursor()


def register(blueprint: Blueprint) -> None:
    blueprint.add_url_rule("/processes", view_func=processes, methods=["GET"])
    blueprint.add_url_rule("/calendars", view_func=calendars, methods=["GET"])


@takes_query(Nothing)
def processes(_: Loaded) -> str:
    store = services().store
    nodes = store.processes.alive()
    checks = [
        *check_fleet(nodes),
        check_settings(nodes, store.processes.settings, __version__),
        check_receivers(nodes),
        check_releases(nodes, POLICY_LEVEL),
    ]
    return render_template("processes.html", nodes=nodes, checks=checks, most_origins=ORIGINS)


@takes_query(CalendarsQuery)
def calendars(query: Loaded) -> str:
    store = services().store
    found = store.calendars.page(Window(limit=ROWS, after=query.get("cursor")), tenant=tenant())
    rows = [calendar_shown(each) for each in found.rows]
    users = {str(row["name"]): store.calendars.users(str(row["name"]), tenant=tenant()) for row in rows}
    return render_template("calendars.html", rows=rows, users=users, onward=onward(found.next))
