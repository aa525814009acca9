"""/api/v1/destinations: named receivers, and what is sent to them."""

import zlib

from flask import Response, g, request

from scheduler_app.api import idempotency
from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.edits import named_versions, unchanged
from scheduler_app.api.json_types import Headers, Loaded, Tagged, View
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire import destination as wire
from scheduler_app.api.wire import examples
from scheduler_app.api.wire.destination_health import DestinationListQuery
from scheduler_app.api.wire.field_types import ID
from scheduler_app.api.wire.output_schema import MessageSchema
from scheduler_app.api.wire.paging import listed, window
from scheduler_app.api.wire.schedule import PutQuery
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.destination import Destination, DestinationDraft
from scheduler_app.domain.errors import InvalidField, StaleVersion
from scheduler_app.domain.ids import WholeId, name_of
from scheduler_app.domain.masking import masked_url
from scheduler_app.usecases.deeds.creation import Preconditions

blueprint = ApiBlueprint("destinations", "/api/v1/destinations", "Named receivers and their limits")


@blueprint.route("", methods=["GET"])
@blueprint.arguments(DestinationListQuery, location="query")
@blueprint.response(200, wire.DestinationPage)
def list_destinations(query: Loaded) -> View:
    """List destinations, newest first; with `health`, how each is"""
    asked, assembly, now = window(query), services(), services().now()
    found = assembly.destinations.page(tenant(), asked)
    readable = [each for each in found.rows if isinstance(each, Destination)] if query["health"] else []
    health = assembly.destination_questions.health(tenant(), readable, now)
    rows = [wire.healthy_shown(each, health.get(each.id), now) for each in found.rows]
    return listed("destinations", rows, asked, found)


@blueprint.route("/<name:name>", methods=["GET"])
@blueprint.response(200, wire.DestinationOutput)
def get_destination(name: WholeId) -> Tagged | Response:
    """Get a destination"""
    found = services().destinations.get(name)
    view, headers = _tagged(found)
    flow = services().destinations.flow(found)
    if flow is not None:
        # It moves without a change of the destination: what was read before is not the same.
        waiting = services().destinations.waiting(found, flow)
        return view | {"flow": wire.flow_shown(flow, waiting, services().now())}, headers
    return Response(status=304, headers=headers) if unchanged(headers["ETag"]) else (view, headers)


@blueprint.route("/<name:name>", methods=["PUT"], scope=KeyScope.WRITE, query=PutQuery)
@blueprint.arguments(wire.DestinationInput, example=examples.DESTINATION)
@blueprint.response(200, wire.DestinationOutput)
@blueprint.alt_response(201, schema=wire.DestinationOutput, description="There was none: it is created")
def put_destination(draft: DestinationDraft, name: WholeId) -> tuple[View, int, Headers]:
    """Create a destination, or replace it

    What is left out has its default. A change holds for every schedule from its next attempt on.
    `If-None-Match: *` or `?if-absent` only creates, `If-Match` only replaces; where that is not possible the
    answer is a 412.
    """
    _check_name(name)
    now = services().now()
    absent = request.if_none_match.star_tag or g.write_query.get("if_absent") is not None
    conditions = Preconditions(
        version=_version_wanted(name), present=request.if_match.star_tag, absent=bool(absent)
    )
    found, created = services().destinations.put(name, draft, now, conditions=conditions)
    view, headers = _tagged(found)
    _show_secret(view, found, draft)
    if created:
        return view | {"result": "created"}, 201, headers | {"Location": f"/api/v1/destinations/{found.name}"}
    return view | {"result": "changed" if found.updated_at == now else "unchanged"}, 200, headers


@blueprint.route("/<name:name>", methods=["PATCH"], scope=KeyScope.WRITE)
@blueprint.arguments(wire.DestinationChange, example=examples.DESTINATION_CHANGE)
@blueprint.response(200, wire.DestinationOutput)
def change_destination(draft: DestinationDraft, name: WholeId) -> Tagged:
    """Change some fields of a destination; null takes one away"""
    return _changed(name, draft)


@blueprint.route("/<name:name>", methods=["DELETE"], scope=KeyScope.WRITE)
@blueprint.response(200, MessageSchema)
def delete_destination(name: WholeId) -> View:
    """Delete a destination with its secrets; a 409 while schedules name it"""
    services().destinations.delete(name, version=_version_wanted(name))
    return {"message": "Destination deleted."}


@blueprint.route("/<name:name>/pause", methods=["POST"], scope=KeyScope.TRIGGER)
@blueprint.response(200, wire.DestinationOutput)
def pause_destination(name: WholeId) -> Tagged:
    """Send nothing more; what is due waits until the destination is resumed"""
    return _changed(name, DestinationDraft(paused=True))


@blueprint.route("/<name:name>/resume", methods=["POST"], scope=KeyScope.TRIGGER)
@blueprint.response(200, wire.DestinationOutput)
def resume_destination(name: WholeId) -> Tagged:
    """Send again; what waited follows within a minute, oldest first"""
    return _changed(name, DestinationDraft(paused=False))


@blueprint.route("/<name:name>/test", methods=["POST"], scope=KeyScope.TRIGGER)
@blueprint.response(200, wire.TestOutput)
def test_destination(name: WholeId) -> View:
    """Call the destination once, now, outside of its limits, and show the answer"""
    found = services().destinations.test(name, services().now())
    view: View = {
        "event_id": name_of(found.event_id),
        "method": found.method,
        "url": masked_url(found.url),
        "sent": found.verdict is not None,
    }
    if found.verdict is None:
        return view
    return view | {
        "outcome": found.verdict.outcome.name.lower(),
        "status_code": found.verdict.status_code,
        "error": found.verdict.error,
        "snippet": found.verdict.snippet,
        "duration_ms": round(found.verdict.duration_ms, 3),
    }


def _changed(name: WholeId, draft: DestinationDraft) -> Tagged:
    now, version = services().now(), _version_wanted(name)
    found = services().destinations.edit(name, draft, now, version=version)
    view, headers = _tagged(found)
    _show_secret(view, found, draft)
    return view | {"result": "changed" if found.updated_at == now else "unchanged"}, headers


def _show_secret(view: View, found: Destination, draft: DestinationDraft) -> None:
    if draft.signing is True and found.signing and found.signing.since == found.updated_at:
        view["signing_secret"] = idempotency.shown_once(found.signing.secret)


def _tagged(found: Destination) -> Tagged:
    """The destination and its ETag, which also differs after a deletion and a new creation."""
    digest = zlib.crc32(found.created_at.isoformat().encode())
    return wire.destination_shown(found), {"ETag": f'"{found.version}-{digest:08x}"'}


def _version_wanted(name: WholeId) -> int | None:
    """The version that If-Match names; None without one. Raises NotFound, StaleVersion."""
    if "If-Match" not in request.headers or request.if_match.star_tag:
        return None
    current = services().destinations.get(name).version
    if current not in named_versions():
        raise StaleVersion(f"If-Match does not name the destination's version, {current}: give its ETag")
    return current


def _check_name(name: WholeId) -> None:
    if not ID.fullmatch(name_of(name)):
        raise InvalidField("name", "the path must name it by 1 to 64 letters, digits and hyphens")
