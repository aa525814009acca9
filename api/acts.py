"""Whose act a request is, as the audit names it: its caller, its address, its reason and its id.

A person's reason comes in the header `Scheduler-Reason` (`X-Scheduler-Note` is its older name), or in a form.
Answers to requests that may change something have the id in `X-Request-Id`; a client, or a proxy, may send
one of its own.
"""

import re
import secrets
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Final, TypeVar

from flask import Flask, Response, request

from scheduler_app.api.scopes import SAFE_METHODS
from scheduler_app.api.services import EVERYBODY, NOBODY, caller, limits, real_services, services
from scheduler_app.domain.act import MAX_REASON, MAX_REQUEST_ID, Act, Actor, ActorKind
from scheduler_app.domain.api_key import Caller
from scheduler_app.domain.audit import Change, Difference
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.ids import TENANT, WholeId, whole_id
from scheduler_app.domain.person import PERSON_KEY
from scheduler_app.domain.quota import QuotaUse
from scheduler_app.domain.tenant import NO_LIMITS, TenantLimits
from scheduler_app.store.acting import acting, current_act
from scheduler_app.store.faults import STORE_FAULTS
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)
Result = TypeVar("Result")

REASON_HEADER: Final = "Scheduler-Reason"
#: Its name in older releases.
NOTE_HEADER: Final = "X-Scheduler-Note"
REQUEST_ID_HEADER: Final = "X-Request-Id"
#: Of the request and not in `g`, which a request inside of another one would share with it.
_ACT: Final = "scheduler.act"
_REQUEST_ID = re.compile(rf"[A-Za-z0-9._:+/=-]{{1,{MAX_REQUEST_ID}}}")


def register_acts(app: Flask) -> None:
    """Must follow authentication. Refuses a reason that cannot be kept, before anything is changed."""

    @app.before_request
    def begin() -> None:
        stack = ExitStack()
        stack.enter_context(acting(Act(_actor(caller()), _reason(), _request_id(), _limits())))
        request.environ[_ACT] = stack

    @app.after_request
    def name(response: Response) -> Response:
        if _ACT in request.environ and request.method not in SAFE_METHODS:
            response.headers.setdefault(REQUEST_ID_HEADER, current_act().request_id)
        return response

    @app.teardown_request
    def end(_: BaseException | None) -> None:
        if (stack := request.environ.pop(_ACT, None)) is not None:
            stack.close()


@contextmanager
def for_reason(reason: str) -> Iterator[None]:
    """What is done inside of it is done for this reason, unless the request gives another."""
    act = current_act()
    with acting(replace(act, reason=act.reason or reason[:MAX_REASON])):
        yield


def used_quotas() -> Collection[QuotaUse]:
    """What this request has used of the tenant's limits; nothing where it was refused before that."""
    return current_act().used.values() if _ACT in request.environ else ()


def note_wrong_key(event: str, client: str, why: str = "") -> None:
    """Writes a line of the audit: one for each client and minute, whichever process is asked."""
    act = Act(Actor(ActorKind.NOBODY, address=request.remote_addr or ""), request_id=_request_id())
    told = Difference(after={"why": why} if why else {})
    change = Change("refused", "access", WholeId(event), told, of_installation=True)
    minute = f"{services().now():%Y%m%dT%H%M}"
    try:
        with acting(act):
            real_services().audit.note(change, f"{minute}-refused-{client}")
    except STORE_FAULTS as error:
        log.warning("audit.unnoted", message="A wrong key could not be noted", error=str(error)[:300])


def with_line_of_session(what: str, who: Caller, write: Callable[[], Result]) -> Result:
    """Does a sign-in or its end, with its line."""
    key = who.owner.removeprefix("key-") if who.owner.startswith("key-") else who.name or "open"
    tenant = who.tenant or TENANT
    change = Change(what, "access", whole_id(tenant, key), of_installation=who.tenant is None)
    with acting(replace(current_act(), by=_actor(who))):
        return real_services().audit.change(change, write)


def _limits() -> TenantLimits:
    """Of a request that may make something."""
    return NO_LIMITS if request.method in SAFE_METHODS else limits()


def _reason() -> str:
    for header in (REASON_HEADER, NOTE_HEADER):
        given = request.headers.get(header, "")
        if len(given) > MAX_REASON:
            raise InvalidField(header, f"must not exceed {MAX_REASON} characters")
        if given:
            return given
    return ""


def _request_id() -> str:
    given = request.headers.get(REQUEST_ID_HEADER, "")
    return given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)


def _actor(who: Caller) -> Actor:
    address = request.remote_addr or ""
    kind = ActorKind.KEY
    if who == EVERYBODY:
        kind = ActorKind.OPEN
    elif who.owner == NOBODY.owner or who.name is None:
        kind = ActorKind.NOBODY
    elif who.owner.startswith(PERSON_KEY):
        kind = ActorKind.PERSON
    key = who.owner.removeprefix("key-") if who.owner.startswith("key-") else ""
    return Actor(kind, who.name or "", key, address, who.tenant is None)
