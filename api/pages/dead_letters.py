"""Dead letters by their causes: sent again cause by cause, at once or at a rate; dismissed; exported."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from flask import Response, render_template, url_for
from marshmallow import post_load, validate
from werkzeug.wrappers import Response as AnyResponse

from scheduler_app import json_fields as fields
from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.formatting import names_of_ids
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.pages.run_exports import as_json_lines, newest_runs
from scheduler_app.api.pages.sending_again import PAGE, RATES, PageByPage, goes_on, send_page
from scheduler_app.api.pages.times import from_viewer
from scheduler_app.api.problems import HttpProblem
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.event import isolation_key
from scheduler_app.api.wire.field_types import LocalOrInstant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.retry import Codes
from scheduler_app.domain.states import State
from scheduler_app.store.events.lists import DeadLetterCause as CauseOfSome
from scheduler_app.store.events.lists import EventListFilter
from scheduler_app.store.paging import PageRequest, Position
from scheduler_app.usecases.deeds.events import RedriveResult

#: The newest dead letters, among which causes are told apart.
MOST_READ = 10_000
MOST_CAUSES = 100
#: Schedules that a cause names.
MOST_SCHEDULES = 3
#: Schedules of a cause whose tags are looked at, and tags that it names.
MOST_TAGGED, MOST_TAGS = 100, 5


class DeadLetterFilter(InputSchema):
    """Which dead letters; a time without an offset is in the viewer's time zone."""

    tag = fields.String(validate=validate.Length(max=64))
    since = LocalOrInstant(dates=True, data_key="from")
    until = LocalOrInstant(dates=True, data_key="to")

    @post_load
    def as_instants(self, data: Loaded, **_: object) -> Loaded:
        return data | {name: from_viewer(data[name]) for name in ("since", "until") if name in data}


class DeadLettersQuery(DeadLetterFilter, forms.ActionResultQuery):
    pass


class CauseFilter(DeadLetterFilter):
    """What the dead letters of a cause have in common, and which of them are meant."""

    origin = fields.String(required=True, validate=validate.Length(max=2_048))
    status = fields.Integer(validate=validate.Range(100, 599))
    error = fields.String(validate=validate.Length(max=200))


class CauseForm(CauseFilter, PageByPage):
    pass


def refused_filter(problem: HttpProblem) -> str:
    """The page of a filter that cannot be used, with why, and no dead letter."""
    return render_template("dead_letters.html", causes=[], filters={}, problem=problem)


@blueprint.get("/dead-letters")
@forms.takes_query(DeadLettersQuery, otherwise=refused_filter)
def dead_letters(query: Loaded) -> str:
    assembly = services()
    found = assembly.event_lists.dead_letter_causes(
        tenant(),
        most=MOST_READ,
        since=query.get("since"),
        until=query.get("until"),
        tag=query.get("tag"),
    )
    causes = found.rows[:MOST_CAUSES]
    return render_template(
        "dead_letters.html",
        causes=causes,
        omitted=max(0, len(found.rows) - MOST_CAUSES),
        read=found.read,
        most=MOST_READ,
        rates=RATES,
        done=query.get("done"),
        count=query.get("count"),
        filters=_filters(query),
        most_schedules=MOST_SCHEDULES,
        names=names_of_ids(each for cause in causes for each in cause.schedules[:MOST_SCHEDULES]),
        tags=_tags(causes),
    )


def _tags(causes: Sequence[CauseOfSome]) -> list[list[str]]:
    """The tags of each cause's schedules, the most frequent first."""
    ids = dict.fromkeys(each for cause in causes for each in cause.schedules[:MOST_TAGGED])
    tags = services().schedules.tags(ids)
    counts = [
        Counter(tag for each in cause.schedules[:MOST_TAGGED] for tag in tags.get(each, ()))
        for cause in causes
    ]
    return [[tag for tag, _ in each.most_common(MOST_TAGS)] for each in counts]


def _filters(given: Loaded) -> dict[str, Any]:
    """The filter as the parameters of a page."""
    times = {"from": given.get("since"), "to": given.get("until")}
    found = {name: value.isoformat() for name, value in times.items() if value is not None}
    return found | ({"tag": given["tag"]} if "tag" in given else {})


@blueprint.post("/dead-letters/send-again")
@forms.takes_form(CauseForm)
def send_cause_again(form: Loaded) -> AnyResponse | str:
    page = send_page(form, _window(form, form.get("cursor")), {"narrowing": _narrowing(form)})
    if page.next is None and not page.skipped:
        total = form["so_far"] + page.count
        return to_page("dead_letters", done="sent again", count=total, **_filters(form))
    return _goes_on("send_cause_again", "sent again", form, page)


@blueprint.post("/dead-letters/dismiss")
@forms.takes_form(CauseForm)
def dismiss_cause(form: Loaded) -> AnyResponse | str:
    window = _window(form, form.get("cursor"))
    page = services().events.dismiss_page(tenant(), window, services().now(), narrowing=_narrowing(form))
    if page.next is None:
        total = form["so_far"] + page.count
        return to_page("dead_letters", done="dismissed", count=total, **_filters(form))
    return _goes_on("dismiss_cause", "dismissed", form, page)


@blueprint.get("/dead-letters/export")
@forms.takes_query(CauseFilter)
def export_cause(query: Loaded) -> Response:
    which = {"states": {State.ERROR}, "narrowing": _narrowing(query)}
    return as_json_lines(newest_runs(_window(query, None), which), "dead-letters")


def _goes_on(endpoint: str, done: str, form: Loaded, page: RedriveResult) -> str:
    given = _filters(form) | {name: form[name] for name in ("origin", "status", "error") if name in form}
    back = url_for(f"{PAGES}.dead_letters"), "Back to the runs that gave up"
    return goes_on(endpoint, done, form, page, given=given, back=back)


def _narrowing(cause: Loaded) -> EventListFilter:
    return EventListFilter(
        origin=isolation_key(cause["origin"]),
        status=Codes((cause["status"],)) if "status" in cause else None,
        error=cause.get("error"),
        tag=cause.get("tag"),
    )


def _window(cause: Loaded, after: Position | None) -> PageRequest:
    return PageRequest(limit=PAGE, after=after, since=cause.get("since"), until=cause.get("until"))
