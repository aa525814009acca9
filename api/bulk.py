"""/api/schedules/bulk: many schedules in one request."""

from typing import Any

from marshmallow import ValidationError

from api import examples, hops, idempotency
from api.errors import Problem, of_field, of_validation
from api.noun import Noun
from api.schemas import BulkInput, BulkOutput
from api.services import services
from api.tenancy import tenant
from scheduler_app.domain.errors import Conflict, InvalidField
from scheduler_app.domain.schedule import Schedule

#: Fields that are wrong are named for so many in one answer; the others are counted.
MAX_ERRORS_TOGETHER = 1_000

blueprint = Noun("bulk", __name__, url_prefix="/api/schedules", description="Many schedules in one request")


@blueprint.route("/bulk", methods=["POST"])
@blueprint.arguments(BulkInput, example=examples.BULK)
@blueprint.response(200, BulkOutput)
def create_schedules(given: dict[str, Any]) -> dict[str, Any]:
    """Create up to 1,000 schedules; each is taken or refused by itself"""
    items = given["schedules"]
    drafts = [item for item in items if not isinstance(item, ValidationError)]
    now, seed = services().now(), idempotency.seed()
    made = iter(
        services().creation.create_many(drafts, now, tenant=tenant(), request_seed=seed, hops=hops.given())
    )
    results = [
        _refused(of_validation(item)) if isinstance(item, ValidationError) else _result(next(made))
        for item in items
    ]
    _bound_errors(results)
    created = sum(result["status"] == 201 for result in results)
    return {"created": created, "refused": len(results) - created, "results": results}


def _result(made: Schedule | InvalidField | Conflict) -> dict[str, Any]:
    if isinstance(made, InvalidField):
        return _refused(of_field(made))
    if isinstance(made, Conflict):
        return _refused(Problem(409, str(made)))
    result: dict[str, Any] = {"status": 201, "id": made.id}
    if made.next_run_at:
        result["next_run_at"] = made.next_run_at
    if made.signing:
        result["signing_secret"] = idempotency.shown_once(made.signing.secret)
    return result


def _refused(problem: Problem) -> dict[str, Any]:
    return {"status": problem.status, "problem": problem.body()}


def _bound_errors(results: list[dict[str, Any]]) -> None:
    room = MAX_ERRORS_TOGETHER
    for problem in (result["problem"] for result in results if "problem" in result):
        errors = problem.get("errors", [])
        if len(errors) > room:
            problem["errors"] = errors[:room]
            problem["errors_omitted"] = problem.get("errors_omitted", 0) + len(errors) - room
        room -= min(room, len(errors))
