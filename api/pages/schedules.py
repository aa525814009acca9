"""The list of schedules, and what is done to those that were selected in it, or to all that it finds."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from urllib.parse import urlencode

from flask import render_template, request, url_for
from marshmallow import validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api import request_limits
from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.formatting import state_words
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.problems import HttpProblem
from scheduler_app.api.scopes import require
from scheduler_app.api.services import caller, services, tenant
from scheduler_app.api.wire.field_types import BoundedList, Cursor, DestinationName, ScheduleId
from scheduler_app.api.wire.schedule import ScheduleChoice, schedule_shown
from scheduler_app.api.wire.schedule_fields import LAST_OUTCOMES
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.ids import name_of, whole_id
from scheduler_app.domain.resources.schedule import STATES
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.domain.states import State
from scheduler_app.store.paging import Page, PageRequest
from scheduler_app.store.schedules.documents import CorruptSchedule
from scheduler_app.usecases.deeds.bulk_edits import Edit, edit_page, refused


@dataclass(frozen=True, slots=True)
class SelectionAct:
    """What is done to schedules: the words of its button and of its question, and what comes of it."""

    button: str
    question: str
    done: str
    effect: str


ACTS = {
    "trigger": SelectionAct(
        "Run now", "Run {} now?", "triggered", "Each is called once, now, besides its times."
    ),
    "pause": SelectionAct(
        "Pause",
        "Pause {}?",
        "paused",
        "They do not run until somebody resumes them. What was due before is still sent.",
    ),
    "resume": SelectionAct("Resume", "Resume {}?", "resumed", "They run again, from their next times on."),
    "tag": SelectionAct("Tag", "Tag {}?", "tagged", "They get this tag, besides those that they have."),
    "delete": SelectionAct(
        "Delete",
        "Delete {}?",
        "deleted",
        "What they have not sent yet is cancelled. Their history stays until its retention ends. A deletion"
        " cannot be undone.",
    ),
}
#: The action that undoes each.
UNDO = {"pause": "resume", "resume": "pause"}
#: Those that need more than the scope `trigger`.
_WRITING = {"tag", "delete"}
OUTCOMES = 20
MOST_COUNTED = 10_000
#: A view's number beside its name; beyond it, “1,000+” says enough.
MOST_IN_VIEW = 1_000
#: Of schedules that failed last, before all others.
MOST_FAILING = 20
#: How many schedules that match a filter one request changes at most.
FILTER_PAGE = 500
MOST_REFUSALS = 100
#: The orders of the list, each with its name. No index has the order of last runs: each run would write it.
ORDERS = {
    "failing": "failing first",
    "newest": "the newest first",
    "oldest": "the oldest first",
    "name": "name",
    "next": "next run",
}
FILTERS = ("state", "name", "tag", "last_outcome", "text", "destination", "within")
#: How soon the next run is, in the order of these.
SPANS = {"1h": "within an hour", "24h": "within a day", "7d": "within a week"}
_SPANS = {"1h": timedelta(hours=1), "24h": timedelta(days=1), "7d": timedelta(days=7)}


class Filter(ScheduleChoice):
    text = fields.String(validate=validate.Length(1, 200))
    destination = DestinationName()
    within = fields.String(validate=validate.OneOf(list(SPANS)))


class SchedulesQuery(Filter, forms.ActionResultQuery):
    cursor = Cursor()
    order = fields.String(validate=validate.OneOf(list(ORDERS)), load_default="failing")
    undo = fields.String(validate=validate.OneOf(list(UNDO.values())))
    changed = BoundedList(ScheduleId(), load_default=[], validate=validate.Length(max=forms.ROWS))


class SelectionForm(Filter):
    verb = fields.String(required=True, validate=validate.OneOf(list(ACTS)))
    selected = BoundedList(ScheduleId(), load_default=[], validate=validate.Length(max=forms.ROWS))
    every = fields.String(validate=validate.Equal("yes"))
    """All that the filter finds, in place of those selected."""
    tag_name = fields.String(validate=validate.Length(max=64))
    confirmed = fields.String(validate=validate.Equal("yes"))
    cursor = Cursor()
    order = fields.String(validate=validate.OneOf(list(ORDERS)))
    so_far = fields.Integer(validate=validate.Range(0), load_default=0)


@blueprint.get("/schedules")
@forms.takes_query(SchedulesQuery)
def schedules(query: Loaded) -> str:
    assembly, now = services(), services().now()
    filters = {name: query[name] for name in FILTERS if name in query}
    found, failing = _listed(query, filters, now)
    bars = assembly.schedules.last_outcomes(found.rows, now, most=OUTCOMES)
    return render_template(
        "schedules.html",
        rows=[schedule_shown(each, now) for each in found.rows],
        failing=failing,
        bars={name_of(each): of for each, of in bars.items()},
        most_outcomes=OUTCOMES,
        held={name_of(each): str(of) for each, of in assembly.schedules.held_by(found.rows).items()},
        filters=filters,
        chosen=_chosen(filters),
        views=_views(filters),
        states=STATES,
        outcomes=LAST_OUTCOMES,
        spans=SPANS,
        verbs={verb: act for verb, act in ACTS.items() if verb != "tag"},
        onward=forms.next_page_query(found.next),
        order=query["order"],
        orders=ORDERS,
        ordered={each: _turned(order=each) for each in ORDERS},
        done=query.get("done"),
        count=query.get("count"),
        undo=query.get("undo"),
        changed=query["changed"],
    )


def _listed(query: Loaded, filters: Loaded, now: datetime) -> tuple[Page[Schedule | CorruptSchedule], int]:
    """A page of the list, and how many of its first rows are there because they failed last."""
    lists, order = services().schedules, query["order"]
    window = PageRequest(limit=forms.ROWS, after=query.get("cursor"), seconds=forms.LOOK_SECONDS)
    if order != "failing":
        return lists.page(tenant(), _within(window, filters, now), order=order, **_which(filters)), 0
    if "within" in filters:
        return lists.page(tenant(), _within(window, filters, now), order="next", **_which(filters)), 0
    if window.after is not None or "last_outcome" in filters:
        return lists.page(tenant(), window, order="newest", **_which(filters)), 0
    few = replace(window, limit=min(MOST_FAILING, max(1, forms.ROWS // 2)))
    first = lists.page(tenant(), few, **_which(filters), last_outcome=State.ERROR.value).rows
    known = {each.id for each in first if isinstance(each, Schedule)}
    found = lists.page(tenant(), replace(window, limit=forms.ROWS - len(first)), **_which(filters))
    others = [each for each in found.rows if not (isinstance(each, Schedule) and each.id in known)]
    return Page([*first, *others], found.next), len(first)


def _within(window: PageRequest, filters: Loaded, now: datetime) -> PageRequest:
    return replace(window, until=now + _SPANS[filters["within"]]) if "within" in filters else window


def _views(filters: Loaded) -> list[View]:
    """What people ask for most, each with its number."""
    views: tuple[tuple[str, str, dict[str, str]], ...] = (
        ("all", "All", {}),
        ("failing", "Failing", {"last_outcome": State.ERROR.value}),
        ("paused", "Paused", {"state": ScheduleState.PAUSED.value}),
    )
    shown: list[View] = []
    for key, name, which in views:
        if caller().tags:
            which = which | {"tag": filters["tag"]}
        count, more = services().schedules.count(tenant(), most=MOST_IN_VIEW, **which)
        shown.append(
            {
                "key": key,
                "name": name,
                "count": count,
                "more": more,
                "current": filters == which,
                "address": f"{url_for(f'{PAGES}.schedules')}?{urlencode(which)}",
            }
        )
    return shown


def _chosen(filters: Loaded) -> dict[str, View]:
    """The filters that are on, each in words and with the address of the list without it."""
    words = {
        "state": state_words,
        "last_outcome": state_words,
        "within": lambda value: SPANS[value],
    }
    return {
        name: {
            "value": value,
            "words": words.get(name, str)(value),
            "without": _turned(**{name: None}),
        }
        for name, value in filters.items()
    }


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
    kept = _kept(form)
    if not selected:
        return to_page("schedules", **kept)
    if "confirmed" not in form and (verb == "delete" or (verb == "trigger" and len(selected) > 1)):
        return render_template(
            "confirm.html", act=ACTS[verb], form=form, kept=kept, count=len(selected), selected=selected
        )
    act, unchanged = ACTS[verb], _unchanged(selected, form)
    count = len(selected) - len(unchanged)
    if unchanged:
        return render_template(
            "goes_on.html", done=act.done, count=count, refused=unchanged, kept=kept, cursor=None
        )
    if len(selected) == 1 and verb != "delete":
        return to_page("schedule", schedule_id=selected[0], done=act.done)
    undo: Loaded = {"undo": UNDO[verb], "changed": list(map(name_of, selected))} if verb in UNDO else {}
    return to_page("schedules", done=act.done, count=count, **undo, **kept)


def _kept(form: Loaded) -> Loaded:
    """The filter and the order, to which the list returns."""
    return {name: form[name] for name in (*FILTERS, "order") if name in form}


def _change_all(form: Loaded) -> Response | str:
    """Does it to a page of all that the filter finds, and offers to go on; asks first, with their number."""
    schedules, act, now = services().schedules, ACTS[form["verb"]], services().now()
    kept = _kept(form)
    filters = {name: form[name] for name in FILTERS if name in form}
    if "within" in filters:
        raise HttpProblem(
            422, "next runs move on while they are changed: select them, or choose another filter"
        )
    if "confirmed" not in form:
        count, more = schedules.count(tenant(), most=MOST_COUNTED, **_which(filters))
        return render_template(
            "confirm.html", act=act, form=form, kept=kept, count=count, more=more, filters=filters
        )
    window = PageRequest(limit=FILTER_PAGE, after=form.get("cursor"))
    page = edit_page(
        schedules.page(tenant(), window, **_which(filters)),
        _edit(form),
        now,
        refusal=lambda each: each.reason if isinstance(each, CorruptSchedule) else None,
    )
    total = form["so_far"] + page.count
    if page.next is None and not page.skipped:
        return to_page("schedules", done=act.done, count=total, **kept)
    return render_template(
        "goes_on.html",
        done=act.done,
        count=total,
        refused=page.skipped[:MOST_REFUSALS],
        kept=kept,
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
    found = {name: value for name, value in filters.items() if name != "within"}
    if "destination" in found:
        found["destination"] = whole_id(tenant(), found["destination"])
    return found


def _turned(**changes: str | None) -> str:
    """The same list with other parameters, from its beginning."""
    kept: Loaded = {
        name: value
        for name, value in request.args.items()
        if value and name not in ("cursor", *forms.ACTION_RESULT_FIELDS)
    }
    return url_for(f"{PAGES}.schedules", **(kept | changes))
