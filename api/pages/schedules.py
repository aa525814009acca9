"""The list of schedules, and what is done to those that were selected in it, or to all that it finds."""

from dataclasses import replace
from datetime import datetime
from functools import partial

from flask import render_template, request, url_for
from marshmallow import validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api import request_limits
from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.problems import HttpProblem
from scheduler_app.api.scopes import require
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.field_types import BoundedList, Cursor, DestinationName, ScheduleId
from scheduler_app.api.wire.schedule import ScheduleChoice, schedule_shown
from scheduler_app.api.wire.schedule_fields import LAST_OUTCOMES
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.ids import name_of, whole_id
from scheduler_app.domain.resources.schedule import STATES
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.store.paging import PageRequest
from scheduler_app.store.schedules.documents import CorruptSchedule
from scheduler_app.usecases.deeds.bulk_edits import Edit, edit_page, refused

#: The actions on a schedule by the word on their button, with the word for what was done.
VERBS = {"pause": "paused", "resume": "resumed", "trigger": "triggered", "tag": "tagged", "delete": "deleted"}
#: The action that undoes each.
UNDO = {"pause": "resume", "resume": "pause"}
#: Those that need more than the scope `trigger`.
_WRITING = {"tag", "delete"}
OUTCOMES = 30
MOST_COUNTED = 10_000
#: How many schedules that match a filter one request changes at most.
FILTER_PAGE = 500
MOST_REFUSALS = 100
#: The orders of the list, each with its name. No index has the order of last runs: each run would write it.
ORDERS = {
    "newest": "the newest first",
    "oldest": "the oldest first",
    "name": "name",
    "next": "next run, of those that are active",
}
FILTERS = ("state", "name", "tag", "last_outcome", "text", "destination")


class Filter(ScheduleChoice):
    text = fields.String(validate=validate.Length(1, 200))
    destination = DestinationName()


class SchedulesQuery(Filter, forms.ActionResultQuery):
    cursor = Cursor()
    order = fields.String(validate=validate.OneOf(list(ORDERS)), load_default="newest")
    undo = fields.String(validate=validate.OneOf(list(UNDO.values())))
    changed = BoundedList(ScheduleId(), load_default=[], validate=validate.Length(max=forms.ROWS))


class SelectionForm(Filter):
    verb = fields.String(required=True, validate=validate.OneOf(list(VERBS)))
    selected = BoundedList(ScheduleId(), load_default=[], validate=validate.Length(max=forms.ROWS))
    every = fields.String(validate=validate.Equal("yes"))
    """All that the filter finds, in place of those selected."""
    tag_name = fields.String(validate=validate.Length(max=64))
    confirmed = fields.String(validate=validate.Equal("yes"))
    cursor = Cursor()
    so_far = fields.Integer(validate=validate.Range(0), load_default=0)


@blueprint.get("/schedules")
@forms.takes_query(SchedulesQuery)
def schedules(query: Loaded) -> str:
    assembly = services()
    filters = {name: query[name] for name in FILTERS if name in query}
    window = PageRequest(limit=forms.ROWS, after=query.get("cursor"), seconds=forms.LOOK_SECONDS)
    found = assembly.schedules.page(tenant(), window, order=query["order"], **_which(filters))
    now = assembly.now()
    ids = [each.id for each in found.rows if isinstance(each, Schedule)]
    bars = assembly.event_figures.last_of_each(ids, now, most=OUTCOMES)
    return render_template(
        "schedules.html",
        rows=[schedule_shown(each, now) for each in found.rows],
        bars={name_of(each): of for each, of in bars.items()},
        filters=filters,
        states=STATES,
        outcomes=LAST_OUTCOMES,
        verbs=list(VERBS),
        onward=forms.next_page_query(found.next),
        more=bool(found.next or "cursor" in query),
        order=query["order"],
        orders=ORDERS,
        ordered={each: _ordered(each) for each in ORDERS},
        done=query.get("done"),
        count=query.get("count"),
        undo=query.get("undo"),
        changed=query["changed"],
    )


@blueprint.post("/schedules/selected")
@forms.takes_form(SelectionForm)
def change_selected(form: Loaded) -> Response | str:
    """Does one thing to each schedule that was selected, whatever becomes of the others."""
    verb, selected = form["verb"], form["selected"]
    if verb in _WRITING:
        require(KeyScope.WRITE)
    if verb == "tag" and not form.get("tag_name", "").strip():
        raise HttpProblem(422, "say which tag: write it in the field beside the button")
    if "every" in form:
        return _change_all(form)
    filters = {name: form[name] for name in FILTERS if name in form}
    if not selected:
        return to_page("schedules", **filters)
    if verb == "delete" and "confirmed" not in form:
        return render_template("confirm_delete.html", selected=selected)
    unchanged = _unchanged(selected, form)
    count = len(selected) - len(unchanged)
    if unchanged:
        return render_template("refused.html", done=VERBS[verb], count=count, refused=unchanged)
    if len(selected) == 1 and verb != "delete":
        return to_page("schedule", schedule_id=selected[0], done=VERBS[verb])
    undo: Loaded = {"undo": UNDO[verb], "changed": list(map(name_of, selected))} if verb in UNDO else {}
    return to_page("schedules", done=VERBS[verb], count=count, **undo, **filters)


def _change_all(form: Loaded) -> Response | str:
    """Does it to a page of all that the filter finds, and offers to go on; asks first, with their number."""
    schedules, verb = services().schedules, form["verb"]
    filters = {name: form[name] for name in FILTERS if name in form}
    if "confirmed" not in form:
        count, more = schedules.count(tenant(), most=MOST_COUNTED, **_which(filters))
        return render_template(
            "confirm_all.html", count=count, more=more, filters=filters, form=form, done=VERBS[verb]
        )
    window = PageRequest(limit=FILTER_PAGE, after=form.get("cursor"))
    page = edit_page(
        schedules.page(tenant(), window, **_which(filters)),
        _edit(form),
        services().now(),
        refusal=lambda each: each.reason if isinstance(each, CorruptSchedule) else None,
    )
    total = form["so_far"] + page.count
    if page.next is None and not page.skipped:
        return to_page("schedules", done=VERBS[verb], count=total, **filters)
    return render_template(
        "goes_on.html",
        done=VERBS[verb],
        count=total,
        refused=page.skipped[:MOST_REFUSALS],
        filters=filters,
        form=form,
        cursor=forms.cursor(page.next),
    )


def _unchanged(ids: list[str], form: Loaded) -> list[tuple[str, str]]:
    """The schedules that could not be changed, each with its reason."""
    now, edit = services().now(), _edit(form)
    reasons = [(schedule_id, refused(edit, schedule_id, now)) for schedule_id in ids]
    return [(schedule_id, reason) for schedule_id, reason in reasons if reason is not None]


def _edit(form: Loaded) -> Edit:
    hops, manager = request_limits.request_hops(), services().manager

    def tag(schedule_id: str, now: datetime) -> object:
        found = manager.get(schedule_id)
        word = form["tag_name"].strip()
        if word in found.tags:
            return found
        draft = replace(ScheduleDraft(), tags=(*found.tags, word))
        return manager.edit(schedule_id, draft, now, version=found.version)

    edits: dict[str, Edit] = {
        "pause": manager.pause,
        "resume": partial(manager.resume, hops=hops),
        "trigger": partial(manager.trigger, hops=hops),
        "delete": manager.delete,
        "tag": tag,
    }
    return edits[form["verb"]]


def _which(filters: Loaded) -> Loaded:
    """The filters as the store takes them."""
    if "destination" not in filters:
        return filters
    return filters | {"destination": whole_id(tenant(), filters["destination"])}


def _ordered(order: str) -> str:
    """The same list in another order, from its beginning."""
    kept: Loaded = {
        name: value
        for name, value in request.args.items()
        if value and name not in ("cursor", "order", *forms.ACTION_RESULT_FIELDS)
    }
    return url_for(f"{PAGES}.schedules", **kept, order=order)
