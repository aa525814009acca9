"""/api/v1/schedules/{id}/why: why a schedule fires at an instant, or does not."""

from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire import WhyOutput, WhyQuery, explained
from scheduler_app.api.wire.jittered import Jitter
from scheduler_app.usecases.explanation import explain_schedule, zone_of

blueprint = ApiBlueprint(
    "explanations", __name__, url_prefix="/api/v1/schedules", description="Why does it run, or not?"
)


@blueprint.route("/<schedule:schedule_id>/why", methods=["GET"])
@blueprint.arguments(WhyQuery, location="query")
@blueprint.response(200, WhyOutput)
def explain_schedule_at(query: Loaded, schedule_id: str) -> View:
    """Explain why a schedule fires at an instant, past or future, or why it does not; also a deleted one"""
    made = services()
    schedule, explanation, event = explain_schedule(
        made.store, schedule_id, query["at"], made.now(), tenant=tenant()
    )
    jitter = Jitter(schedule.jitter_seconds, schedule.id)
    return explained(explanation, event, zone_of(schedule), jitter)
