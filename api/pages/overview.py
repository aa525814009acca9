"""The overview: whether everything works, what failed, what comes."""

from datetime import timedelta

from flask import Blueprint, render_template

from api.json_types import Loaded
from api.pages.forms import Nothing, takes_query
from api.pages.names import names_of
from api.services import services
from api.tenancy import tenant
from scheduler_app.domain.event import LIVING, State
from scheduler_app.health.check import Check
from scheduler_app.health.kill_switches import check_kill_switches
from scheduler_app.health.ready import check_ready
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.paging import Window

#: Counting stops here, so that the page costs little however many there are.
MOST_COUNTED = 10_000
ROWS = 10
#: What failed before is on the page of the dead letters.
RECENT = timedelta(days=1)


def register(blueprint: Blueprint) -> None:
    blueprint.add_url_rule("/", view_func=overview, methods=["GET"])


@takes_query(Nothing)
def overview(_: Loaded) -> str:
    made = services()
    store, now = made.store, made.now()
    since, lists = Window(limit=ROWS, since=now - RECENT), store.event_lists
    failed = lists.page(since, tenant=tenant(), states={State.ERROR}).rows
    ahead = Window(limit=ROWS, since=now)
    coming = lists.page(ahead, tenant=tenant(), states=LIVING, soonest_first=True).rows
    return render_template(
        "overview.html",
        checks=[*check_ready(store, made.publisher), *_stopped(store)],
        most=MOST_COUNTED,
        schedules=store.schedules.count_by_state(tenant=tenant(), most=MOST_COUNTED),
        dead=store.events.dead_letters(tenant=tenant(), most=MOST_COUNTED),
        failed=failed,
        coming=coming,
        names=names_of([*failed, *coming]),
    )


def _stopped(store: Store) -> list[Check]:
    """What kill switches stop; nothing is said while none is on."""
    try:
        targets = sorted(store.kill_switches.everybodys().targets, key=str)
    except STORE_FAULTS:
        return []  # the first check says that MongoDB does not answer
    return [check_kill_switches(targets)] if targets else []
