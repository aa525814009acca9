"""/api/events: events with their history; what people do with single ones."""

from typing import Any

from api import examples
from api.noun import Noun
from api.schemas import EventFilter, EventOutput, EventPage, RedriveInput, RedriveOutput, window
from api.services import services
from scheduler_app.domain.event import State
from scheduler_app.domain.schedule import TENANT

blueprint = Noun("events", __name__, url_prefix="/api/events", description="Occurrences and their history")


@blueprint.route("", methods=["GET"])
@blueprint.arguments(EventFilter, location="query")
@blueprint.response(200, EventPage)
def list_events(query: dict[str, Any]) -> dict[str, Any]:
    """List events, newest run time first"""
    limit, page = query["limit"], query["page"]
    states = {State(query["state"])} if "state" in query else None
    found = services().store.event_lists.page(
        window(query), tenant=TENANT, schedule_id=query.get("schedule_id"), states=states
    )
    return {"events": found.rows, "page": page, "limit": limit, "next_cursor": found.following}


@blueprint.route("/<event:event_id>", methods=["GET"])
@blueprint.response(200, EventOutput)
def get_event(event_id: str) -> dict[str, Any]:
    """Get an event with its history"""
    return services().events.get(event_id)


@blueprint.route("/<event:event_id>/cancel", methods=["POST"])
@blueprint.response(200, EventOutput)
def cancel_event(event_id: str) -> dict[str, Any]:
    """Withdraw an event that is not in flight and not finished"""
    return services().events.cancel(event_id, services().now())


@blueprint.route("/<event:event_id>/redrive", methods=["POST"])
@blueprint.response(202, EventOutput)
def redrive_event(event_id: str) -> dict[str, Any]:
    """Send an event that ended in error again, at once, with its retries counted anew"""
    return services().events.redrive(event_id, services().now())


@blueprint.route("/redrive", methods=["POST"])
@blueprint.arguments(RedriveInput, required=False, example=examples.REDRIVE)
@blueprint.response(202, RedriveOutput)
def redrive_events(given: dict[str, Any]) -> dict[str, Any]:
    """Send events that ended in error again, the newest first, a page a call"""
    asked = window(given)
    found = services().events.redrive_page(
        asked, services().now(), tenant=TENANT, schedule_id=given.get("schedule_id")
    )
    more = found.following is not None
    return {"redriven": found.count, "more": more, "next_cursor": found.following}
