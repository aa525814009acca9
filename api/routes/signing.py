"""/api/v1/schedules/{id}/signing-secret: the secret by which receivers verify callbacks."""

from datetime import timedelta

from scheduler_app.api import idempotency
from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.preconditions import version_wanted
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire import Message, SigningInput, SigningOutput, examples

blueprint = ApiBlueprint(
    "signing",
    __name__,
    url_prefix="/api/v1/schedules",
    description="Standard Webhooks",
)


@blueprint.route("/<schedule:schedule_id>/signing-secret", methods=["POST"])
@blueprint.arguments(SigningInput, required=False, example=examples.ROTATION)
@blueprint.response(201, SigningOutput)
def make_signing_secret(given: Loaded, schedule_id: str) -> View:
    """Generate a signing secret, or replace the one in force

    The replaced secret signs beside the new one for `overlap_seconds`, so that a receiver can switch to the
    new one without refusing a callback.
    """
    now, version = services().now(), version_wanted(schedule_id)
    overlap = timedelta(seconds=given["overlap_seconds"])
    signing = services().manager.sign(schedule_id, now, tenant=tenant(), overlap=overlap, version=version)
    return {
        "signing_secret": idempotency.shown_once(signing.secret),
        "signing_since": signing.since,
        "signing_overlap_until": signing.overlap_until(now),
    }


@blueprint.route("/<schedule:schedule_id>/signing-secret", methods=["DELETE"])
@blueprint.response(200, Message)
def remove_signing_secret(schedule_id: str) -> View:
    """Stop signing; every secret of the schedule is deleted"""
    version = version_wanted(schedule_id)
    services().manager.unsign(schedule_id, services().now(), tenant=tenant(), version=version)
    return {"message": "Callbacks are no longer signed."}
