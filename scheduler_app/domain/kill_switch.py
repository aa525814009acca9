"""Kill switches: each stops everything, what has a tag, or what goes to a destination, until it is off."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from scheduler_app.domain.ids import SEPARATOR, WholeId, name_of, tenant_of, whole_id

_SLASH = "/"


class Scope(StrEnum):
    """What a kill switch stops."""

    ALL = "all"
    TAG = "tag"
    DESTINATION = "destination"
    SCHEDULE = "schedule"
    """Of blackouts alone: a single schedule is paused."""


@dataclass(frozen=True, slots=True)
class Target:
    """What one kill switch stops: everything of a tenant, or what has this tag or names this destination."""

    tenant: str
    scope: Scope
    name: str = ""
    """The tag, or the destination's name within its tenant; empty for everything."""

    @property
    def key(self) -> WholeId:
        """The id under which it is stored: it is obeyed even where nothing else there can be read."""
        return whole_id(self.tenant, self._words)

    @property
    def keys(self) -> tuple[str, str]:
        """Its key, and the one that older releases gave it."""
        return self.key, f"{self.tenant}{_SLASH}{self._words}"

    @property
    def _words(self) -> str:
        return self.scope.value + (f"{_SLASH}{self.name}" if self.name else "")

    @classmethod
    def of(cls, key: str) -> "Target | None":
        """The target of a key, also of one that an older release gave it; None if it is none."""
        first, _, rest = key.partition(_SLASH)
        is_older = first not in list(Scope) and SEPARATOR not in first
        tenant, words = (first, rest) if is_older else (tenant_of(key), name_of(key))
        scope, _, name = words.partition(_SLASH)
        if not tenant or scope not in list(Scope) or (scope == Scope.ALL) is bool(name):
            return None
        return cls(tenant, Scope(scope), name)

    @classmethod
    def asked(
        cls, tenant: str, schedule_id: str, tags: Collection[str], destination: str | None
    ) -> "list[Target]":
        """All that may stop an event; `schedule_id` (empty for a message) and `destination` are own ids."""
        found = [cls(tenant, Scope.ALL)]
        if schedule_id:
            found.append(cls(tenant, Scope.SCHEDULE, name_of(schedule_id)))
        if destination is not None:
            found.append(cls(tenant, Scope.DESTINATION, name_of(destination)))
        return found + [cls(tenant, Scope.TAG, tag) for tag in tags]

    def __str__(self) -> str:
        return "everything" if self.scope is Scope.ALL else f"the {self.scope.value} {self.name}"


@dataclass(frozen=True, slots=True)
class KillSwitch:
    """A kill switch that is on."""

    target: Target
    since: datetime
    note: str | None = None
    by: str | None = None
    """The name of the key that turned it on; None if it has none."""


@dataclass(frozen=True, slots=True)
class KillSwitches:
    """All that are on, as a process knows them at a moment."""

    targets: frozenset[Target] = field(default_factory=frozenset)
    delivery_slots: Mapping[str, int] = field(default_factory=dict)
    """Of tenants with such a limit. They are read with the switches: a look of their own would cost more."""

    def __bool__(self) -> bool:
        return bool(self.targets)

    def __str__(self) -> str:
        slots = [f"{count} delivery slots of {tenant}" for tenant, count in self.delivery_slots.items()]
        return ", ".join(sorted(map(str, self.targets)) + sorted(slots)) or "none"

    def stopping(self, event_id: str, tags: Collection[str], destination: str | None) -> Target | None:
        """The one that stops an event; None if none does. `destination` is its destination's own id."""
        if not self.targets:
            return None
        asked = Target.asked(tenant_of(event_id), "", tags, destination)
        return next((each for each in asked if each in self.targets), None)


def held_line(target: Target) -> str:
    """What an event's history says while it is held."""
    return f"Held: the kill switch of {target} is on; it is due again when that is off"
