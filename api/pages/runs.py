"""The list of runs, narrowed by chips, and what is done to those that were selected in it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from flask import render_template, request, url_for
from marshmallow import Schema, ValidationError, validate, validates_schema
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.formatting import counted, names_of_ids, schedules_of, state_words
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.pages.run_exports import MOST_EXPORTED, as_csv, as_json_lines, newest_runs
from scheduler_app.api.pages.times import instant
from scheduler_app.api.problems import HttpProblem
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.event import EventFilter
from scheduler_app.api.wire.field_types import BoundedList, DestinationName
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.paging import window
from scheduler_app.domain.errors import Conflict, InvalidField, NotFound
from scheduler_app.domain.http_action import destination_key
from scheduler_app.domain.ids import WholeId, whole_id
from scheduler_app.domain.states import State
from scheduler_app.store.events.events import EventRecord
from scheduler_app.store.paging import Page, PageRequest

#: What the list can be narrowed to, in the order of the chips, by the parameter's name.
CHIPS = {
    "tag": "Tag",
    "state": "How it ended",
    "schedule_id": "Schedule",
    "destination": "Destination",
    "origin": "Web address",
    "status_code": "Answer",
    "error": "Error",
    "from": "Since",
    "to": "Until",
}
#: Several states under one name, which is what people look for most.
GROUPS = {
    "error,retrying,expired,skipped,cancelled": "Not done",
    "ready_queue,worker_queue,running,retrying": "Waiting or running",
}
#: What is done to runs: the words of what was done.
_ACTS = {"send_again": "sent again", "cancel": "cancelled"}


class RunsQuery(EventFilter, forms.ActionResultQuery):
    destination = DestinationName()

    @validates_schema
    def check_receiver(self, data: Loaded, **_: object) -> None:
        if "destination" in data and "origin" in data:
            raise ValidationError("drop it, or drop the web address: a run has one receiver", "destination")


class RunsExportQuery(RunsQuery):
    format = fields.String(validate=validate.OneOf(["csv", "ndjson"]), load_default="csv")


#: The filter comes back as it was given: the list checks it.
RunsForm: type[Schema] = InputSchema.from_dict(
    forms.text_fields(dict.fromkeys((*CHIPS, "timezone"), 2_048))
    | {
        "verb": fields.String(required=True, validate=validate.OneOf(list(_ACTS))),
        "selected": BoundedList(
            fields.String(validate=validate.Length(1, 400)),
            load_default=[],
            validate=validate.Length(max=forms.ROWS),
        ),
    },
    name="RunsForm",
)


def refused_filter(problem: HttpProblem) -> str:
    """The page of a filter that cannot be used, with why, and no run."""
    return _page(Page([], None), problem=problem)


@blueprint.get("/events")
@forms.takes_query(RunsQuery, otherwise=refused_filter)
def events(query: Loaded) -> str:
    asked, which = chosen_runs(query)
    found = services().event_lists.page(tenant(), replace(asked, seconds=forms.LOOK_SECONDS), **which)
    return _page(found, query)


@blueprint.get("/events/export")
@forms.takes_query(RunsExportQuery)
def export_runs(query: Loaded) -> Response:
    write = as_csv if query["format"] == "csv" else as_json_lines
    return write(newest_runs(*chosen_runs(query)), "runs")


def chosen_runs(query: Loaded) -> tuple[PageRequest, dict[str, Any]]:
    """The part of the list that a filter asks for, and its other filters as the list takes them."""
    narrowing = query["narrowing"]
    if "destination" in query:
        receiver = destination_key(whole_id(tenant(), query["destination"]))
        narrowing = replace(narrowing, origin=receiver)
    which = {"schedule_id": query.get("schedule_id"), "states": query.get("state"), "narrowing": narrowing}
    return window(dict(query)), which


def kept_filter() -> dict[str, Any]:
    """The filter as it was given, for addresses and forms."""
    names = (*CHIPS, "timezone")
    return {name: request.values[name] for name in names if request.values.get(name)}


def _page(
    found: Page[EventRecord], query: Loaded | None = None, *, problem: HttpProblem | None = None
) -> str:
    given = {name: request.args[name] for name in CHIPS if request.args.get(name)}
    states = query.get("state") if query else None
    schedules = schedules_of(found.rows)
    return render_template(
        "events.html",
        rows=found.rows,
        names={each.id: each.name for each in schedules},
        tags={each.id: each.tags for each in schedules},
        chips=CHIPS,
        chosen=chosen_filters(query or {}, problem),
        given=given,
        kept=kept_filter(),
        may_send_all=bool(given and found.rows) and (states is None or State.ERROR in states),
        most_exported=MOST_EXPORTED,
        groups=GROUPS,
        states=list(State),
        found_words=_found_words(found, query.get("limit", forms.ROWS) if query else 0),
        onward=forms.next_page_query(found.next),
        problem=problem,
        done=query.get("done") if query else None,
        count=query.get("count") if query else None,
    )


def _found_words(found: Page[EventRecord], limit: int) -> str:
    """How many there are, and how far was looked: a list that was cut says so."""
    count, is_first = len(found.rows), not request.args.get("cursor")
    if found.next is None:
        return counted(count, "run") if is_first else f"The last {counted(count, 'run')}"
    if count >= limit:
        return f"The newest {counted(count, 'run')}" if is_first else f"{count} more, older ones"
    return f"{counted(count, 'run')} so far: looked back to {instant(found.next.moment)}"


def _has_times(given: Mapping[str, str]) -> bool:
    return "from" in given or "to" in given


def chosen_filters(query: Loaded, problem: HttpProblem | None = None) -> dict[str, View]:
    """The filters that are on, each in words and with the address of the list without it; no wrong ones."""
    wrong = {each["pointer"].strip("/") for each in problem.errors} if problem else set[str]()
    given = {name: request.args[name] for name in CHIPS if request.args.get(name) and name not in wrong}
    words: dict[str, str] = dict(given)
    if states := query.get("state"):
        words["state"] = GROUPS.get(given["state"]) or ", ".join(sorted(map(state_words, states)))
    if schedule_id := query.get("schedule_id"):
        words["schedule_id"] = names_of_ids([schedule_id]).get(schedule_id, given["schedule_id"])
    for name, key in (("from", "since"), ("to", "until")):
        if key in query:
            words[name] = instant(query[key])
    return {
        name: {"value": value, "words": words[name], "without": _without(name)}
        for name, value in given.items()
    }


def _without(dropped: str) -> str:
    """The same list without a filter, from its beginning."""
    kept = {
        name: value
        for name, value in request.args.items()
        if value and name not in (dropped, "cursor", *forms.ACTION_RESULT_FIELDS)
    }
    if not _has_times(kept):
        kept.pop("timezone", None)
    address = url_for(f"{PAGES}.events")
    return f"{address}?{urlencode(kept)}" if kept else address


@blueprint.post("/events/selected")
@forms.takes_form(RunsForm)
def change_runs(form: Loaded) -> Response | str:
    """Does one thing to each run that was selected, whatever becomes of the others."""
    kept = {name: form[name] for name in (*CHIPS, "timezone") if name in form}
    ids = [whole_id(tenant(), each) for each in form["selected"]]
    reasons = [(each, _refusal(form["verb"], each)) for each in ids]
    refused = [(each, reason) for each, reason in reasons if reason is not None]
    count, done = len(ids) - len(refused), _ACTS[form["verb"]]
    if refused:
        return render_template("runs_left.html", done=done, count=count, refused=refused, kept=kept)
    return to_page("events", **kept, **({"done": done, "count": count} if ids else {}))


def _refusal(verb: str, event_id: WholeId) -> str | None:
    """The reason why `verb` was refused for this event; None if it was carried out."""
    deeds, now = services().events, services().now()
    try:
        if verb == "send_again":
            deeds.redrive(event_id, now)
        elif deeds.get(event_id).state is State.RUNNING:
            # A worker is asked and waited for: of fifty runs one after the other that would be minutes.
            return "a worker holds it: cancel it on its own page, which asks the worker"
        else:
            deeds.cancel(event_id, now)
    except (Conflict, InvalidField, NotFound) as error:
        return str(error)
    return None
