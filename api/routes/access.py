"""/api/v1/keys and /api/v1/tenants: who may call the API, and the tenants that own everything."""

from itertools import chain

from flask import Response, g

from scheduler_app.api import idempotency
from scheduler_app.api.auth import refuse_beyond_limit
from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.routes.bulk import NDJSON
from scheduler_app.api.scopes import NO_SCOPE
from scheduler_app.api.services import caller, require_installation, services, tenant
from scheduler_app.api.wire import examples
from scheduler_app.api.wire.access import (
    ConfirmQuery,
    DeletionList,
    DeletionOutput,
    KeyInput,
    KeyList,
    KeyOutput,
    LeakedKey,
    RotationInput,
    TenantEdited,
    TenantExportQuery,
    TenantImportInput,
    TenantImportOutput,
    TenantInput,
    TenantList,
    TenantOutput,
    deletion_shown,
    import_shown,
    key_draft,
    key_shown,
    overlap_of,
    tenant_asked,
    tenant_shown,
)
from scheduler_app.api.wire.output_schema import MessageSchema
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.errors import NotFound
from scheduler_app.domain.ids import WholeId
from scheduler_app.usecases.deeds.tenant_imports import TenantImport

keys_blueprint = ApiBlueprint("keys", "/api/v1/keys", "Keys of the API that are kept in MongoDB")


@keys_blueprint.route("", methods=["GET"], scope=KeyScope.ADMIN)
@keys_blueprint.response(200, KeyList)
def list_keys() -> View:
    """List the stored keys, newest first: when each was used last and from where, never the key itself"""
    return {"keys": [key_shown(each) for each in services().keys.all(tenant(), caller())]}


@keys_blueprint.route("", methods=["POST"], scope=KeyScope.ADMIN)
@keys_blueprint.arguments(KeyInput, example=examples.KEY)
@keys_blueprint.response(201, KeyOutput)
def create_key(given: Loaded) -> View:
    """Make a key; the answer is the only one that shows it

    It may do no more than the key of this request. Of the key itself a hash alone is kept. A request that is
    sent again with the same Idempotency-Key is answered with the same key and another secret, and the one
    before opens nothing.
    """
    key, text = services().keys.create(
        key_draft(given, tenant()), caller(), services().now(), idempotency.request_seed()
    )
    return key_shown(key) | {"key": idempotency.renewed(text)}


@keys_blueprint.route("/<id:key_id>", methods=["GET"], scope=KeyScope.ADMIN)
@keys_blueprint.response(200, KeyOutput)
def get_key(key_id: WholeId) -> View:
    """Get a stored key, without the key itself"""
    return key_shown(services().keys.find(key_id, caller()))


@keys_blueprint.route("/<id:key_id>/rotate", methods=["POST"], scope=KeyScope.ADMIN)
@keys_blueprint.arguments(RotationInput, required=False, example={"overlap_seconds": 3_600})
@keys_blueprint.response(200, KeyOutput)
def rotate_key(given: Loaded, key_id: WholeId) -> View:
    """Replace a key by another one of the same id, which is shown once; the old one ends with the overlap"""
    key, text = services().keys.rotate(
        key_id, overlap_of(given), caller(), services().now(), idempotency.request_seed()
    )
    return key_shown(key) | {"key": idempotency.renewed(text)}


@keys_blueprint.route("/revoke-leaked", methods=["POST"], scope=NO_SCOPE)
@keys_blueprint.arguments(LeakedKey, example={"key": "rrs_4k2m9x0p7q1z_…"})
@keys_blueprint.response(200, MessageSchema)
def revoke_leaked_key(given: Loaded) -> View:
    """Delete a key that others have seen: the key itself is all that is needed

    Whoever has it may take it away. One that was replaced and still opens takes itself away, and not the
    newer one. One of API_KEYS is taken out of the settings.
    """
    try:
        services().keys.revoke_leaked(given["key"], services().now())
    except NotFound:
        refuse_beyond_limit("api.key_refused")
        raise
    return {"message": "The key was deleted; within five seconds it opens nothing."}


@keys_blueprint.route("/<id:key_id>", methods=["DELETE"], scope=KeyScope.ADMIN)
@keys_blueprint.response(200, MessageSchema)
def delete_key(key_id: WholeId) -> View:
    """Delete a key: within five seconds it opens nothing, and the sessions that began with it end"""
    services().keys.revoke(key_id, caller())
    return {"message": "The key was deleted; within five seconds it opens nothing."}


tenants_blueprint = ApiBlueprint("tenants", "/api/v1/tenants", "Whose what is, where there are several")


@tenants_blueprint.route("", methods=["GET"], scope=KeyScope.ADMIN)
@tenants_blueprint.response(200, TenantList)
def list_tenants() -> View:
    """List the tenants, by name, with what they have used of their limits; `default` is always one"""
    require_installation()
    found = services().tenants.all()
    used = services().tenants.used(found, services().now())
    return {"tenants": [tenant_shown(each, used[each.name]) for each in found]}


@tenants_blueprint.route("/<name>", methods=["GET"], scope=KeyScope.ADMIN)
@tenants_blueprint.response(200, TenantOutput)
def get_tenant(name: str) -> View:
    """Get a tenant, with what it has used of its limits"""
    require_installation()
    found = services().tenants.find(name)
    return tenant_shown(found, services().tenants.used([found], services().now())[name])


#: Of an export, in the specification.
_TENANT_LINES = {
    "type": "string",
    "description": "A JSON object a line. The first says what it is (`rrule_scheduler_export`, the version of"
    " this form; `tenant`, `exported_at`, `secrets`). Each of the others is one document (`collection`;"
    " `document` in MongoDB's relaxed extended JSON; `left_out` where it lacks secrets), what is named before"
    " what names it. The last one has `end: true` and the counts: without it, the export was broken off.",
}


@tenants_blueprint.route("/<name>/export", methods=["GET"], scope=KeyScope.ADMIN)
@tenants_blueprint.arguments(TenantExportQuery, location="query")
@tenants_blueprint.response(200, _TENANT_LINES, content_type=NDJSON)
def export_tenant(query: Loaded, name: str) -> Response:
    """Export everything that belongs to a tenant as NDJSON, however much it is

    A key of the tenant itself may do that, too, without secrets. What changes meanwhile may be in it as it
    was or as it is; suspend the tenant first where that matters.
    """
    if caller().tenant != name or query["secrets"]:
        require_installation()
    services().tenants.find(name)
    pages = services().tenant_exports.pages(name, services().now(), with_secrets=query["secrets"])
    # The first page is read here: if MongoDB does not answer, the status can still say so.
    return Response(chain([next(pages)], pages), mimetype=NDJSON)


@tenants_blueprint.route("/<name>/import", methods=["POST"], scope=KeyScope.ADMIN)
@tenants_blueprint.arguments(TenantImportInput, example=examples.TENANT_IMPORT)
@tenants_blueprint.response(200, TenantImportOutput)
def import_tenant(given: Loaded, name: str) -> View:
    """Take lines of an export into a tenant, which may be called otherwise; each by itself

    A larger file comes in several requests, each with its first line in front. What is there already stays as
    it is, so that a second import of a file makes nothing twice. Schedules arrive paused unless `active` is
    given. Lines without their secrets are refused.
    """
    require_installation()
    into = services().tenants.taking(name)
    taken = TenantImport(services(), services().store, into, services().now(), active=given["active"])
    return import_shown(taken.run(given["lines"]))


@tenants_blueprint.route("/<name>", methods=["PUT"], scope=KeyScope.ADMIN)
@tenants_blueprint.arguments(TenantInput, example={"state": "active", "note": "A customer in Zurich"})
@tenants_blueprint.response(200, TenantEdited)
@tenants_blueprint.alt_response(201, schema=TenantEdited, description="There was none: it is created")
def put_tenant(given: Loaded, name: str) -> tuple[View, int]:
    """Make a tenant, suspend it, set its limits or its note; what is left out has its default

    A suspended tenant's keys are answered 403 within five seconds, and nothing of it is sent within a second:
    its events wait until it is active again.
    """
    require_installation()
    tenant, done = services().tenants.put(tenant_asked(name, given, services().now()))
    return tenant_shown(tenant) | {"result": done}, 201 if done == "created" else 200


@tenants_blueprint.route("/<name>", methods=["DELETE"], scope=KeyScope.ADMIN, query=ConfirmQuery)
@tenants_blueprint.response(202, DeletionOutput)
def delete_tenant(name: str) -> View:
    """Delete everything that belongs to a tenant, and the tenant; `confirm` is its name once more

    Its keys are answered 403 within five seconds, and nothing of it is sent within a second. Beats remove
    what it has within minutes, after the attempts that workers are making. Then its name is free.
    """
    require_installation()
    return deletion_shown(
        services().tenants.delete(name, g.write_query.get("confirm"), caller(), services().now())
    )


deletions_blueprint = ApiBlueprint("deletions", "/api/v1/deletions", "Deletions of tenants and tags")


@deletions_blueprint.route("", methods=["GET"], scope=KeyScope.ADMIN)
@deletions_blueprint.response(200, DeletionList)
def list_deletions() -> View:
    """List the newest deletions, with how many documents each removed

    A key of a tenant sees those of its tags, one of the installation all.
    """
    return {"deletions": list(map(deletion_shown, services().deletions.all(caller())))}


@deletions_blueprint.route("/<deletion_id>", methods=["GET"], scope=KeyScope.ADMIN)
@deletions_blueprint.response(200, DeletionOutput)
def get_deletion(deletion_id: str) -> View:
    """Get a deletion: how far it is"""
    return deletion_shown(services().deletions.find(tenant(), deletion_id, caller()))
