"""/api/v1/schedules/preview: the next occurrences of a trigger, saved or not."""

from typing import Any, cast

from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire import PreviewInput, PreviewOutput, PreviewQuery, examples
from scheduler_app.api.wire.blackout import note_blackouts
from scheduler_app.api.wire.jittered import Jitter
from scheduler_app.api.wire.previewed import previewed, previewed_input

blueprint = ApiBlueprint(
    "previews", __name__, url_prefix="/api/v1/schedules", description="When will it really run?"
)


@blueprint.route("/preview", methods=["POST"], query=None)
@blueprint.arguments(PreviewInput, example=examples.PREVIEW)
@blueprint.response(200, PreviewOutput)
def preview_rule(given: Loaded) -> View:
    """Show the next occurrences of a trigger that is not saved"""
    made = services()
    return previewed_input(given, made.store, made.now(), tenant=tenant())


@blueprint.route("/<schedule:schedule_id>/preview", methods=["GET"])
@blueprint.arguments(PreviewQuery, location="query")
@blueprint.response(200, PreviewOutput)
def preview_schedule(query: Loaded, schedule_id: str) -> View:
    """Show the next occurrences of a schedule's trigger, whatever the schedule's state"""
    schedule = services().manager.get(schedule_id, tenant=tenant())
    now = services().now()
    after = query.get("after", now)
    jitter = Jitter(schedule.jitter_seconds, schedule.id)
    view = previewed(schedule.trigger, schedule.calendar, schedule.recurrence(), after, query, jitter)
    note_blackouts(cast("list[dict[str, Any]]", view["occurrences"]), schedule, services().store, now)
    return view
