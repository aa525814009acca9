"""/api/schedules/bulk: many schedules in one request."""

from marshmallow import ValidationError

from api import hop_limit, idempotency
from api.blueprint import ApiBlueprint
from api.json_types import Loaded, View
from api.problems import Problem, of_field, of_validation
from api.services import services
from api.wire import BulkInput, BulkOutput, examples
from scheduler_app.domain.errors import Conflict, InvalidField
from scheduler_app.domain.schedule import Schedule

#: An answer names this many wrong fields of all its items together, and counts the others.
MAX_ERRORS_TOGETHER = 1_000

blueprint = ApiBlueprint(
    "bulk", __name__, url_prefix="/api/schedules", description="Many schedules in one request"
)


@blueprint.route("/bulk", methods=["POST"])
@blueprint.arguments(BulkInput, example=examples.BULK)
@blueprint.response(200, BulkOutput)
def create_schedules(given: Loaded) -> View:
    """Create up to 1,000 schedules; each is taken or refused by itself"""
    items = given["schedules"]
    drafts = [item for item in items if not isinstance(item, ValidationError)]
    now, seed = services().now(), idempotency.request_seed()
    made = iter(services().creation.create_many(drafts, now, seed=seed, hops=hop_limit.request_hops()))
    results = [
        _refused(of_validation(item)) if isinstance(item, ValidationError) else _result(next(made))
        for item in items
    ]
    _bound_errors(results)
    created = sum(result["status"] == 201 for result in results)
    return {"created": created, "refused": len(results) - created, "results": results}


def _result(made: Schedule | InvalidField | Conflict) -> View:
    if isinstance(made, InvalidField):
        return _refused(of_field(made))
    if isinstance(made, Conflict):
        return _refused(Problem(409, str(made)))
    result: View = {"status": 201, "id": made.id}
    if made.next_run_at:
        result["next_run_at"] = made.next_run_at
    if made.signing:
        result["signing_secret"] = idempotency.shown_once(made.signing.secret)
    return result


def _refused(problem: Problem) -> View:
    return {"status": problem.status, "problem": problem.body()}


def _bound_errors(results: list[View]) -> None:
    room = MAX_ERRORS_TOGETHER
    for problem in (result["problem"] for result in results if "problem" in result):
        errors = problem.get("errors", [])
        if len(errors) > room:
            problem["errors"] = errors[:room]
            problem["errors_omitted"] = problem.get("errors_omitted", 0) + len(errors) - room
        room -= min(room, len(errors))
