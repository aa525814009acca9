"""/api/v1/schedules/{id}/edits: who changed what, and back again."""

from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.preconditions import etag, version_wanted
from scheduler_app.api.reverting import revert
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire import EditPage, Paging, ScheduleOutput, listed, window
from scheduler_app.api.wire.edits import edit_shown
from scheduler_app.api.wire.presenters import shown
from scheduler_app.domain.errors import NotFound

blueprint = ApiBlueprint("edits_log", __name__, url_prefix="/api/v1/schedules", description="Who changed it?")


@blueprint.route("/<schedule:schedule_id>/edits", methods=["GET"])
@blueprint.arguments(Paging, location="query")
@blueprint.response(200, EditPage)
def list_edits(query: Loaded, schedule_id: str) -> View:
    """List who edited a schedule, when, and what; also a deleted one"""
    store, asked = services().store, window(query)
    found = store.edits.page(asked, schedule_id, tenant=tenant())
    if not found.rows and not store.schedules.exists(schedule_id, tenant=tenant()):
        raise NotFound(f"there is no schedule {schedule_id}")
    edits = list(map(edit_shown, found.rows))
    return listed("edits", edits, asked, found)


@blueprint.route("/<schedule:schedule_id>/edits/<edit_id>/revert", methods=["POST"])
@blueprint.response(200, ScheduleOutput)
def revert_edit(schedule_id: str, edit_id: str) -> tuple[View, dict[str, str]]:
    """Take an edit back: its fields become what they were; secrets stay as they are"""
    view = shown(revert(schedule_id, edit_id, version_wanted(schedule_id)), services().now())
    return view, {"ETag": etag(view)}
