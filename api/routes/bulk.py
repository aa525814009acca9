"""Many schedules at once: /api/v1/schedules/bulk, /pause, /resume, /delete, /export and /import.

Each item of a request is taken or refused by itself. An edit of all schedules that match a filter takes one
page in each call. A schedule may have one of these words as its id: no route of a single schedule is a POST
to the id alone.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from flask import Response
from marshmallow import ValidationError

from scheduler_app.api import idempotency, request_limits
from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.problems import HttpProblem, problem_of
from scheduler_app.api.services import make_dry_run, services, tenant
from scheduler_app.api.wire import bulk as wire
from scheduler_app.api.wire import examples
from scheduler_app.api.wire.paging import skipped_shown
from scheduler_app.api.wire.schedule import ScheduleChoice, schedule_exported
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.ids import name_of, whole_id
from scheduler_app.domain.schedule import Schedule
from scheduler_app.ics import Series
from scheduler_app.store.paging import PageRequest
from scheduler_app.store.schedules.documents import CorruptSchedule
from scheduler_app.usecases.deeds.bulk_edits import BulkAction, act_on_page
from scheduler_app.usecases.deeds.creation import CreationRefusal
from scheduler_app.usecases.deeds.ics_import import ImportedItem, ImportRequest, SeriesImport, import_calendar
from scheduler_app.usecases.questions.schedules import ScheduleQuestions

CREATED = 201
#: An answer names this many wrong fields of all its items together, and counts the others.
MAX_ERRORS_TOGETHER = 1_000


def bulk_results(outcomes: Sequence[View | HttpProblem]) -> View:
    """The answer's fields: how many were created and refused, and the result of each item in their order."""
    refused = [outcome for outcome in outcomes if isinstance(outcome, HttpProblem)]
    bound_errors(refused)
    results = [
        {"status": each.status, "problem": each.body()} if isinstance(each, HttpProblem) else each
        for each in outcomes
    ]
    created = sum(1 for each in results if each["status"] == CREATED)
    return {"created": created, "refused": len(refused), "results": results}


def bound_errors(refused: list[HttpProblem]) -> None:
    """Leaves out the errors beyond `MAX_ERRORS_TOGETHER` in all of them, and counts them."""
    room = MAX_ERRORS_TOGETHER
    for problem in refused:
        omitted = len(problem.errors) - room
        if omitted > 0:
            problem.errors = problem.errors[:room]
            problem.errors_omitted += omitted
        room -= len(problem.errors)


bulk_blueprint = ApiBlueprint("bulk", "/api/v1/schedules", "Many schedules in one request")


@bulk_blueprint.route("/bulk", methods=["POST"], scope=KeyScope.WRITE)
@bulk_blueprint.arguments(wire.BulkInput, example=examples.BULK)
@bulk_blueprint.response(200, wire.BulkOutput)
def create_schedules(given: Loaded) -> View:
    """Create up to 1,000 schedules; each is taken or refused by itself"""
    items = given["schedules"]
    drafts = [item for item in items if not isinstance(item, ValidationError)]
    now, seed = services().now(), idempotency.request_seed()
    hops = request_limits.request_hops()
    made = iter(services().creation.create_many(tenant(), drafts, now, request_seed=seed, hops=hops))
    outcomes = [
        problem_of(item) if isinstance(item, ValidationError) else schedule_result(next(made))
        for item in items
    ]
    return bulk_results(outcomes)


def schedule_result(made: Schedule | CreationRefusal) -> View | HttpProblem:
    """The result of an item that was created, or why it was refused."""
    if not isinstance(made, Schedule):
        return problem_of(made)
    result: View = {"status": 201, "id": name_of(made.id)}
    if made.next_run_at:
        result["next_run_at"] = made.next_run_at
    if made.signing:
        result["signing_secret"] = idempotency.shown_once(made.signing.secret)
    return result


bulk_edits_blueprint = ApiBlueprint("edits", "/api/v1/schedules", "Many schedules, chosen by a filter")


@bulk_edits_blueprint.route("/pause", methods=["POST"], scope=KeyScope.TRIGGER)
@bulk_edits_blueprint.arguments(wire.PauseFilter, example=examples.EDIT)
@bulk_edits_blueprint.response(200, wire.PausedPage)
def pause_schedules(given: Loaded) -> View:
    """Pause the schedules that match a filter, newest first, a page a call"""
    return _edited(BulkAction.PAUSE, "paused", given)


@bulk_edits_blueprint.route("/resume", methods=["POST"], scope=KeyScope.TRIGGER)
@bulk_edits_blueprint.arguments(wire.EditFilter, example=examples.EDIT)
@bulk_edits_blueprint.response(200, wire.ResumedPage)
def resume_schedules(given: Loaded) -> View:
    """Resume the schedules that match a filter, newest first, a page a call"""
    return _edited(BulkAction.RESUME, "resumed", given)


@bulk_edits_blueprint.route("/delete", methods=["POST"], scope=KeyScope.WRITE)
@bulk_edits_blueprint.arguments(wire.EditFilter, example=examples.EDIT)
@bulk_edits_blueprint.response(200, wire.DeletedPage)
def delete_schedules(given: Loaded) -> View:
    """Delete the schedules that match a filter, newest first, a page a call; their history stays"""
    return _edited(BulkAction.DELETE, "deleted", given)


def _edited(verb: BulkAction, done: str, given: Loaded) -> View:
    if given["dry_run"]:
        make_dry_run()
    assembly, window = services(), PageRequest(limit=given["limit"], after=given.get("cursor"))
    which = {name: given[name] for name in wire.EditFilter.FILTERS if name in given}
    found = assembly.schedules.page(tenant(), window, **which)
    hops = request_limits.request_hops()
    pause: Loaded = {name: given[name] for name in ("note", "until") if name in given}
    page = act_on_page(assembly.manager, verb, found, assembly.now(), hops=hops, pause=pause)
    return {done: page.count, **skipped_shown(page.skipped), "next_cursor": page.next}


NDJSON = "application/x-ndjson"
#: Schedules read at a time: all of them wait in memory for the client, and their bodies may be large.
A_PAGE = 25
A_PIECE = 64 * 1024
LINES = {
    "type": "string",
    "description": "A JSON object a line, newest first, each as `POST /api/v1/schedules` and the items of"
    " `POST /api/v1/schedules/bulk` take it. A rule has its DTSTART made explicit, so that it fires at the"
    " same instants. Header values, the values of the URL's query and bodies are masked. Where the API has a"
    " SECRETS_KEY, `sealed` holds them, encrypted with it: an API that has the same key takes them back, for"
    " the same origin. Without it a creation refuses the masks: put the real ones there. Signing secrets are"
    " made anew. The state is part of it: what is paused here is paused where it is taken, and an active"
    " schedule's `run_at` that has passed meanwhile is refused there.",
}

export_blueprint = ApiBlueprint("export", "/api/v1/schedules", "All schedules, to keep or move")


@export_blueprint.route("/export", methods=["GET"])
@export_blueprint.arguments(ScheduleChoice, location="query")
@export_blueprint.response(200, LINES, content_type=NDJSON)
def export_schedules(query: Loaded) -> Response:
    """Export schedules as NDJSON, however many there are"""
    # Whose they are is asked here: what a client reads later is made outside of the request.
    pages = _pages(services().schedules, tenant(), query)
    # The first page is read here: if MongoDB does not answer, the status can still say so.
    begun = chain([next(pages)], pages)
    now, secret_box = services().now(), services().secret_box
    lines = (_line(schedule_exported(schedule, now, secret_box)) for schedule in chain.from_iterable(begun))
    return Response(_pieces(lines), mimetype=NDJSON)


def _pages(
    schedules: ScheduleQuestions, owner: str, query: Loaded
) -> Iterator[list[Schedule | CorruptSchedule]]:
    """Pages of schedules. A single cursor of MongoDB would not survive a slow client or a failover."""
    window: PageRequest | None = PageRequest(limit=A_PAGE)
    while window is not None:
        found = schedules.page(owner, window, **query)
        yield found.rows
        window = PageRequest(limit=A_PAGE, after=found.next) if found.next else None


def _pieces(found: Iterable[str]) -> Iterator[str]:
    """The lines in pieces of at least `A_PIECE` characters, which are worth sending."""
    lines: list[str] = []
    size = 0
    for line in found:
        lines.append(line)
        size += len(line)
        if size >= A_PIECE:
            yield "".join(lines)
            lines, size = [], 0
    yield "".join(lines)


def _line(view: View) -> str:
    return json.dumps(view, ensure_ascii=False, separators=(",", ":")) + "\n"


ics_import_blueprint = ApiBlueprint("imports", "/api/v1/schedules", "Schedules of the events of a calendar")


@ics_import_blueprint.route("/import", methods=["POST"], scope=KeyScope.WRITE)
@ics_import_blueprint.arguments(wire.ImportInput, example=examples.IMPORT)
@ics_import_blueprint.response(200, wire.ImportOutput)
def import_schedules(given: Loaded) -> View:
    """Create schedules of the events and to-dos of an iCalendar file, or let them follow a newer file

    Each item is taken or refused by itself. An event is known by its UID: what an earlier import has made of
    it stays where it is the same, and is refused with a 409 where it differs, unless `update` is given.
    """
    _, draft = given["schedule"]
    prefix = whole_id(tenant(), given["id_prefix"])
    done = import_calendar(
        services().creation,
        services().manager,
        ImportRequest(given["ics"], draft, given["timezone"], prefix, given["update"]),
        services().now(),
        request_seed=idempotency.request_seed(),
        hops=request_limits.request_hops(),
    )
    refused: list[HttpProblem] = []
    results = [[_result(series, made, refused) for series, made in each.schedules] for each in done]
    bound_errors(refused)
    items = [_item(each, parts) for each, parts in zip(done, results, strict=True)]
    counts = Counter(item["result"] for item in items)
    deeds = Counter(made.deed for parts in results for _, _, made in parts if made is not None)
    return {
        **{deed: deeds[deed] for deed in ("created", "changed", "unchanged")},
        "removed": sum(len(each.removed) for each in done),
        "refused": len(refused) + sum(each.item.outcome == "refused" for each in done),
        "over": counts["over"],
        "ignored": counts["ignored"],
        "items": items,
    }


Part = tuple[Series, View | HttpProblem, SeriesImport | None]


def _result(series: Series, made: SeriesImport | CreationRefusal, refused: list[HttpProblem]) -> Part:
    if isinstance(made, SeriesImport):
        found = schedule_result(made.schedule)
        if made.deed != "created" and not isinstance(found, HttpProblem):
            found = {name: found[name] for name in ("id", "next_run_at") if name in found} | {"status": 200}
        return series, found, made
    problem = schedule_result(made)
    if isinstance(problem, HttpProblem):
        refused.append(problem)
    return series, problem, None


def _item(imported: ImportedItem, results: list[Part]) -> View:
    item = imported.item
    view: View = {"component": item.component, "name": item.name}
    if item.uid:
        view["uid"] = item.uid
    if item.reason:
        view["reason"] = item.reason
    if imported.removed:
        view["removed"] = list(map(name_of, imported.removed))
    return view | {
        "result": _whole(imported, results) if item.outcome == "schedules" else item.outcome,
        "schedules": [_part(*each) for each in results],
        "ignored": list(item.ignored),
        "notes": list(item.notes),
    }


def _whole(imported: ImportedItem, results: list[Part]) -> str:
    deeds = {made.deed if made else "refused" for _, _, made in results}
    deeds |= {"changed"} if imported.removed else set()
    return next(each for each in ("refused", "created", "changed", "unchanged") if each in deeds)


def _part(series: Series, found: View | HttpProblem, made: SeriesImport | None) -> View:
    view = (
        {"status": found.status, "problem": found.body()} if isinstance(found, HttpProblem) else dict(found)
    )
    if made is not None:
        trigger = made.schedule.trigger
        view["result"] = made.deed
        view["warnings"] = [*trigger.warnings, *made.schedule.recurrence().warnings]
    return view | {"recurrence": series.recurrence, "timezone": series.timezone}
