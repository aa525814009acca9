"""/api/schedules/preview: when will it really run?"""

from typing import Any

from api import examples
from api.noun import Noun
from api.schemas import PreviewInput, PreviewOutput, PreviewQuery
from api.services import services
from api.tenancy import tenant
from api.views import previewed
from scheduler_app.domain.recurrence import Recurrence

blueprint = Noun("previews", __name__, url_prefix="/api/schedules", description="When will it really run?")


@blueprint.route("/preview", methods=["POST"], query=None)
@blueprint.arguments(PreviewInput, example=examples.PREVIEW)
@blueprint.response(200, PreviewOutput)
def preview_rule(given: dict[str, Any]) -> dict[str, Any]:
    """Show the next occurrences of a rule that is not saved"""
    now = services().now()
    limit, after = given.pop("limit"), given.pop("after", now)
    return previewed(Recurrence.parse(given.pop("rrule"), created_at=now, **given), after, limit)


@blueprint.route("/<schedule:schedule_id>/preview", methods=["GET"])
@blueprint.arguments(PreviewQuery, location="query")
@blueprint.response(200, PreviewOutput)
def preview_schedule(query: dict[str, Any], schedule_id: str) -> dict[str, Any]:
    """Show the next occurrences of a schedule's rule, whatever the schedule's state"""
    schedule = services().manager.get(schedule_id, tenant=tenant())
    return previewed(schedule.recurrence(), query.get("after", services().now()), query["limit"])
