"""The keys of the API: `key`, `name:key` or `name:key:role`, as the setting API_KEYS lists them."""

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from scheduler_app.domain.api_key import ALL_SCOPES, KeyScope

SHORTEST = 16
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")


#: What a key may do, by the word in its entry; `write` is what an entry without one has.
_ROLES = {"read": frozenset({KeyScope.READ}), "write": ALL_SCOPES}


@dataclass(frozen=True, slots=True)
class ApiKey:
    """One key. What it is called says who changed something."""

    name: str
    """Empty for a key without one."""
    scopes: frozenset[KeyScope]
    key: str = field(repr=False)

    @property
    def digest(self) -> str:
        """By which sessions and idempotency keys know it; it says nothing about the key."""
        return hashlib.sha256(self.key.encode()).hexdigest()


def read_key(entry: str) -> ApiKey:
    """The key that an entry of API_KEYS stands for. Raises ValueError, whose words hold no key."""
    parts = entry.split(":")
    name, key, role = "", entry, "write"
    if len(parts) > 1:
        if len(parts) > 3 or not _NAME.fullmatch(parts[0]):
            raise ValueError(
                "each must be key, name:key or name:key:read; a name has up to 64 letters, digits and _.@-"
            )
        name, key = parts[0], parts[1]
        if len(parts) == 3:
            if parts[2] not in _ROLES:
                raise ValueError(f"the role of the key {name} must be read or write")
            role = parts[2]
    if len(key) < SHORTEST:
        raise ValueError(
            f"each key must have at least {SHORTEST} characters (openssl rand -hex 24 makes one)"
        )
    return ApiKey(name, _ROLES[role], key)


def matching(given: bytes, keys: Iterable[ApiKey]) -> ApiKey | None:
    """The key that was given. Every key is compared in constant time, so that the time an answer takes says
    nothing about them."""
    found = None
    for each in keys:
        if hmac.compare_digest(given, each.key.encode()):
            found = each
    return found
