"""/api/schedules: a route is arguments, one call, an answer."""

from typing import Any

from flask_smorest import Blueprint

from api.errors import Problem
from api.schemas import (
    Edited,
    EventPage,
    Message,
    NewSchedule,
    Paging,
    ScheduleFilter,
    ScheduleInput,
    ScheduleOutput,
    SchedulePage,
    Triggered,
)
from api.services import services
from api.views import shown
from scheduler_app.domain.draft import Draft
from scheduler_app.domain.event import FINAL, LIVING
from scheduler_app.domain.schedule import TENANT

blueprint = Blueprint(
    "schedules", __name__, url_prefix="/api/schedules", description="Rules, callbacks and policies"
)


@blueprint.route("", methods=["POST"])
@blueprint.arguments(NewSchedule)
@blueprint.response(201, ScheduleOutput)
def create_schedule(given: tuple[str | None, Draft]) -> dict[str, Any]:
    """Create a schedule"""
    made, now = services(), services().now()
    schedule_id, draft = given
    return shown(made.manager.create(draft, now, schedule_id=schedule_id), now)


@blueprint.route("", methods=["GET"])
@blueprint.arguments(ScheduleFilter, location="query")
@blueprint.response(200, SchedulePage)
def list_schedules(query: dict[str, Any]) -> dict[str, Any]:
    """List schedules, newest first"""
    limit, page = query.pop("limit"), query.pop("page")
    now = services().now()
    found = services().store.schedules.list(tenant=TENANT, skip=(page - 1) * limit, limit=limit, **query)
    return {"schedules": [shown(schedule, now) for schedule in found], "page": page, "limit": limit}


@blueprint.route("/<schedule_id>", methods=["GET"])
@blueprint.response(200, ScheduleOutput)
def get_schedule(schedule_id: str) -> dict[str, Any]:
    """Get a schedule"""
    return shown(services().manager.get(schedule_id), services().now())


@blueprint.route("/<schedule_id>", methods=["PUT"])
@blueprint.arguments(ScheduleInput)
@blueprint.response(200, Edited)
def update_schedule(draft: Draft, schedule_id: str) -> dict[str, Any]:
    """Change a schedule: the fields given are set, the others stay"""
    now = services().now()
    edited = services().manager.edit(schedule_id, draft, now)
    return {**shown(edited, now), "message": "Schedule updated successfully."}


@blueprint.route("/<schedule_id>", methods=["DELETE"])
@blueprint.response(200, Message)
def delete_schedule(schedule_id: str) -> dict[str, Any]:
    """Delete a schedule; what it has not sent is withdrawn, its history stays"""
    services().manager.delete(schedule_id, services().now())
    return {"message": "Schedule and associated events deleted."}


@blueprint.route("/<schedule_id>/pause", methods=["POST"])
@blueprint.response(200, ScheduleOutput)
def pause_schedule(schedule_id: str) -> dict[str, Any]:
    """Pause: nothing after this instant is sent"""
    now = services().now()
    return shown(services().manager.pause(schedule_id, now), now)


@blueprint.route("/<schedule_id>/resume", methods=["POST"])
@blueprint.response(200, ScheduleOutput)
def resume_schedule(schedule_id: str) -> dict[str, Any]:
    """Resume a paused schedule, or one in error whose rule was mended"""
    now = services().now()
    return shown(services().manager.resume(schedule_id, now), now)


@blueprint.route("/<schedule_id>/trigger", methods=["POST"])
@blueprint.response(202, Triggered)
def trigger_schedule(schedule_id: str) -> dict[str, Any]:
    """Call the callback at once, whatever the rule or the state"""
    event = services().manager.trigger(schedule_id, services().now())
    return {"event_id": event.id, "message": "Event triggered."}


@blueprint.route("/<schedule_id>/events/pending", methods=["GET"])
@blueprint.arguments(Paging, location="query")
@blueprint.response(200, EventPage)
def list_pending_events(query: dict[str, int], schedule_id: str) -> dict[str, Any]:
    """List what is to come, newest first"""
    return _events(schedule_id, LIVING, **query)


@blueprint.route("/<schedule_id>/events/history", methods=["GET"])
@blueprint.arguments(Paging, location="query")
@blueprint.response(200, EventPage)
def list_archived_events(query: dict[str, int], schedule_id: str) -> dict[str, Any]:
    """List what was done, newest first; that of a deleted schedule too"""
    return _events(schedule_id, FINAL, **query)


def _events(schedule_id: str, states: Any, *, page: int, limit: int) -> dict[str, Any]:
    store = services().store
    events = store.events.of_schedule(schedule_id, states, skip=(page - 1) * limit, limit=limit)
    if not events and not store.schedules.exists(schedule_id):
        raise Problem(404, f"there is no schedule {schedule_id}")
    return {"events": events, "page": page, "limit": limit}
