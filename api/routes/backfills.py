"""/api/v1/schedules/{id}/backfill: past occurrences are made up for."""

from scheduler_app.api import idempotency
from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.dry_run import ask
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire.backfill import BackfillInput, BackfillOutput, backfill_shown
from scheduler_app.domain.backfill import RunOverlap
from scheduler_app.usecases.backfills import Asked

blueprint = ApiBlueprint(
    "backfills", __name__, url_prefix="/api/v1/schedules", description="Past occurrences, made up for"
)


@blueprint.route("/<schedule:schedule_id>/backfill", methods=["POST"])
@blueprint.arguments(BackfillInput, example={"from": "2026-01-01T00:00:00Z", "rate_per_second": 5})
@blueprint.response(202, BackfillOutput)
def start_backfill(given: Loaded, schedule_id: str) -> View:
    """Make events for past occurrences of a schedule, at a rate, behind what falls due by itself

    100,000 occurrences at most; one backfill of a schedule and ten in all at a time. Also of a schedule that
    is paused or finished.
    """
    if given["dry_run"]:
        ask()
    made = services()
    now = made.now()
    schedule = made.manager.get(schedule_id, tenant=tenant())
    asked = Asked(
        given["since"],
        given.get("until", now),
        given["rate_per_second"],
        RunOverlap(given["overlap"]),
        given["only_missing"],
    )
    if asked():
        return backfill_shown(made.backfills.plan(schedule, asked, now))
    seed = idempotency.request_seed()
    return backfill_shown(made.backfills.start(schedule, asked, now, request_seed=seed))


@blueprint.route("/<schedule:schedule_id>/backfill", methods=["GET"])
@blueprint.response(200, BackfillOutput)
def get_backfill(schedule_id: str) -> View:
    """Show how far a schedule's newest backfill has come"""
    return backfill_shown(services().backfills.progress(schedule_id, tenant=tenant()))


@blueprint.route("/<schedule:schedule_id>/backfill", methods=["DELETE"])
@blueprint.response(200, BackfillOutput)
def cancel_backfill(schedule_id: str) -> View:
    """Cancel a schedule's backfill and withdraw what waits of it"""
    made = services()
    return backfill_shown(made.backfills.cancel(schedule_id, made.now(), tenant=tenant()))
