"""Which key a request shows: one of API_KEYS, or a stored one.

A process caches what it has read of a key or a tenant for `KNOWN_SECONDS`: no request of the same key asks
MongoDB meanwhile, and a deleted, rotated or suspended one still works.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Final, Generic, TypeVar

from flask import current_app, request

from scheduler_app.assembly import Assembly
from scheduler_app.clock import monotonic
from scheduler_app.config.api_keys import ApiKey, matching
from scheduler_app.domain.api_key import Caller, StoredKey, key_digest, key_id_of
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.person import PersonSession, token_digest
from scheduler_app.domain.tenant import Tenant
from scheduler_app.store.faults import STORE_FAULTS
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.deeds.api_keys import USED_SECONDS

log = get_logger(__name__)

KNOWN_SECONDS: Final = 3.0
#: Keys, and tenants, that a process knows; beyond that, those that were shown longest ago are read again.
MAX_KNOWN: Final = 10_000

T = TypeVar("T")


class RecentlyRead(Generic[T]):
    """What `read` has found under a name, for `KNOWN_SECONDS`. Threads may share it. What is not there is
    read again each time, so that names that nothing has displace none."""

    def __init__(self, read: Callable[[str], T | None]) -> None:
        self._read = read
        self._lock = Lock()
        self._found: OrderedDict[str, tuple[float, T]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._found)

    def get(self, name: str) -> T | None:
        """Raises a STORE_FAULT."""
        began = monotonic()
        with self._lock:
            known = self._found.get(name)
        if known is not None and began - known[0] < KNOWN_SECONDS:
            return known[1]
        found = self._read(name)
        with self._lock:
            self._found.pop(name, None)
            if found is not None:
                self._found[name] = (began, found)
                if len(self._found) > MAX_KNOWN:
                    self._found.popitem(last=False)
        return found


class KnownKeys:
    """The keys that a process of the API knows: those of API_KEYS, and the stored ones that were shown."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._keys: Sequence[ApiKey] = assembly.settings.keys
        self.stored: RecentlyRead[StoredKey] = RecentlyRead(assembly.keys.shown)
        self.tenants: RecentlyRead[Tenant] = RecentlyRead(assembly.tenants.known)
        self.people: RecentlyRead[PersonSession] = RecentlyRead(assembly.sign_ins.of_digest)
        self._used: OrderedDict[str, float] = OrderedDict()

    def caller(self, text: str, now: datetime) -> "ShownKey | None":
        """The caller whose key a request shows; None for a wrong key. A wrong checksum costs no look-up.
        Raises a STORE_FAULT."""
        if key := matching(text.encode(), self._keys):
            return ShownKey(Caller(key.digest, key.name, key.scopes), None)
        if (key_id := key_id_of(text)) is None:
            return None
        found, digest = self.stored.get(key_id), key_digest(text)
        return ShownKey(found.caller, digest, found) if found and found.opens(digest, now) else None

    def person(self, token: str, now: datetime) -> Caller | None:
        """The person whose command line shows this token; None if that is over. Raises a STORE_FAULT."""
        return self._assembly.sign_ins.goes_on(self.people.get(token_digest(token)), now)

    def of_session(self, key: str, digest: str | None, now: datetime) -> Caller | None:
        """The caller of a browser session. `key` is the digest of one of API_KEYS, or the id of a stored key,
        whose own `digest` is given, too. None if the key is no longer accepted. Raises a STORE_FAULT."""
        if digest is None:
            return next(
                (Caller(it.digest, it.name, it.scopes) for it in self._keys if it.digest == key), None
            )
        found = self.stored.get(key)
        return found.caller if found and found.opens(digest, now) else None

    def note_use(self, key: StoredKey, now: datetime) -> None:
        """Notes that a key is used, and from which address; not for each request."""
        began = monotonic()
        if began - self._used.get(key.id, float("-inf")) < USED_SECONDS:
            return
        self._used[key.id] = began
        if len(self._used) > MAX_KNOWN:
            self._used.popitem(last=False)
        try:
            self._assembly.keys.note_use(key, request.remote_addr or "", now)
        except STORE_FAULTS as error:
            log.warning("key.use_unnoted", message="A key's use could not be noted", error=str(error)[:300])


@dataclass(frozen=True, slots=True)
class ShownKey:
    """A right key."""

    caller: Caller
    digest: str | None
    """Of a stored one."""
    stored: StoredKey | None = None

    @property
    def session_key(self) -> str:
        """By which a session knows it."""
        return name_of(self.stored.id) if self.stored is not None else self.caller.owner


def known_keys() -> KnownKeys:
    found: KnownKeys = current_app.extensions["known_keys"]
    return found
