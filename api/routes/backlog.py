"""/api/v1/backlog: what is owed after an outage, and giving it up."""

from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.dry_run import ask, asked
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire.backlog import (
    BacklogExpired,
    BacklogExpireInput,
    BacklogOutput,
    backlog_shown,
    which_of,
)

blueprint = ApiBlueprint(
    "backlog", __name__, url_prefix="/api/v1/backlog", description="What is late, and what becomes of it"
)


@blueprint.route("", methods=["GET"])
@blueprint.response(200, BacklogOutput)
def get_backlog() -> View:
    """Show what was due before now and waits, by schedule, receiver and policy, and how long it takes"""
    made = services()
    return backlog_shown(made.backlog.backlog(made.now(), tenant=tenant()))


@blueprint.route("/expire", methods=["POST"])
@blueprint.arguments(BacklogExpireInput, example={"origin": "https://example.com", "dry_run": True})
@blueprint.response(200, BacklogExpired)
def expire_backlog(given: Loaded) -> View:
    """Give up the late events that match a filter, some in each call; they are `expired` and never sent"""
    if given["dry_run"]:
        ask()
    made = services()
    now = made.now()
    which = which_of(given, now, tenant())
    if asked():
        return {"expired": made.backlog.count(which, tenant=tenant()), "more": False}
    count, more = made.backlog.expire(which, now, tenant=tenant(), limit=given["limit"])
    return {"expired": count, "more": more}
