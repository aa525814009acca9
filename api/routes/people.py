"""/api/v1/people: who has signed in; and /api/v1/sign-in: command lines that people let in."""

from flask import request

from scheduler_app.api import idempotency
from scheduler_app.api.auth import refuse_beyond_limit
from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.scopes import NO_SCOPE
from scheduler_app.api.services import caller, services, tenant
from scheduler_app.api.wire.access import (
    EndInput,
    PersonList,
    PersonOutput,
    PersonToken,
    SessionsEnded,
    VerifierInput,
    person_shown,
)
from scheduler_app.api.wire.output_schema import MessageSchema
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.errors import NotFound
from scheduler_app.domain.ids import WholeId

people_blueprint = ApiBlueprint("people", "/api/v1/people", "People who sign in with their company's account")


@people_blueprint.route("", methods=["GET"], scope=KeyScope.ADMIN)
@people_blueprint.response(200, PersonList)
def list_people() -> View:
    """List the people who have signed in, who was seen last first"""
    return {"people": [person_shown(each) for each in services().people.all(tenant(), caller())]}


@people_blueprint.route("/<id:person_id>", methods=["GET"], scope=KeyScope.ADMIN)
@people_blueprint.response(200, PersonOutput)
def get_person(person_id: WholeId) -> View:
    """Get a person who has signed in"""
    return person_shown(services().people.find(person_id, caller()))


@people_blueprint.route("/<id:person_id>/sessions", methods=["DELETE"], scope=KeyScope.ADMIN)
@people_blueprint.response(200, SessionsEnded)
def end_sessions(person_id: WholeId) -> View:
    """End every sign-in of a person, in browsers at once and on command lines within five seconds

    The person may sign in again, unless the provider or OIDC_ROLES say otherwise.
    """
    return {"ended": services().people.end_sessions(person_id, caller(), request.remote_addr or "")}


sign_in_blueprint = ApiBlueprint("sign-in", "/api/v1/sign-in", "Command lines that people let in")


@sign_in_blueprint.route("/token", methods=["POST"], scope=NO_SCOPE)
@sign_in_blueprint.arguments(
    VerifierInput, example={"verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"}
)
@sign_in_blueprint.response(200, PersonToken)
def redeem_verifier(given: Loaded) -> View:
    """Get the token of a command line that a person has let in, once

    Ask again every few seconds while the answer is 404: the person has not let it in yet.
    """
    sign_ins, now = services().sign_ins, services().now()
    address = request.remote_addr or ""
    session, token = sign_ins.redeem_verifier(given["verifier"], given.get("code"), address, now)
    return {
        "token": idempotency.shown_once(token),
        "expires_at": session.expires_at,
        "name": session.called,
    }


@sign_in_blueprint.route("/end", methods=["POST"], scope=NO_SCOPE)
@sign_in_blueprint.arguments(EndInput, example={"token": "rrp_…"})
@sign_in_blueprint.response(200, MessageSchema)
def end_sign_in(given: Loaded) -> View:
    """End the sign-in of a command line: its token is all that is needed"""
    try:
        services().sign_ins.end_token(given["token"], request.remote_addr or "")
    except NotFound:
        refuse_beyond_limit("api.key_refused")
        raise
    return {"message": "Signed out; within five seconds the token opens nothing."}
