"""/api/schedules/preview: when will it really run?"""

from typing import Any

from api import examples
from api.noun import Noun
from api.schemas import PreviewInput, PreviewOutput, PreviewQuery
from api.services import services
from api.views import previewed
from scheduler_app.domain.draft import NOT_GIVEN, Draft
from scheduler_app.domain.schedule import TENANT
from scheduler_app.domain.triggers import FIELDS, TriggerContext, new_trigger
from scheduler_app.usecases.calendars import with_calendar

blueprint = Noun("previews", __name__, url_prefix="/api/schedules", description="When will it really run?")


@blueprint.route("/preview", methods=["POST"], query=None)
@blueprint.arguments(PreviewInput, example=examples.PREVIEW)
@blueprint.response(200, PreviewOutput)
def preview_rule(given: dict[str, Any]) -> dict[str, Any]:
    """Show the next occurrences of a trigger that is not saved"""
    at = given.pop("at", None) or services().now()
    limit, after = given.pop("limit"), given.pop("after", at)
    written = {name: given.pop(name) for name in FIELDS if name in given}
    name, on_holiday = given.pop("calendar", NOT_GIVEN), given.pop("on_holiday", NOT_GIVEN)
    draft = with_calendar(Draft(calendar=name, on_holiday=on_holiday), services().store, TENANT)
    trigger = new_trigger(written, TriggerContext(at, **given, timezone_given="timezone" in given))
    return previewed(trigger, draft.observed(None, trigger), at, after, limit)


@blueprint.route("/<schedule:schedule_id>/preview", methods=["GET"])
@blueprint.arguments(PreviewQuery, location="query")
@blueprint.response(200, PreviewOutput)
def preview_schedule(query: dict[str, Any], schedule_id: str) -> dict[str, Any]:
    """Show the next occurrences of a schedule's trigger, whatever the schedule's state"""
    schedule = services().manager.get(schedule_id)
    return previewed(
        schedule.trigger,
        schedule.calendar,
        schedule.created_at,
        query.get("after", services().now()),
        query["limit"],
    )
