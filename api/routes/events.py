"""/api/v1/events: events with their history; cancelling and redriving them."""

from flask import request

from scheduler_app.api import idempotency
from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import is_dry_run, make_dry_run, services, tenant
from scheduler_app.api.wire import event as wire
from scheduler_app.api.wire import examples
from scheduler_app.api.wire.paging import listed, skipped_shown, window
from scheduler_app.api.wire.schedule import event_shown
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.errors import NotAuthorized
from scheduler_app.domain.ids import WholeId, name_of
from scheduler_app.usecases.deeds.events import STRANGER
from scheduler_app.usecases.duties.redrives import RedriveAsked

MAX_TOKEN = 200

blueprint = ApiBlueprint("events", "/api/v1/events", "Occurrences and their history")


@blueprint.route("", methods=["GET"])
@blueprint.arguments(wire.EventFilter, location="query")
@blueprint.response(200, wire.EventPage)
def list_events(query: Loaded) -> View:
    """List events, newest run time first"""
    asked = window(query)
    found = services().event_lists.page(
        tenant(),
        asked,
        schedule_id=query.get("schedule_id"),
        states=query.get("state"),
        narrowing=query["narrowing"],
    )
    return listed("events", map(event_shown, found.rows), asked, found)


@blueprint.route("/<event:event_id>", methods=["GET"])
@blueprint.response(200, wire.EventOutput)
def get_event(event_id: WholeId) -> View:
    """Get an event with its history"""
    return event_shown(services().events.get(event_id))


@blueprint.route("/<event:event_id>/cancel", methods=["POST"], scope=KeyScope.TRIGGER)
@blueprint.response(200, wire.EventOutput)
def cancel_event(event_id: WholeId) -> View:
    """Cancel an event that is neither running nor finished"""
    return event_shown(services().events.cancel(event_id, services().now()))


@blueprint.route("/<event:event_id>/redrive", methods=["POST"], scope=KeyScope.TRIGGER)
@blueprint.response(202, wire.EventOutput)
def redrive_event(event_id: WholeId) -> View:
    """Send an event that ended in error again, at once; its retries are counted from zero"""
    return event_shown(services().events.redrive(event_id, services().now()))


@blueprint.route("/<event:event_id>/complete", methods=["POST"], scope=KeyScope.TRIGGER)
@blueprint.response(200, wire.EventOutput)
def complete_event(event_id: WholeId) -> View:
    """Say that the work of an event is done; its callback's token is needed, and no API key"""
    return event_shown(services().completions.complete(event_id, _token(), services().now()))


@blueprint.route("/<event:event_id>/fail", methods=["POST"], scope=KeyScope.TRIGGER)
@blueprint.arguments(wire.FailureInput, required=False, example=examples.FAILURE)
@blueprint.response(200, wire.EventOutput)
def fail_event(given: Loaded, event_id: WholeId) -> View:
    """Say that the work of an event failed, so that its next attempt follows; its callback's token is needed,
    and no API key"""
    return event_shown(services().completions.fail(event_id, _token(), given["reason"], services().now()))


@blueprint.route("/redrive", methods=["POST"], scope=KeyScope.TRIGGER)
@blueprint.arguments(wire.RedriveInput, required=False, example=examples.REDRIVE)
@blueprint.response(202, wire.RedriveOutput)
def redrive_events(given: Loaded) -> View:
    """Send events that ended in error again, the newest first, a page a call

    With `cause`, `which` or `when` beats do it: the answer has a `redrive_id`.
    """
    if given["dry_run"]:
        make_dry_run()
    asked = wire.redrive_asked(given)
    if asked is not None:
        return _by_beats(asked)
    page = services().events.redrive_page(
        tenant(),
        window(given),
        services().now(),
        schedule_id=given.get("schedule_id"),
        narrowing=given["narrowing"],
        a_second=given.get("rate"),
        start=given.get("start_at"),
    )
    view: View = {
        "redriven": page.count,
        **skipped_shown(page.skipped),
        "more": page.next is not None,
        "next_cursor": page.next,
    }
    if page.last_due is not None:
        view["last_due_at"] = page.last_due
    return view


def _by_beats(asked: RedriveAsked) -> View:
    assembly = services()
    if is_dry_run():
        return wire.redrive_planned(assembly.redrives.plan(tenant(), asked, assembly.now()))
    seed = idempotency.request_seed()
    made = assembly.redrives.start(tenant(), asked, assembly.now(), request_seed=seed)
    nothing_yet: View = {"redriven": 0, "skipped": [], "more": False, "next_cursor": None}
    return nothing_yet | {"redrive_id": name_of(made.id)}


redrives_blueprint = ApiBlueprint("redrives", "/api/v1/redrives", "Dead letters that beats send again")


@redrives_blueprint.route("/<id:redrive_id>", methods=["GET"])
@redrives_blueprint.response(200, wire.RedriveProgressOutput)
def get_redrive(redrive_id: WholeId) -> View:
    """Show how far a redrive has come"""
    return wire.redrive_shown(services().redrives.get(redrive_id))


@redrives_blueprint.route("/<id:redrive_id>", methods=["DELETE"], scope=KeyScope.TRIGGER)
@redrives_blueprint.response(200, wire.RedriveProgressOutput)
def stop_redrive(redrive_id: WholeId) -> View:
    """Stop a redrive: nothing more is sent, and what is due again already stays so"""
    return wire.redrive_shown(services().redrives.stop(redrive_id, services().now()))


def _token() -> str:
    token = request.headers.get("X-Scheduler-Completion-Token", "")
    if not token or len(token) > MAX_TOKEN:
        raise NotAuthorized(STRANGER)
    return token
