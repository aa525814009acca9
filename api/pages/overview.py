"""The overview: whether everything works, what failed, what comes."""

from datetime import timedelta

from flask import Blueprint, render_template

from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages.charts import stacked
from scheduler_app.api.pages.forms import Nothing, takes_query
from scheduler_app.api.pages.names import names_of
from scheduler_app.api.pages.words import minute
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.domain.event import LIVING, State
from scheduler_app.health.agreement import check_settings
from scheduler_app.health.blackouts import check_blackouts
from scheduler_app.health.kill_switches import check_kill_switches
from scheduler_app.health.ready import check_ready
from scheduler_app.health.receivers import check_receivers
from scheduler_app.health.work import check_dead_letters, check_receivers_answer, check_schedules
from scheduler_app.store.paging import Window
from scheduler_app.usecases.figures import SHOWN
from scheduler_app.version import __version__

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


def register(blueprint: Blueprint) -> None:
    blueprint.add_url_rule("/", view_func=overview, methods=["GET"])


@takes_query(Nothing)
def overview(_: Loaded) -> str:
    made = services()
    store, now = made.store, made.now()
    lists = store.event_lists
    coming = lists.page(
        Window(limit=ROWS, since=now), tenant=tenant(), states=LIVING, soonest_first=True
    ).rows
    figures = made.recent_figures.get(now, tenant=tenant())
    columns = [(minute(each.begin), each.counts) for each in figures.minutes]
    oldest = store.events.oldest_due()
    failed_since = lists.page(Window(limit=1, since=now - RECENT), tenant=tenant(), states={State.ERROR}).rows
    causes = lists.dead_letter_causes(tenant=tenant(), most=MOST_READ).rows if failed_since else []
    recent = [cause for cause in causes if cause.last and cause.last >= now - RECENT]
    nodes = store.processes.alive()
    checks = check_ready(store, made.publisher)
    checks += [check_settings(nodes, store.processes.settings, __version__), check_receivers(nodes)]
    targets = sorted(store.kill_switches.everybodys().targets, key=str)
    bent, corrupt = store.kill_switches.corrupt(), store.blackouts.corrupt(now)
    stopped = [check_kill_switches(targets, bent)] if targets or bent else []
    stopped += [check_blackouts(corrupt)] if corrupt else []
    retrying = lists.page(Window(limit=MOST_RETRYING), tenant=tenant(), states={State.RETRYING})
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
        outcomes=[(state.value, figures.outcomes[state.value]) for state in SHOWN],
        bars=stacked(columns, [state.value for state in SHOWN], *CHART),
        chart=CHART,
        waited=max(0.0, (now - oldest).total_seconds()) if oldest else 0.0,
        causes=recent[:CAUSES],
        more_causes=max(0, len(recent) - CAUSES),
        coming=coming,
        names=names_of(coming),
    )
