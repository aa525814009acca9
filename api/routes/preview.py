"""/api/schedules/preview: the next occurrences of a trigger, saved or not."""

from datetime import datetime

from api.blueprint import ApiBlueprint
from api.json_types import Loaded, View
from api.services import services
from api.tenancy import tenant
from api.wire import PreviewInput, PreviewOutput, PreviewQuery, examples
from api.wire.previewed import previewed
from scheduler_app.domain.draft import Draft
from scheduler_app.domain.not_given import NOT_GIVEN
from scheduler_app.domain.triggers import FIELDS, TriggerContext, new_trigger
from scheduler_app.usecases.calendars import with_calendar

blueprint = ApiBlueprint(
    "previews", __name__, url_prefix="/api/schedules", description="When will it really run?"
)

_QUERY = tuple(PreviewQuery().fields)


@blueprint.route("/preview", methods=["POST"], query=None)
@blueprint.arguments(PreviewInput, example=examples.PREVIEW)
@blueprint.response(200, PreviewOutput)
def preview_rule(given: Loaded) -> View:
    """Show the next occurrences of a trigger that is not saved"""
    at: datetime = given.pop("at", None) or services().now()
    query = {name: given.pop(name) for name in _QUERY if name in given}
    written = {name: given.pop(name) for name in FIELDS if name in given}
    name, on_holiday = given.pop("calendar", NOT_GIVEN), given.pop("on_holiday", NOT_GIVEN)
    draft = with_calendar(Draft(calendar=name, on_holiday=on_holiday), services().store, tenant=tenant())
    context = TriggerContext(at, **given, timezone_given="timezone" in given, calendar=name is not NOT_GIVEN)
    trigger = new_trigger(written, context)
    calendar, recurrence = draft.observed(None, trigger), trigger.recurrence(at)
    observing = recurrence if calendar is None else calendar.observed_by(recurrence)
    return previewed(trigger, calendar, observing, query.get("after", at), query)


@blueprint.route("/<schedule:schedule_id>/preview", methods=["GET"])
@blueprint.arguments(PreviewQuery, location="query")
@blueprint.response(200, PreviewOutput)
def preview_schedule(query: Loaded, schedule_id: str) -> View:
    """Show the next occurrences of a schedule's trigger, whatever the schedule's state"""
    schedule = services().manager.get(schedule_id, tenant=tenant())
    after = query.get("after", services().now())
    return previewed(schedule.trigger, schedule.calendar, schedule.recurrence(), after, query)
