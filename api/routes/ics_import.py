"""/api/schedules/import: schedules of the events of an iCalendar file."""

from collections import Counter

from api import hop_limit, idempotency
from api.blueprint import ApiBlueprint
from api.bulk_results import bound_errors
from api.json_types import Loaded, View
from api.problems import Problem
from api.routes.bulk import outcome
from api.services import services
from api.tenancy import tenant
from api.wire import ImportInput, ImportOutput, examples
from scheduler_app.domain.errors import Conflict, InvalidField
from scheduler_app.domain.schedule import Schedule
from scheduler_app.ics import Series
from scheduler_app.usecases.ics_import import ImportedItem, import_calendar

blueprint = ApiBlueprint(
    "imports", __name__, url_prefix="/api/schedules", description="Schedules of the events of a calendar"
)


@blueprint.route("/import", methods=["POST"])
@blueprint.arguments(ImportInput, example=examples.IMPORT)
@blueprint.response(200, ImportOutput)
def import_schedules(given: Loaded) -> View:
    """Create schedules of the events and to-dos of an iCalendar file

    Each item is taken or refused by itself. An event that has a schedule already is refused with a 409.
    """
    _, draft = given["schedule"]
    done = import_calendar(
        services().creation,
        given["ics"],
        draft,
        services().now(),
        tenant=tenant(),
        timezone=given["timezone"],
        id_prefix=given["id_prefix"],
        request_seed=idempotency.request_seed(),
        hops=hop_limit.request_hops(),
    )
    refused: list[Problem] = []
    results = [[_result(series, made, refused) for series, made in each.made] for each in done]
    bound_errors(refused)
    items = [_item(each, parts) for each, parts in zip(done, results, strict=True)]
    counts = Counter(item["result"] for item in items)
    created = sum(not isinstance(found, Problem) for parts in results for _, found, _ in parts)
    return {
        "created": created,
        "refused": len(refused) + sum(each.item.outcome == "refused" for each in done),
        "over": counts["over"],
        "ignored": counts["ignored"],
        "items": items,
    }


def _result(
    series: Series, made: Schedule | InvalidField | Conflict, refused: list[Problem]
) -> tuple[Series, View | Problem, Schedule | None]:
    found = outcome(made)
    if isinstance(found, Problem):
        refused.append(found)
    return series, found, made if isinstance(made, Schedule) else None


def _item(imported: ImportedItem, results: list[tuple[Series, View | Problem, Schedule | None]]) -> View:
    item = imported.item
    view: View = {"component": item.component, "name": item.name}
    if item.uid:
        view["uid"] = item.uid
    result: str = item.outcome
    if item.outcome == "schedules":
        result = "refused" if any(isinstance(found, Problem) for _, found, _ in results) else "created"
    if item.reason:
        view["reason"] = item.reason
    return view | {
        "result": result,
        "schedules": [_part(*each) for each in results],
        "ignored": list(item.ignored),
        "notes": list(item.notes),
    }


def _part(series: Series, found: View | Problem, schedule: Schedule | None) -> View:
    view = {"status": found.status, "problem": found.body()} if isinstance(found, Problem) else dict(found)
    if schedule is not None:
        view["warnings"] = [*schedule.trigger.warnings, *schedule.recurrence().warnings]
    return view | {"recurrence": series.recurrence, "timezone": series.timezone}
