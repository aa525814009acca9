"""/api/v1/schedules/bulk: many schedules in one request."""

from marshmallow import ValidationError

from scheduler_app.api import hop_limit, idempotency
from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.bulk_results import bulk_results
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.problems import Problem, of_field, of_validation
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire import BulkInput, BulkOutput, examples
from scheduler_app.domain.errors import Conflict, InvalidField
from scheduler_app.domain.schedule import Schedule

blueprint = ApiBlueprint(
    "bulk", __name__, url_prefix="/api/v1/schedules", description="Many schedules in one request"
)


@blueprint.route("/bulk", methods=["POST"])
@blueprint.arguments(BulkInput, example=examples.BULK)
@blueprint.response(200, BulkOutput)
def create_schedules(given: Loaded) -> View:
    """Create up to 1,000 schedules; each is taken or refused by itself"""
    items = given["schedules"]
    drafts = [item for item in items if not isinstance(item, ValidationError)]
    now, seed = services().now(), idempotency.request_seed()
    hops = hop_limit.request_hops()
    made = iter(services().creation.create_many(drafts, now, tenant=tenant(), request_seed=seed, hops=hops))
    outcomes = [
        of_validation(item) if isinstance(item, ValidationError) else outcome(next(made)) for item in items
    ]
    return bulk_results(outcomes)


def outcome(made: Schedule | InvalidField | Conflict) -> View | Problem:
    """The result of an item that was created, or why it was refused."""
    if isinstance(made, InvalidField):
        return of_field(made)
    if isinstance(made, Conflict):
        return Problem(409, str(made))
    result: View = {"status": 201, "id": made.id}
    if made.next_run_at:
        result["next_run_at"] = made.next_run_at
    if made.signing:
        result["signing_secret"] = idempotency.shown_once(made.signing.secret)
    return result
