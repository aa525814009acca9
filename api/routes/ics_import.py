"""/api/v1/schedules/import: schedules of the events of an iCalendar file."""

from collections import Counter

from scheduler_app.api import hop_limit, idempotency
from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.bulk_results import bound_errors
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.problems import Problem
from scheduler_app.api.routes.bulk import outcome
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire import ImportInput, ImportOutput, examples
from scheduler_app.domain.errors import Conflict, InvalidField
from scheduler_app.ics import Series
from scheduler_app.usecases.ics_import import Import, Imported, ImportedItem, import_calendar

blueprint = ApiBlueprint(
    "imports", __name__, url_prefix="/api/v1/schedules", description="Schedules of the events of a calendar"
)


@blueprint.route("/import", methods=["POST"])
@blueprint.arguments(ImportInput, example=examples.IMPORT)
@blueprint.response(200, ImportOutput)
def import_schedules(given: Loaded) -> View:
    """Create schedules of the events and to-dos of an iCalendar file, or let them follow a newer file

    Each item is taken or refused by itself. An event is known by its UID: what an earlier import has made of
    it stays where it is the same, and is refused with a 409 where it differs, unless `update` is given.
    """
    _, draft = given["schedule"]
    done = import_calendar(
        services().creation,
        services().manager,
        Import(given["ics"], draft, given["timezone"], given["id_prefix"], given["update"]),
        services().now(),
        tenant=tenant(),
        request_seed=idempotency.request_seed(),
        hops=hop_limit.request_hops(),
    )
    refused: list[Problem] = []
    results = [[_result(series, made, refused) for series, made in each.made] for each in done]
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


Part = tuple[Series, View | Problem, Imported | None]


def _result(series: Series, made: Imported | InvalidField | Conflict, refused: list[Problem]) -> Part:
    if isinstance(made, Imported):
        found = outcome(made.schedule)
        if made.deed != "created" and not isinstance(found, Problem):
            found = {name: found[name] for name in ("id", "next_run_at") if name in found} | {"status": 200}
        return series, found, made
    problem = outcome(made)
    if isinstance(problem, Problem):
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
        view["removed"] = list(imported.removed)
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


def _part(series: Series, found: View | Problem, made: Imported | None) -> View:
    view = {"status": found.status, "problem": found.body()} if isinstance(found, Problem) else dict(found)
    if made is not None:
        trigger = made.schedule.trigger
        view["result"] = made.deed
        view["warnings"] = [*trigger.warnings, *made.schedule.recurrence().warnings]
    return view | {"recurrence": series.recurrence, "timezone": series.timezone}
