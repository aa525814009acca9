"""The overview: whether everything works, what failed, what comes; processes; calendars."""

from flask import render_template

from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages.formatting import names_of, stacked_bars
from scheduler_app.api.pages.forms import NoFields, next_page_query, takes_query
from scheduler_app.api.pages.frame import blueprint
from scheduler_app.api.pages.times import instant
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.calendar import calendar_shown
from scheduler_app.api.wire.field_types import Cursor
from scheduler_app.domain.ids import whole_id
from scheduler_app.health.overview import MOST_COUNTED, look_over
from scheduler_app.health.processes import check_fleet, check_receivers, check_releases, check_settings
from scheduler_app.store.paging import PageRequest
from scheduler_app.usecases.questions.figures import SHOWN_STATES
from scheduler_app.version import POLICY_LEVEL, __version__

ROWS = 10
#: Of recent failures; others are on the page of the dead letters.
CAUSES = 5
CHART = (600.0, 80.0)


@blueprint.get("/")
@takes_query(NoFields)
def overview(_: Loaded) -> str:
    assembly = services()
    now = assembly.now()
    figures = assembly.recent_figures.get(tenant(), now)
    columns = [(instant(each.begin), each.counts) for each in figures.minutes]
    whole = look_over(tenant(), assembly.store, assembly.publisher, now, coming=ROWS)
    return render_template(
        "overview.html",
        checks=whole.checks,
        status=whole.status,
        most=MOST_COUNTED,
        schedules=whole.schedules,
        dead=whole.dead,
        figures=figures,
        outcomes=[(state.value, figures.outcomes[state.value]) for state in SHOWN_STATES],
        bars=stacked_bars(columns, [state.value for state in SHOWN_STATES], *CHART),
        chart=CHART,
        waited=whole.waited,
        causes=whole.causes[:CAUSES],
        more_causes=max(0, len(whole.causes) - CAUSES),
        coming=whole.coming,
        names=names_of(whole.coming),
    )


CALENDAR_ROWS = 50
ORIGINS = 5


class CalendarsQuery(NoFields):
    cursor = Cursor()


@blueprint.get("/processes")
@takes_query(NoFields)
def processes(_: Loaded) -> str:
    reported = services().processes
    nodes = reported.alive()
    checks = [
        *check_fleet(nodes),
        check_settings(nodes, reported.settings, __version__),
        check_receivers(nodes),
        check_releases(nodes, POLICY_LEVEL),
    ]
    return render_template("processes.html", nodes=nodes, checks=checks, most_origins=ORIGINS)


@blueprint.get("/calendars")
@takes_query(CalendarsQuery)
def calendars(query: Loaded) -> str:
    asked = services().calendars
    found = asked.page(tenant(), PageRequest(limit=CALENDAR_ROWS, after=query.get("cursor")))
    rows = [calendar_shown(each) for each in found.rows]
    users = {each.name: asked.users(whole_id(tenant(), each.name)) for each in found.rows}
    return render_template("calendars.html", rows=rows, users=users, onward=next_page_query(found.next))
