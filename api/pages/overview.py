"""The overview: whether everything works, what failed, what comes; processes; calendars."""

from datetime import timedelta

from flask import Blueprint, render_template

from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages.formatting import minute, names_of, stacked_bars
from scheduler_app.api.pages.forms import NoFields, next_page_query, takes_query
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.calendar import calendar_shown
from scheduler_app.api.wire.field_types import Cursor
from scheduler_app.domain.event import LIVING, State
from scheduler_app.health.processes import check_fleet, check_receivers, check_releases, check_settings
from scheduler_app.health.ready import check_ready
from scheduler_app.health.stops import check_blackouts, check_kill_switches
from scheduler_app.health.work import check_dead_letters, check_receivers_answer, check_schedules
from scheduler_app.store.paging import PageRequest
from scheduler_app.usecases.questions.figures import SHOWN_STATES
from scheduler_app.version import POLICY_LEVEL, __version__

#: Counting stops here, so that the page costs little however many there are.
MOST_COUNTED = 10_000
#: The newest dead letters among which causes are told apart; all others are on a page of their own.
MOST_READ = 1_000
MOST_RETRYING = 100
ROWS = 10
CAUSES = 5
#: Older failures are on the page of the dead letters.
RECENT = timedelta(days=1)
CHART = (600.0, 80.0)


def register_overview(blueprint: Blueprint) -> None:
    blueprint.add_url_rule("/", view_func=overview, methods=["GET"])


@takes_query(NoFields)
def overview(_: Loaded) -> str:
    made = services()
    store, now = made.store, made.now()
    lists = store.event_lists
    coming = lists.page(
        PageRequest(limit=ROWS, since=now), tenant=tenant(), states=LIVING, soonest_first=True
    ).rows
    figures = made.recent_figures.get(now, tenant=tenant())
    columns = [(minute(each.begin), each.counts) for each in figures.minutes]
    oldest = store.events.oldest_due()
    failed_since = lists.page(
        PageRequest(limit=1, since=now - RECENT), tenant=tenant(), states={State.ERROR}
    ).rows
    causes = lists.dead_letter_causes(tenant=tenant(), most=MOST_READ).rows if failed_since else []
    recent = [cause for cause in causes if cause.last and cause.last >= now - RECENT]
    nodes = store.processes.alive()
    checks = check_ready(store, made.publisher)
    checks += [check_settings(nodes, store.processes.settings, __version__), check_receivers(nodes)]
    targets = sorted(store.kill_switches.everybodys().targets, key=str)
    bent, corrupt = store.kill_switches.corrupt(), store.blackouts.corrupt(now)
    stopped = [check_kill_switches(targets, bent)] if targets or bent else []
    stopped += [check_blackouts(corrupt)] if corrupt else []
    retrying = lists.page(PageRequest(limit=MOST_RETRYING), tenant=tenant(), states={State.RETRYING})
    schedules = store.schedules.count_by_state(tenant=tenant(), most=MOST_COUNTED)
    work = [
        check_dead_letters(causes, now - RECENT),
        check_receivers_answer(retrying.rows, is_whole=retrying.next is None),
        check_schedules(schedules),
    ]
    failing = [check for check in work if check is not None]
    return render_template(
        "overview.html",
        checks=[*stopped, *checks],
        wrong=[*stopped, *(check for check in checks if not check.ok), *failing],
        most=MOST_COUNTED,
        schedules=schedules,
        dead=store.events.dead_letters(tenant=tenant(), most=MOST_COUNTED),
        figures=figures,
        outcomes=[(state.value, figures.outcomes[state.value]) for state in SHOWN_STATES],
        bars=stacked_bars(columns, [state.value for state in SHOWN_STATES], *CHART),
        chart=CHART,
        waited=max(0.0, (now - oldest).total_seconds()) if oldest else 0.0,
        causes=recent[:CAUSES],
        more_causes=max(0, len(recent) - CAUSES),
        coming=coming,
        names=names_of(coming),
    )


CALENDAR_ROWS = 50
ORIGINS = 5


class CalendarsQuery(NoFields):
    cursor = Cursor()


def register_processes(blueprint: Blueprint) -> None:
    blueprint.add_url_rule("/processes", view_func=processes, methods=["GET"])
    blueprint.add_url_rule("/calendars", view_func=calendars, methods=["GET"])


@takes_query(NoFields)
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
    found = store.calendars.page(PageRequest(limit=CALENDAR_ROWS, after=query.get("cursor")), tenant=tenant())
    rows = [calendar_shown(each) for each in found.rows]
    users = {str(row["name"]): store.calendars.users(str(row["name"]), tenant=tenant()) for row in rows}
    return render_template("calendars.html", rows=rows, users=users, onward=next_page_query(found.next))
