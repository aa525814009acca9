"""Keys of the API that are kept in MongoDB, and what a key may do.

A key is `rrs_<id>_<secret><checksum>`. The checksum, a CRC-32, lets scanners of source code recognise keys,
and refuses a mistyped one without a look-up. Of the whole only the SHA-256 is kept: the secret has 190 random
bits.
"""

import hashlib
import hmac
import re
import secrets
import string
import zlib
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from scheduler_app.domain.errors import InvalidField, NotAuthorized
from scheduler_app.domain.ids import WholeId, name_of, tenant_of
from scheduler_app.domain.request_rate import RequestRate


class KeyScope(StrEnum):
    """What one kind of request needs. None contains another: a key has each one that it shall have."""

    READ = "read"
    """To see everything but secrets, and to try what changes nothing."""
    TRIGGER = "trigger"
    """What whoever is on call does with things as they are: trigger, send again, cancel, pause."""
    WRITE = "write"
    """To make, change and delete what is kept: schedules, messages, destinations, calendars and the like."""
    ADMIN = "admin"
    """Keys, tenants, and what concerns the whole installation."""


ALL_SCOPES = frozenset(KeyScope)
#: For each tenant.
MAX_KEYS: Final = 200
MAX_KEY_NAME: Final = 64
#: How long the previous key may be accepted after a rotation.
MAX_OVERLAP_SECONDS: Final = 30 * 86_400
_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_ID, _SECRET, _CHECKSUM = 12, 32, 6
_KEY = re.compile(rf"(rrs_([0-9a-z]{{{_ID}}})_[0-9A-Za-z]{{{_SECRET}}})([0-9A-Za-z]{{{_CHECKSUM}}})")


def new_key_id(request_seed: str | None = None) -> str:
    """A fresh id, which every key has to itself, whichever tenant it is of; for the same seed the same one: a
    request that is sent again finds the key that it has made."""
    digits = string.digits + string.ascii_lowercase
    if request_seed is None:
        return "".join(secrets.choice(digits) for _ in range(_ID))
    left, found = int.from_bytes(hashlib.sha256(f"key {request_seed}".encode()).digest()), ""
    for _ in range(_ID):
        left, digit = divmod(left, len(digits))
        found += digits[digit]
    return found


def new_key(key_id: WholeId) -> str:
    """A fresh key with this id."""
    body = f"rrs_{name_of(key_id)}_{''.join(secrets.choice(_BASE62) for _ in range(_SECRET))}"
    return body + _checksum(body)


def key_id_of(key: str) -> str | None:
    """The id in a key; None for a text that is no such key, or has another checksum."""
    found = _KEY.fullmatch(key)
    return found[2] if found and _checksum(found[1]) == found[3] else None


def _checksum(body: str) -> str:
    left, digits = zlib.crc32(body.encode()), ""
    for _ in range(_CHECKSUM):
        left, digit = divmod(left, len(_BASE62))
        digits = _BASE62[digit] + digits
    return digits


def key_digest(key: str) -> str:
    """What is kept of a key."""
    return hashlib.sha256(key.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a request, and what he, she or it may do."""

    owner: str
    """The name under which things of one key are kept; it does not reveal the key."""
    name: str | None
    """The key's; empty for one without, None without a key."""
    scopes: frozenset[KeyScope] = ALL_SCOPES
    tenant: str | None = None
    """The one tenant in which it acts; None for the installation's, which acts in each."""
    rate: RequestRate | None = None
    """How many requests it may make."""
    tags: frozenset[str] = frozenset()
    """It sees and changes only schedules with one of these; empty: all of them."""

    @property
    def tags_in_words(self) -> str:
        """What a refusal calls them."""
        return f"the tag {' or '.join(sorted(self.tags))}"

    def check_grants(self, scopes: frozenset[KeyScope]) -> None:
        """Raises NotAuthorized for scopes that this caller lacks."""
        if more := sorted(scopes - self.scopes):
            raise NotAuthorized(
                f"your own key has no scope {', '.join(more)}, and can give no more than it has"
            )


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key that is kept in MongoDB."""

    id: WholeId
    name: str
    scopes: frozenset[KeyScope]
    created_at: datetime
    secret_sha256: str = field(repr=False)
    expires_at: datetime | None = None
    is_installations: bool = False
    """It belongs to the installation, and not to the tenant of its id."""
    tags: tuple[str, ...] = ()
    """It is for schedules with one of these alone; empty: for all of its tenant."""
    previous_sha256: str | None = field(default=None, repr=False)
    """Of the key before a rotation, which is accepted until `previous_until`."""
    previous_until: datetime | None = None
    created_by: str = ""
    last_used_at: datetime | None = None
    last_used_from: str | None = None
    request_seed: str | None = None
    """Of the request that has set the secret, if it had an Idempotency-Key."""
    requests_per_second: float | None = None
    """How many requests may be made with it; None: as many as its tenant may make."""

    @property
    def tenant(self) -> str:
        return tenant_of(self.id)

    @property
    def caller(self) -> Caller:
        """Who makes the requests that show this key."""
        name, rate = name_of(self.id), self.requests_per_second
        return Caller(
            f"key-{name}",
            self.name,
            self.scopes,
            None if self.is_installations else self.tenant,
            None if rate is None else RequestRate("key", name, rate),
            frozenset(self.tags),
        )

    def opens(self, digest: str, now: datetime) -> bool:
        """Whether a key of this SHA-256 opens the API."""
        if self.expires_at is not None and self.expires_at <= now:
            return False
        if hmac.compare_digest(digest, self.secret_sha256):
            return True
        is_before = hmac.compare_digest(digest, self.previous_sha256 or "")
        return is_before and self.previous_until is not None and now < self.previous_until


@dataclass(frozen=True, slots=True)
class KeyDraft:
    """What a person asks for."""

    name: str
    scopes: frozenset[KeyScope]
    tenant: str
    expires_at: datetime | None = None
    is_installations: bool = False
    requests_per_second: float | None = None
    tags: tuple[str, ...] = ()

    def check(self, caller: Caller, now: datetime) -> None:
        """Raises InvalidField, and NotAuthorized for more than the caller may give."""
        if self.expires_at is not None and self.expires_at <= now:
            raise InvalidField("expires_at", "has passed: give a time to come, or leave it out")
        if self.tags and self.is_installations:
            raise InvalidField("tags", "are of one tenant: leave them out, or leave installation out")
        if caller.tenant is not None and (self.is_installations or self.tenant != caller.tenant):
            raise NotAuthorized(f"your own key acts in the tenant {caller.tenant} alone: leave tenant out")
        caller.check_grants(self.scopes)
