"""/api/schedules/{id}/signing-secret: the secret that receivers check callbacks with."""

from datetime import timedelta
from typing import Any

from api import examples, idempotency
from api.conditions import version_wanted
from api.noun import Noun
from api.schemas import Message, SigningInput, SigningOutput
from api.services import services
from api.tenancy import tenant
from api.views import signing_shown

blueprint = Noun(
    "signing",
    __name__,
    url_prefix="/api/schedules",
    description="Standard Webhooks",
)


@blueprint.route("/<schedule:schedule_id>/signing-secret", methods=["POST"])
@blueprint.arguments(SigningInput, required=False, example=examples.ROTATION)
@blueprint.response(201, SigningOutput)
def make_signing_secret(given: dict[str, int], schedule_id: str) -> dict[str, Any]:
    """Make a signing secret, or replace the one in force

    The secret that is replaced signs beside the new one for `overlap_seconds`, so that a receiver can change
    over without refusing a callback.
    """
    now, version = services().now(), version_wanted(schedule_id)
    overlap = timedelta(seconds=given["overlap_seconds"])
    signing = services().manager.sign(schedule_id, now, tenant=tenant(), overlap=overlap, version=version)
    return {"signing_secret": idempotency.shown_once(signing.secret), **signing_shown(signing, now)}


@blueprint.route("/<schedule:schedule_id>/signing-secret", methods=["DELETE"])
@blueprint.response(200, Message)
def remove_signing_secret(schedule_id: str) -> dict[str, Any]:
    """Sign no more; every secret of the schedule is forgotten"""
    version = version_wanted(schedule_id)
    services().manager.unsign(schedule_id, services().now(), tenant=tenant(), version=version)
    return {"message": "Callbacks are no longer signed."}
