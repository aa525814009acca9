"""/api/v1/kill-switch and /api/v1/blackouts: what keeps callbacks from being sent."""

from flask import g

from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import caller, services, tenant
from scheduler_app.api.wire import examples
from scheduler_app.api.wire.blackout import (
    BlackoutEdited,
    BlackoutInput,
    BlackoutList,
    BlackoutOutput,
    blackout_of,
    blackout_shown,
)
from scheduler_app.api.wire.kill_switch import (
    KillSwitchInput,
    KillSwitchList,
    KillSwitchQuery,
    KillSwitchTurnedOff,
    KillSwitchTurnedOn,
    kill_switch_shown,
    target_of,
    turned_on_shown,
)
from scheduler_app.api.wire.output_schema import MessageSchema
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.ids import WholeId

kill_switch_blueprint = ApiBlueprint("kill-switch", "/api/v1/kill-switch", "Stops much at once, in one write")


@kill_switch_blueprint.route("", methods=["GET"])
@kill_switch_blueprint.response(200, KillSwitchList)
def list_kill_switches() -> View:
    """List the kill switches that are on"""
    return {"kill_switches": list(map(kill_switch_shown, services().kill_switches.that_are_on(tenant())))}


@kill_switch_blueprint.route("", methods=["PUT"], scope=KeyScope.TRIGGER)
@kill_switch_blueprint.arguments(KillSwitchInput, example=examples.KILL_SWITCH)
@kill_switch_blueprint.response(200, KillSwitchTurnedOn)
def turn_kill_switch_on(given: Loaded) -> View:
    """Stop everything, a tag or a destination: within a second after the answer no callback of it is sent

    No schedule is changed. What falls due is held, and is due again when the switch is off; requests in
    flight are not cut off. What one pauses by hand meanwhile, or has paused before, stays paused.
    """
    target = target_of(given, tenant())
    assembly = services()
    by = caller().name or None
    return turned_on_shown(
        assembly.kill_switches.turn_on(target, assembly.now(), note=given.get("note"), by=by)
    )


@kill_switch_blueprint.route("", methods=["DELETE"], scope=KeyScope.TRIGGER, query=KillSwitchQuery)
@kill_switch_blueprint.response(200, KillSwitchTurnedOff)
def turn_kill_switch_off() -> View:
    """Turn a kill switch off: held events are due again, and each schedule's policies say which are sent"""
    target = target_of(g.write_query, tenant())
    held = services().kill_switches.turn_off(target)
    return {"message": f"The kill switch of {target} is off.", "held": held}


blackouts_blueprint = ApiBlueprint("blackouts", "/api/v1/blackouts", "Windows in which nothing is sent")


@blackouts_blueprint.route("", methods=["GET"])
@blackouts_blueprint.response(200, BlackoutList)
def list_blackouts() -> View:
    """List the blackouts, by name"""
    now = services().now()
    found = services().blackouts.of(tenant(), now)
    return {"blackouts": [blackout_shown(each, now) for each in found]}


@blackouts_blueprint.route("/<name:name>", methods=["GET"])
@blackouts_blueprint.response(200, BlackoutOutput)
def get_blackout(name: WholeId) -> View:
    """Get a blackout, and its window that lasts or comes next"""
    now = services().now()
    return blackout_shown(services().blackouts.get(name, now), now)


@blackouts_blueprint.route("/<name:name>", methods=["PUT"], scope=KeyScope.WRITE)
@blackouts_blueprint.arguments(BlackoutInput, example=examples.BLACKOUT)
@blackouts_blueprint.response(200, BlackoutEdited)
@blackouts_blueprint.alt_response(201, schema=BlackoutEdited, description="There was none: it is created")
def put_blackout(given: Loaded, name: WholeId) -> tuple[View, int]:
    """Set a blackout of everything, a schedule, a tag or a destination; it holds within two seconds

    One that is given in the same words stays as it is. One that would always be on, alone or with others of
    the same target, is refused.
    """
    assembly, now = services(), services().now()
    blackout, done = assembly.blackouts.put(blackout_of(name, given, now), now)
    return blackout_shown(blackout, now) | {"result": done}, 201 if done == "created" else 200


@blackouts_blueprint.route("/<name:name>", methods=["DELETE"], scope=KeyScope.WRITE)
@blackouts_blueprint.response(200, MessageSchema)
def delete_blackout(name: WholeId) -> View:
    """Delete a blackout; what it has postponed comes at the time to which it was postponed"""
    services().blackouts.delete(name)
    return {"message": "Blackout deleted."}
