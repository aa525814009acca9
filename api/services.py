"""What a route calls: the use cases of this process, dry ones for `?dry_run=true`, who asks, and the tenant.

The keys of API_KEYS belong to the installation, as does everybody where there are none: they act in the
tenant that the header `Scheduler-Tenant` names, else in `default`. A stored key acts in its own tenant.

One mechanism serves all routes: the services of a dry run use a store that checks every write and performs
none, generate no secrets and dispatch nothing. Every route that writes declares the parameter
(`ApiBlueprint.route`). The services are dry on any route that is given it, so that a route which forgot to
declare the parameter changes nothing either.
"""

from typing import Final

from flask import Flask, Response, current_app, g, json, request
from flask.globals import request_ctx

from scheduler_app.api.json_types import View
from scheduler_app.api.known_keys import known_keys
from scheduler_app.api.problems import HttpProblem
from scheduler_app.assembly import Assembly as Services
from scheduler_app.domain.api_key import Caller
from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.tenant import NO_LIMITS, TenantLimits, TenantState
from scheduler_app.telemetry import bind_log_fields, unbind_log_fields

HEADER: Final = "Scheduler-Tenant"
#: The caller where no keys are configured.
EVERYBODY: Final = Caller("open", None)
#: Of a request whose route judges itself what it is shown: it is no key of the installation.
NOBODY: Final = Caller("", None, frozenset(), TENANT)


def tenant() -> str:
    """The tenant of the request at hand."""
    found: str = g.get("tenant", TENANT)
    return found


def caller() -> Caller:
    """Who makes the request at hand."""
    found: Caller = g.get("caller", NOBODY)
    return found


def admit(found: Caller) -> None:
    """Makes it the caller of this request, in its own tenant, or the one that it names. Raises Problem."""
    g.caller, g.tenant = found, _tenant(found)
    if g.tenant != TENANT:
        # The path was matched before, and its names read as those of `default`.
        request_ctx.match_request()


def _tenant(found: Caller) -> str:
    asked = request.headers.get(HEADER)
    if found.tenant is None:
        if asked in (None, TENANT):
            return TENANT
        named = known_keys().tenants.get(asked)
        if named is None or named.state is TenantState.DELETING:
            raise HttpProblem(
                404, f"{HEADER}: there is no tenant {asked[:64]!r}; PUT /api/v1/tenants/… makes one"
            )
        return asked
    if asked not in (None, found.tenant):
        raise HttpProblem(403, f"{HEADER}: this key acts in the tenant {found.tenant} alone; leave it out")
    if found.tenant != TENANT:
        tenant = known_keys().tenants.get(found.tenant)
        if tenant is None or tenant.state is not TenantState.ACTIVE:
            raise HttpProblem(
                403, f"the tenant {found.tenant} is suspended; who runs the installation can end that"
            )
    return found.tenant


def limits() -> TenantLimits:
    """What the tenant of this request may take: none for who runs the installation, in `default`, which has
    none for most, and would be read for every one of their requests."""
    who, of = caller(), tenant()
    if not who.owner or (who.tenant is None and of == TENANT):
        return NO_LIMITS
    found = known_keys().tenants.get(of)
    return NO_LIMITS if found is None else found.limits


def require_installation() -> None:
    """Raises Problem unless the key of this request belongs to the installation."""
    if caller().tenant is not None:
        raise HttpProblem(
            403, "this concerns the whole installation: use a key of API_KEYS, or one made by it"
        )


DRY_RUN = "dry_run"
_SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
#: Headers that would describe what a dry run has not created.
_HEADERS_OF_CREATED = ("Location", "ETag")


def register_dry_run(app: Flask) -> None:
    """Must follow everything that may refuse a request without reading its parameters."""
    app.before_request(_begin_dry_run)
    app.after_request(_mark_dry_run)
    app.teardown_request(_end_dry_run)


def is_dry_run() -> bool:
    """Whether this request must change nothing. A value that is neither true nor false is refused later."""
    return bool(g.get(DRY_RUN))


def make_dry_run() -> None:
    """Makes this request a dry run; for a request that asks for it in its body."""
    g.dry_run = True
    bind_log_fields(dry_run=True)


def _begin_dry_run() -> None:
    if request.method not in _SAFE_METHODS and request.args.get(DRY_RUN, "false") != "false":
        make_dry_run()


def _mark_dry_run(response: Response) -> Response:
    if not is_dry_run():
        return response
    for name in _HEADERS_OF_CREATED:
        response.headers.pop(name, None)
    if response.is_json and response.status_code < 400:
        view: View = response.get_json()
        response.set_data(json.dumps(view | {DRY_RUN: True}) + "\n")
    return response


def _end_dry_run(_: BaseException | None) -> None:
    if is_dry_run():
        unbind_log_fields(DRY_RUN)


__all__ = ["Services", "real_services", "services"]


def services() -> Services:
    """The services of the application at hand; for a dry run, ones that change nothing."""
    if is_dry_run():
        if "dry_services" not in g:
            g.dry_services = real_services().dry_run()
        dry_services: Services = g.dry_services
        return dry_services
    return real_services()


def real_services() -> Services:
    """Also in a dry run: for what belongs to the request itself, and not to what it asks for."""
    found: Services = current_app.extensions["scheduler"]
    return found
