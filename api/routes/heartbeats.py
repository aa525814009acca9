"""/api/v1/heartbeats, and /ping: what something outside calls, with a token in place of a key."""

from flask import Flask, Response, request

from scheduler_app.api import idempotency
from scheduler_app.api.auth import refuse_beyond_limit
from scheduler_app.api.blueprint import ApiBlueprint, accepting_anything
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.problems import HttpProblem
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire import examples
from scheduler_app.api.wire.heartbeat import (
    HeartbeatEdited,
    HeartbeatInput,
    HeartbeatList,
    HeartbeatOutput,
    PingInput,
    heartbeat_draft,
    heartbeat_shown,
    ping_given,
)
from scheduler_app.api.wire.output_schema import MessageSchema
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.heartbeat import ping_of
from scheduler_app.domain.ids import WholeId

blueprint = ApiBlueprint("heartbeats", "/api/v1/heartbeats", "Jobs elsewhere that report by a rule")


@blueprint.route("", methods=["GET"])
@blueprint.response(200, HeartbeatList)
def list_heartbeats() -> View:
    """List the heartbeats, by name"""
    return {"heartbeats": [heartbeat_shown(each) for each in services().heartbeats.all(tenant())]}


@blueprint.route("/<name:name>", methods=["GET"])
@blueprint.response(200, HeartbeatOutput)
def get_heartbeat(name: WholeId) -> View:
    """Get a heartbeat, its newest pings, and what the last one said"""
    return heartbeat_shown(services().heartbeats.find(name))


@blueprint.route("/<name:name>", methods=["PUT"], scope=KeyScope.WRITE)
@blueprint.arguments(HeartbeatInput, example=examples.HEARTBEAT)
@blueprint.response(200, HeartbeatEdited)
@blueprint.alt_response(201, schema=HeartbeatEdited, description="There was none: it is created")
def put_heartbeat(given: Loaded, name: WholeId) -> tuple[View, int]:
    """Set when something outside has to ping; the answer to its creation has the secret `ping_url`

    What is left out has its default. Another rule counts from now on; one that is given in the same words
    goes on.
    """
    heartbeat, done, token = services().heartbeats.put(name, heartbeat_draft(name, given), services().now())
    view = heartbeat_shown(heartbeat) | {"result": done}
    if token is not None:
        view["ping_url"] = ping_url(token)
    return view, 201 if done == "created" else 200


@blueprint.route("/<name:name>", methods=["DELETE"], scope=KeyScope.WRITE)
@blueprint.response(200, MessageSchema)
def delete_heartbeat(name: WholeId) -> View:
    """Delete a heartbeat; its URL opens nothing from then on"""
    services().heartbeats.delete(name, services().now())
    return {"message": "Heartbeat deleted."}


@blueprint.route("/<name:name>/token", methods=["POST"], scope=KeyScope.WRITE)
@blueprint.response(200, HeartbeatOutput)
def rotate_heartbeat_token(name: WholeId) -> View:
    """Give a heartbeat another secret URL, which is shown once; the old one opens nothing from then on"""
    heartbeat, token = services().heartbeats.rotate(name)
    return heartbeat_shown(heartbeat) | {"ping_url": ping_url(token)}


@blueprint.route("/<name:name>/ping", methods=["POST"], scope=KeyScope.TRIGGER)
@blueprint.arguments(PingInput, example={"exit_status": 0, "output": "14 GB in 12 minutes"})
@blueprint.response(200, HeartbeatOutput)
def ping_heartbeat(given: Loaded, name: WholeId) -> View:
    """Report a run with an API key in place of the secret URL"""
    ping = ping_given(given, services().now())
    return heartbeat_shown(services().heartbeats.ping(name, ping, given.get("output", "").encode()))


def ping_url(token: str) -> str:
    base = services().settings.public_url or request.host_url.rstrip("/")
    return f"{base}{PING_PATH}/{idempotency.shown_once(token)}"


PING_PATH = "/ping"


def register_pings(app: Flask) -> None:
    @app.route(f"{PING_PATH}/<token>", methods=["GET", "POST"], provide_automatic_options=False)
    @app.route(f"{PING_PATH}/<token>/<said>", methods=["GET", "POST"], provide_automatic_options=False)
    @accepting_anything
    def ping(token: str, said: str = "") -> Response:
        """A ping of whoever has the token; its body, whatever it is, is what the run says."""
        report = ping_of(said, services().now())
        if report is None:
            raise HttpProblem(404, f"{said[:64]!r} is none of start, fail and an exit status from 0 to 255")
        output = request.get_data() if request.method == "POST" else b""
        if services().heartbeats.ping_by_token(token, report, output) is None:
            refuse_beyond_limit("ping.token_refused")
            raise HttpProblem(404, "this URL pings nothing: it is mistyped, or its heartbeat has another one")
        return Response("OK\n", content_type="text/plain", headers={"Cache-Control": "no-store"})
