"""/api/events: events with their history; what people do with single ones."""

from typing import Any

from api import dry_run, examples
from api.noun import Noun
from api.schemas import EventFilter, EventOutput, EventPage, RedriveInput, RedriveOutput, window
from api.services import services
from api.tenancy import tenant
from api.views import event_shown

MAX_SKIPPED = 100

blueprint = Noun("events", __name__, url_prefix="/api/events", description="Occurrences and their history")


@blueprint.route("", methods=["GET"])
@blueprint.arguments(EventFilter, location="query")
@blueprint.response(200, EventPage)
def list_events(query: dict[str, Any]) -> dict[str, Any]:
    """List events, newest run time first"""
    limit, page = query["limit"], query["page"]
    found = services().store.event_lists.page(
        window(query),
        tenant=tenant(),
        schedule_id=query.get("schedule_id"),
        states=query.get("state"),
        narrowing=query["narrowing"],
    )
    return {
        "events": list(map(event_shown, found.rows)),
        "page": page,
        "limit": limit,
        "next_cursor": found.next,
    }


@blueprint.route("/<event:event_id>", methods=["GET"])
@blueprint.response(200, EventOutput)
def get_event(event_id: str) -> dict[str, Any]:
    """Get an event with its history"""
    return event_shown(services().events.get(event_id, tenant=tenant()))


@blueprint.route("/<event:event_id>/cancel", methods=["POST"])
@blueprint.response(200, EventOutput)
def cancel_event(event_id: str) -> dict[str, Any]:
    """Withdraw an event that is not in flight and not finished"""
    return event_shown(services().events.cancel(event_id, services().now(), tenant=tenant()))


@blueprint.route("/<event:event_id>/redrive", methods=["POST"])
@blueprint.response(202, EventOutput)
def redrive_event(event_id: str) -> dict[str, Any]:
    """Send an event that ended in error again, at once; its retries are counted from zero"""
    return event_shown(services().events.redrive(event_id, services().now(), tenant=tenant()))


@blueprint.route("/redrive", methods=["POST"])
@blueprint.arguments(RedriveInput, required=False, example=examples.REDRIVE)
@blueprint.response(202, RedriveOutput)
def redrive_events(given: dict[str, Any]) -> dict[str, Any]:
    """Send events that ended in error again, the newest first, a page a call"""
    if given["dry_run"]:
        dry_run.ask()
    page = services().events.redrive_page(
        window(given),
        services().now(),
        tenant=tenant(),
        schedule_id=given.get("schedule_id"),
        narrowing=given["narrowing"],
    )
    view: dict[str, Any] = {
        "redriven": page.count,
        "skipped": [{"id": each, "reason": reason} for each, reason in page.skipped[:MAX_SKIPPED]],
        "more": page.next is not None,
        "next_cursor": page.next,
    }
    if len(page.skipped) > MAX_SKIPPED:
        view["skipped_omitted"] = len(page.skipped) - MAX_SKIPPED
    return view
