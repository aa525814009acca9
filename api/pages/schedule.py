"""One schedule: its rule, its next occurrences, its history, its request."""

import json
import shlex

from flask import Blueprint, render_template

from api.json_types import Loaded, View
from api.pages.forms import Done, takes_query
from api.services import services
from api.tenancy import tenant
from api.wire.field_types import Cursor
from api.wire.jittered import Jitter
from api.wire.presenters import shown
from api.wire.previewed import previewed
from api.wire.schedule_fields import BODY_FIELDS
from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.event import FINAL, LIVING
from scheduler_app.store.paging import Window

OCCURRENCES = 20
HISTORY = 20
PENDING = 10


class ScheduleQuery(Done):
    cursor = Cursor()


def register(blueprint: Blueprint) -> None:
    blueprint.add_url_rule("/schedules/<schedule:schedule_id>", view_func=schedule, methods=["GET"])


@takes_query(ScheduleQuery)
def schedule(query: Loaded, schedule_id: str) -> str:
    made = services()
    now, lists = made.now(), made.store.event_lists
    found = made.manager.get(schedule_id, tenant=tenant())
    view = shown(found, now)
    history = lists.page(
        Window(limit=HISTORY, after=query.get("cursor")),
        tenant=tenant(),
        schedule_id=schedule_id,
        states=FINAL,
    )
    pending = lists.page(
        Window(limit=PENDING), tenant=tenant(), schedule_id=schedule_id, states=LIVING, soonest_first=True
    )
    try:
        jitter, shown_ones = Jitter(found.jitter_seconds, found.id), {"limit": OCCURRENCES}
        preview = previewed(found.trigger, found.calendar, found.recurrence(), now, shown_ones, jitter)
    except InvalidRecurrence:
        preview = {"occurrences": []}  # the reason is among the warnings of the view
    return render_template(
        "schedule.html",
        schedule=view,
        preview=preview,
        pending=pending.rows,
        history=history,
        curl=curl(view),
        done=query.get("done"),
    )


def curl(view: View) -> str:
    """The request as a command for a shell; secrets are masked in it as in every answer."""
    words = ["curl", "-X", str(view.get("method")), str(view.get("callback_url"))]
    headers = view.get("headers")
    for name, value in headers.items() if isinstance(headers, dict) else ():
        words += ["-H", f"{name}: {value}"]
    for name in BODY_FIELDS:
        if (body := view.get(name)) is not None:
            words += ["--data-raw", body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)]
    return shlex.join(words)
