"""Sign-ins, their ends and other roles of people: each with its line in the audit, and in the log."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Literal, TypeVar

from scheduler_app.domain.act import ActorKind
from scheduler_app.domain.audit import Change, difference_of
from scheduler_app.domain.ids import TENANT, name_of, whole_id
from scheduler_app.domain.person import Grant, Person, PersonSession
from scheduler_app.store import Store
from scheduler_app.store.acting import acting, current_act
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)
Result = TypeVar("Result")

_MESSAGES: Final = {
    "sign_in.done": "Somebody signed in",
    "sign_in.ended": "A sign-in has ended",
    "sign_in.role_changed": "The provider has changed what somebody may do",
}


def note_sign_in(
    act: Literal["sign_in.done", "sign_in.ended", "sign_in.role_changed"],
    *,
    who: str = "",
    tenant: str | None = None,
    address: str = "",
    why: str = "",
) -> None:
    """Logs a sign-in with the provider or with a key, or an end; those that are refused are counted, logged
    and told to the audit by `api.auth.refuse_beyond_limit`."""
    said = {"who": who, "tenant": tenant, "address": address, "why": why}
    told = {name: value for name, value in said.items() if value}
    log.info(act, message=_MESSAGES[act], **told)


def with_line(
    store: Store,
    what: Literal["signed in", "signed out", "signed out everywhere"],
    who: Person | PersonSession,
    write: Callable[[], Result],
    *,
    is_own: bool = True,
    address: str = "",
    why: str = "",
) -> Result:
    """Does a person's sign-in or its end, with its line in the audit, and logs it; neither where `write`
    returns None or False. `is_own`: the person does it, whatever the request has shown until now."""
    tenant, act = who.grant.tenant, current_act()
    name = who.person if isinstance(who, PersonSession) else name_of(who.id)
    change = Change(what, "access", whole_id(tenant or TENANT, name), of_installation=tenant is None)
    if is_own:
        person = replace(
            act.by, kind=ActorKind.PERSON, name=who.called, key="", is_installations=tenant is None
        )
        act = replace(act, by=person)
    with acting(act):
        result = store.audit.change(change, write)
    if result is not None and result is not False:
        note_sign_in(
            "sign_in.done" if what == "signed in" else "sign_in.ended",
            who=who.called,
            tenant=tenant,
            address=address,
            why=why,
        )
    return result


def role_given(store: Store, browser: PersonSession, grant: Grant, write: Callable[[], bool]) -> None:
    """Gives a person what the provider says that they may do from now on, with a line where that is another
    role. A line that names two tenants is the installation's."""
    before = browser.grant
    if before == grant:
        write()
        return
    tenant = before.tenant if before.tenant == grant.tenant else None
    told = difference_of(_told(before), _told(grant))
    resource = whole_id(tenant or TENANT, browser.person)
    change = Change("role changed", "access", resource, told, of_installation=tenant is None)
    if store.audit.change(change, write):
        note_sign_in("sign_in.role_changed", who=browser.called, tenant=grant.tenant)


def _told(grant: Grant) -> dict[str, Any]:
    """What a line of the audit tells of it."""
    return {"scopes": sorted(grant.scopes), "tenant": "all" if grant.tenant is None else grant.tenant}
