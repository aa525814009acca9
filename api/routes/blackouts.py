"""/api/v1/blackouts: windows that recur, in which nothing is sent."""

from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire import Message, examples
from scheduler_app.api.wire.blackout import (
    BlackoutEdited,
    BlackoutInput,
    BlackoutList,
    BlackoutOutput,
    blackout_of,
    blackout_shown,
)

blueprint = ApiBlueprint(
    "blackouts", __name__, url_prefix="/api/v1/blackouts", description="Windows in which nothing is sent"
)


@blueprint.route("", methods=["GET"])
@blueprint.response(200, BlackoutList)
def list_blackouts() -> View:
    """List the blackouts, by name"""
    now = services().now()
    found = services().store.blackouts.of(now, tenant=tenant())
    return {"blackouts": [blackout_shown(each, now) for each in found]}


@blueprint.route("/<name:name>", methods=["GET"])
@blueprint.response(200, BlackoutOutput)
def get_blackout(name: str) -> View:
    """Get a blackout, and its window that lasts or comes next"""
    now = services().now()
    return blackout_shown(services().blackouts.get(name, now, tenant=tenant()), now)


@blueprint.route("/<name:name>", methods=["PUT"])
@blueprint.arguments(BlackoutInput, example=examples.BLACKOUT)
@blueprint.response(200, BlackoutEdited)
@blueprint.alt_response(201, schema=BlackoutEdited, description="There was none: it is created")
def put_blackout(given: Loaded, name: str) -> tuple[View, int]:
    """Set a blackout of everything, a schedule, a tag or a destination; it holds within two seconds

    One that is given in the same words stays as it is. One that would always be on, alone or with others of
    the same target, is refused.
    """
    made, now = services(), services().now()
    blackout, done = made.blackouts.put(blackout_of(name, given, now, tenant()), now)
    return blackout_shown(blackout, now) | {"result": done}, 201 if done == "created" else 200


@blueprint.route("/<name:name>", methods=["DELETE"])
@blueprint.response(200, Message)
def delete_blackout(name: str) -> View:
    """Delete a blackout; what it has postponed comes at the time to which it was postponed"""
    services().blackouts.delete(name, tenant=tenant())
    return {"message": "Blackout deleted."}
