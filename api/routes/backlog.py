"""/api/v1/backlog and /api/v1/schedules/{id}/backfill: what is owed, and past occurrences made up for."""

from scheduler_app.api import idempotency
from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import is_dry_run, make_dry_run, services, tenant
from scheduler_app.api.wire import backlog as wire
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.backfill import BackfillOverlap
from scheduler_app.domain.ids import WholeId
from scheduler_app.usecases.duties.backfills import BackfillRequest

backlog_blueprint = ApiBlueprint("backlog", "/api/v1/backlog", "What is late, and what becomes of it")


@backlog_blueprint.route("", methods=["GET"])
@backlog_blueprint.response(200, wire.BacklogOutput)
def get_backlog() -> View:
    """Show what was due before now and waits, by schedule, receiver and policy, and how long it takes"""
    assembly = services()
    return wire.backlog_shown(assembly.backlog.backlog(tenant(), assembly.now()))


@backlog_blueprint.route("/expire", methods=["POST"], scope=KeyScope.TRIGGER)
@backlog_blueprint.arguments(
    wire.BacklogExpireInput, example={"origin": "https://example.com", "dry_run": True}
)
@backlog_blueprint.response(200, wire.BacklogExpired)
def expire_backlog(given: Loaded) -> View:
    """Give up the late events that match a filter, some in each call; they are `expired` and never sent"""
    if given["dry_run"]:
        make_dry_run()
    assembly = services()
    now = assembly.now()
    which = wire.backlog_selection(given, now)
    if is_dry_run():
        return {"expired": assembly.backlog.count(tenant(), which), "more": False}
    count, more = assembly.backlog.expire(tenant(), which, now, limit=given["limit"])
    return {"expired": count, "more": more}


backfills_blueprint = ApiBlueprint("backfills", "/api/v1/schedules", "Past occurrences, made up for")


@backfills_blueprint.route("/<schedule:schedule_id>/backfill", methods=["POST"], scope=KeyScope.TRIGGER)
@backfills_blueprint.arguments(
    wire.BackfillInput, example={"from": "2026-01-01T00:00:00Z", "rate_per_second": 5}
)
@backfills_blueprint.response(202, wire.BackfillOutput)
def start_backfill(given: Loaded, schedule_id: WholeId) -> View:
    """Make events for past occurrences of a schedule, at a rate, behind what falls due by itself

    100,000 occurrences at most; one backfill of a schedule and ten in all at a time. Also of a schedule that
    is paused or finished.
    """
    if given["dry_run"]:
        make_dry_run()
    assembly = services()
    now = assembly.now()
    schedule = assembly.manager.get(schedule_id)
    asked = BackfillRequest(
        given["since"],
        given.get("until", now),
        given["rate_per_second"],
        BackfillOverlap(given["overlap"]),
        given["only_missing"],
    )
    if is_dry_run():
        return wire.backfill_shown(assembly.backfills.plan(schedule, asked, now))
    seed = idempotency.request_seed()
    return wire.backfill_shown(assembly.backfills.start(schedule, asked, now, request_seed=seed))


@backfills_blueprint.route("/<schedule:schedule_id>/backfill", methods=["GET"])
@backfills_blueprint.response(200, wire.BackfillOutput)
def get_backfill(schedule_id: WholeId) -> View:
    """Show how far a schedule's newest backfill has come"""
    return wire.backfill_shown(services().backfills.progress(schedule_id))


@backfills_blueprint.route("/<schedule:schedule_id>/backfill", methods=["DELETE"], scope=KeyScope.TRIGGER)
@backfills_blueprint.response(200, wire.BackfillOutput)
def cancel_backfill(schedule_id: WholeId) -> View:
    """Cancel a schedule's backfill and withdraw what waits of it"""
    assembly = services()
    return wire.backfill_shown(assembly.backfills.cancel(schedule_id, assembly.now()))
