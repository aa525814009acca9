"""/api/events: single events with their history."""

from typing import Any

from flask_smorest import Blueprint

from api.errors import Problem
from api.schemas import EventOutput
from api.services import services

blueprint = Blueprint(
    "events", __name__, url_prefix="/api/events", description="Occurrences and their history"
)


@blueprint.route("/<event_id>", methods=["GET"])
@blueprint.response(200, EventOutput)
def get_event(event_id: str) -> dict[str, Any]:
    """Get an event with its history"""
    event = services().store.events.get(event_id)
    if event is None:
        raise Problem(404, f"there is no event {event_id}; it may be beyond the retention")
    return event
