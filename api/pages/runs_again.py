"""All runs that a filter of the list finds and that gave up are sent again, with their number beforehand."""

from typing import Any, Final

from flask import render_template, url_for
from marshmallow import validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.formatting import names_of
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.pages.runs import CHIPS, RunsQuery, chosen_filters, chosen_runs, kept_filter
from scheduler_app.api.pages.sending_again import PAGE, RATES, PageByPage, goes_on, send_page
from scheduler_app.api.services import services, tenant
from scheduler_app.domain.states import State
from scheduler_app.store.paging import PageRequest

#: Runs that are counted beforehand, and those that are shown.
MOST_COUNTED: Final = 10_000
SHOWN: Final = 3


class SendRunsForm(RunsQuery, PageByPage):
    every = fields.String(required=True, validate=validate.Equal("yes"))
    """All that the filter finds are meant: a key with tags gives one of its own beside it."""


@blueprint.get("/events/send-again")
@forms.takes_query(RunsQuery)
def ask_send_runs(query: Loaded) -> str:
    window, which = _that_gave_up(query)
    lists = services().event_lists
    count, more = lists.count_dead(tenant(), _window(window, MOST_COUNTED), **which)
    shown = lists.page(tenant(), _window(window, SHOWN), states={State.ERROR}, **which).rows if count else []
    kept = kept_filter()
    return render_template(
        "send_runs.html",
        count=count,
        more=more,
        shown=shown,
        names=names_of(shown),
        chips=CHIPS,
        chosen=chosen_filters(query),
        kept=kept,
        rates=RATES,
        page=PAGE,
    )


@blueprint.post("/events/send-again")
@forms.takes_form(SendRunsForm)
def send_runs(form: Loaded) -> Response | str:
    window, which = _that_gave_up(form)
    page = send_page(form, PageRequest(PAGE, window.after, since=window.since, until=window.until), which)
    kept = kept_filter()
    if page.next is None and not page.skipped:
        return to_page("events", done="sent again", count=form["so_far"] + page.count, **kept)
    back = url_for(f"{PAGES}.events", **kept), "Back to the runs"
    return goes_on("send_runs", "sent again", form, page, given={**kept, "every": "yes"}, back=back)


def _window(window: PageRequest, limit: int) -> PageRequest:
    return PageRequest(limit, since=window.since, until=window.until)


def _that_gave_up(query: Loaded) -> tuple[PageRequest, dict[str, Any]]:
    window, which = chosen_runs(query)
    return window, {"schedule_id": which["schedule_id"], "narrowing": which["narrowing"]}
