"""/api/v1/failures and /api/v1/status: what fails, since when and for whom, and the verdict on the whole."""

from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import caller, services, tenant
from scheduler_app.api.wire import failure as wire
from scheduler_app.api.wire.paging import listed, window
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.ids import WholeId
from scheduler_app.health.status import look_at_system

failures_blueprint = ApiBlueprint("failures", "/api/v1/failures", "What fails, and for whom")


@failures_blueprint.route("", methods=["GET"])
@failures_blueprint.arguments(wire.CauseChoice, location="query")
@failures_blueprint.response(200, wire.CausePage)
def list_failures(query: Loaded) -> View:
    """List failures by their cause, those that began last first

    Failures of one receiver with one answer or error are one, from the first failed attempt after the last
    success until its schedules have succeeded again, or five minutes of successes without such a failure.
    """
    asked = window(query)
    found = services().failures.page(tenant(), asked, wire.chosen_causes(query), caller().tags)
    return listed("failures", wire.causes_shown(found.rows), asked, found)


@failures_blueprint.route("/<id:failure_id>", methods=["GET"])
@failures_blueprint.response(200, wire.CauseDetails)
def get_failure(failure_id: WholeId) -> View:
    """Get a failure with its newest events, its trend and what preceded it"""
    return wire.cause_details(services().failures.get(failure_id, caller().tags))


@failures_blueprint.route("/<id:failure_id>/dismiss", methods=["POST"], scope=KeyScope.TRIGGER)
@failures_blueprint.arguments(wire.DismissInput, required=False, example={"note": "known, ticket 4711"})
@failures_blueprint.response(200, wire.DismissedOutput)
def dismiss_failure(given: Loaded, failure_id: WholeId) -> View:
    """Take a failure out of the verdict; with `events` its dead letters are expired, too"""
    report, expired, more = services().failures.dismiss(
        failure_id,
        services().now(),
        by=caller().name or "",
        note=given["note"],
        events=given["events"],
    )
    return wire.cause_details(report) | {"expired": expired, "more": more}


status_blueprint = ApiBlueprint("status", "/api/v1/status", "Whether all is well")


@status_blueprint.route("", methods=["GET"])
@status_blueprint.response(200, wire.StatusOutput)
def get_status() -> View:
    """Say whether all is well, and if not, since when, why and what to do"""
    assembly = services()
    look = look_at_system(tenant(), assembly.store, assembly.publisher, assembly.now())
    return wire.status_shown(look.status)
