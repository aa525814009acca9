"""People who sign in with the account of their company, and what OIDC_ROLES gives them.

What a person may do comes from what the provider says of him or her at each sign-in, and from nothing that is
kept here: who is in no group that a line names gets nothing.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from scheduler_app.domain.api_key import ALL_SCOPES, Caller, KeyScope
from scheduler_app.domain.ids import TENANT, WholeId, tenant_of
from scheduler_app.domain.tenant import TENANT_NAME

#: Of a tenant, and those of the installation: beyond that, who was seen longest ago is forgotten.
MAX_PEOPLE: Final = 1_000
MAX_ROLES: Final = 200
#: How the key of people's sessions begins: no digest and no id of a key has a hyphen.
PERSON_KEY: Final = "person-"
MAX_NAME: Final = 200
#: In the place of a tenant: people of the installation, who act in each.
EVERY_TENANT: Final = "*"
_ALL: Final = "all"
_CLAIM = re.compile(r"[^\s=,]{1,200}")
_ID_DIGITS: Final = 24


@dataclass(frozen=True, slots=True)
class Grant:
    """What a person may do, and where."""

    scopes: frozenset[KeyScope]
    tenant: str | None
    """None: of the installation, in each."""


@dataclass(frozen=True, slots=True)
class RoleLine:
    """Whoever has `value` in `claim` gets `grant`."""

    claim: str
    value: str
    grant: Grant

    def matches(self, claims: Mapping[str, Any]) -> bool:
        if self.claim == "email" and claims.get("email_verified") is not True:
            # Whoever may write any address into an account would be whom he likes.
            return False
        found = claim_of(claims, self.claim)
        values = found if isinstance(found, list) else [found]
        return any(isinstance(each, str) and each == self.value for each in values)


def claim_of(claims: Mapping[str, Any], name: str) -> Any:
    """The claim of this name, or within others by the names between dots, as roles within realm_access."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def parse_roles(text: str) -> tuple[RoleLine, ...]:
    """The lines of OIDC_ROLES: `claim=value=scopes@tenant`, separated by commas, or a JSON list of such
    lines. Raises ValueError, which says what is wrong."""
    lines = _lines(text)
    if len(lines) > MAX_ROLES:
        raise ValueError(f"must have {MAX_ROLES} lines at most")
    return tuple(map(_role_line, lines))


def _lines(text: str) -> Sequence[str]:
    if not text.strip().startswith("["):
        return [line for line in map(str.strip, text.split(",")) if line]
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"must be lines separated by commas, or a JSON list of them: {error}") from None
    if not all(isinstance(each, str) for each in found):
        raise ValueError("must have texts alone in its JSON list")
    return [str(each).strip() for each in found]


def _role_line(line: str) -> RoleLine:
    wanted = f"must be claim=value=scopes@tenant, as groups=ops=read+trigger@default; not {line[:100]!r}"
    claim, first, rest = line.partition("=")
    value, last, role = rest.rpartition("=")
    if not first or not last or not value or not _CLAIM.fullmatch(claim):
        raise ValueError(wanted)
    scopes, _, tenant = role.partition("@")
    tenant = tenant or TENANT
    words = scopes.split("+")
    known = {each.value for each in KeyScope}
    if scopes != _ALL and (unknown := [word for word in words if word not in known]):
        raise ValueError(
            f"has {unknown[0]!r} where scopes are expected in {line[:100]!r}: write"
            f" {'+'.join(sorted(known))}, fewer of them, or {_ALL}"
        )
    if tenant != EVERY_TENANT and not TENANT_NAME.fullmatch(tenant):
        raise ValueError(f"names no tenant after @ in {line[:100]!r}: write its name, or {EVERY_TENANT}")
    granted = ALL_SCOPES if scopes == _ALL else frozenset(map(KeyScope, words))
    return RoleLine(claim, value, Grant(granted, None if tenant == EVERY_TENANT else tenant))


def granted(roles: Sequence[RoleLine], claims: Mapping[str, Any]) -> Grant | None:
    """What these lines give: the first that matches says in which tenant, and all that match in it add up.
    None where no line gives anything."""
    found = [line.grant for line in roles if line.matches(claims)]
    if not found:
        return None
    tenant = found[0].tenant
    return Grant(frozenset().union(*(each.scopes for each in found if each.tenant == tenant)), tenant)


def person_name(issuer: str, subject: str) -> str:
    """The id of a person: the same at each sign-in, whatever else the provider says of him or her."""
    return hashlib.sha256(json.dumps([issuer, subject]).encode()).hexdigest()[:_ID_DIGITS]


@dataclass(frozen=True, slots=True)
class Person:
    """Someone who has signed in."""

    id: WholeId
    subject: str
    """By which the provider knows him or her."""
    scopes: frozenset[KeyScope]
    """As of the last sign-in, or of a later check of it by the provider."""
    first_seen_at: datetime
    last_seen_at: datetime
    last_seen_from: str = ""
    name: str | None = None
    mail: str | None = None
    is_installations: bool = False

    @property
    def tenant(self) -> str:
        return tenant_of(self.id)

    @property
    def called(self) -> str:
        """By which others recognise him or her."""
        return self.mail or self.name or self.subject

    @property
    def grant(self) -> Grant:
        return Grant(self.scopes, None if self.is_installations else self.tenant)


@dataclass(frozen=True, slots=True)
class PersonSession:
    """One sign-in of a person: of a browser, or of a command line that a browser has let in."""

    id: str
    begun_by: str
    """The id of the browser's session that it belongs to and ends with; its own, of a browser's."""
    person: str
    """The name in the person's id."""
    called: str
    grant: Grant
    setup: str
    """Of the settings with which it began; see `SignIns`."""
    checked_at: datetime
    """When the provider was asked last whether it goes on."""
    expires_at: datetime
    provider_session: str | None = None
    """By which the provider ends it."""

    @property
    def key(self) -> str:
        """By which all sessions of the person are found."""
        return session_key(self.person)

    @property
    def is_browsers(self) -> bool:
        return self.id == self.begun_by

    @property
    def caller(self) -> Caller:
        return Caller(self.key, self.called, self.grant.scopes, self.grant.tenant)


def token_digest(token: str) -> str:
    """What is kept of the token of a session."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def session_key(person: str) -> str:
    return f"{PERSON_KEY}{person}"
