"""/api/v1/kill-switch: stops everything, a tag or a destination at once, and lets it go on."""

from flask import g

from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire import examples
from scheduler_app.api.wire.kill_switch import (
    KillSwitchInput,
    KillSwitchList,
    KillSwitchQuery,
    KillSwitchTurnedOff,
    KillSwitchTurnedOn,
    shown,
    stopped_shown,
    target_of,
)

blueprint = ApiBlueprint(
    "kill-switch", __name__, url_prefix="/api/v1/kill-switch", description="Stops much at once, in one write"
)


@blueprint.route("", methods=["GET"])
@blueprint.response(200, KillSwitchList)
def list_kill_switches() -> View:
    """List the kill switches that are on"""
    return {"kill_switches": list(map(shown, services().kill_switches.that_are_on(tenant=tenant())))}


@blueprint.route("", methods=["PUT"])
@blueprint.arguments(KillSwitchInput, example=examples.KILL_SWITCH)
@blueprint.response(200, KillSwitchTurnedOn)
def turn_kill_switch_on(given: Loaded) -> View:
    """Stop everything, a tag or a destination: within a second after the answer no callback of it is sent

    No schedule is changed. What falls due is held, and is due again when the switch is off; requests in
    flight are not cut off. What one pauses by hand meanwhile, or has paused before, stays paused.
    """
    target = target_of(given, tenant())
    made = services()
    by = g.get("key_name") or None
    return stopped_shown(made.kill_switches.turn_on(target, made.now(), note=given.get("note"), by=by))


@blueprint.route("", methods=["DELETE"], query=KillSwitchQuery)
@blueprint.response(200, KillSwitchTurnedOff)
def turn_kill_switch_off() -> View:
    """Turn a kill switch off: held events are due again, and each schedule's policies say which are sent"""
    target = target_of(g.write_query, tenant())
    held = services().kill_switches.turn_off(target)
    return {"message": f"The kill switch of {target} is off.", "held": held}
