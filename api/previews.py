"""/api/schedules/preview: when will it really run?"""

from typing import Any

from api import examples
from api.noun import Noun
from api.schemas import PreviewInput, PreviewOutput, PreviewQuery
from api.services import services
from api.trigger_fields import shown_value
from api.views import previewed
from scheduler_app.domain.triggers import FIELDS, TriggerContext, new_trigger

blueprint = Noun("previews", __name__, url_prefix="/api/schedules", description="When will it really run?")


@blueprint.route("/preview", methods=["POST"], query=None)
@blueprint.arguments(PreviewInput, example=examples.PREVIEW)
@blueprint.response(200, PreviewOutput)
def preview_rule(given: dict[str, Any]) -> dict[str, Any]:
    """Show the next occurrences of a trigger that is not saved"""
    at = given.pop("at", None) or services().now()
    limit, after = given.pop("limit"), given.pop("after", at)
    written = {name: given.pop(name) for name in FIELDS if name in given}
    trigger = new_trigger(written, TriggerContext(at, **given, timezone_given="timezone" in given))
    view = previewed(trigger.recurrence(at), after, limit)
    view["warnings"] = [*trigger.warnings, *view["warnings"]]
    return view | {"trigger": {name: shown_value(value) for name, value in trigger.written.items()}}


@blueprint.route("/<schedule:schedule_id>/preview", methods=["GET"])
@blueprint.arguments(PreviewQuery, location="query")
@blueprint.response(200, PreviewOutput)
def preview_schedule(query: dict[str, Any], schedule_id: str) -> dict[str, Any]:
    """Show the next occurrences of a schedule's rule, whatever the schedule's state"""
    schedule = services().manager.get(schedule_id)
    return previewed(schedule.recurrence(), query.get("after", services().now()), query["limit"])
