"""Who does something, why, and by which request: one value, which the audit writes beside each change."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from scheduler_app.domain.quota import QuotaUse
from scheduler_app.domain.tenant import NO_LIMITS, TenantLimits

#: Of what a person gives as the reason of an act.
MAX_REASON: Final = 500
MAX_REQUEST_ID: Final = 64


class ActorKind(StrEnum):
    """What kind of somebody acts."""

    KEY = "key"
    """A key of the API: one of API_KEYS, or a stored one."""
    PERSON = "person"
    """Somebody who has signed in."""
    OPEN = "open"
    """Anybody: there are no keys."""
    NOBODY = "nobody"
    """Somebody who has shown no key that opens anything, or a token that opens one thing."""
    COMMAND = "command"
    """A command that works on the database itself, beside the API."""
    SCHEDULER = "scheduler"
    """A beat or a worker, by the rules that people gave it."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts."""

    kind: ActorKind
    name: str = ""
    """The key's or the person's; empty for a key without one."""
    key: str = ""
    """The id of a stored key."""
    address: str = ""
    """Where the request came from."""
    is_installations: bool = True
    """Whether it belongs to no single tenant: a tenant is not told its address."""


@dataclass(frozen=True, slots=True)
class Act:
    """One request, command or duty. Every change that it makes has a line that names it."""

    by: Actor
    reason: str = ""
    """Why, in a person's words."""
    request_id: str = ""
    limits: TenantLimits = NO_LIMITS
    """What the tenant may take in which it happens: they hold for people's acts alone."""
    used: dict[str, QuotaUse] = field(default_factory=dict, compare=False, repr=False)
    """What it has used of them, by the limits' names, which the answer says. One act may make several things:
    of each limit what the last one left."""


#: What changes something without anybody's request.
SCHEDULERS_OWN: Final = Act(Actor(ActorKind.SCHEDULER))
