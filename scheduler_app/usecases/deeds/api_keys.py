"""What people do with the stored keys of the API, and with the tenants that these are of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from scheduler_app.domain.api_key import (
    MAX_KEYS,
    Caller,
    KeyDraft,
    StoredKey,
    key_digest,
    key_id_of,
    new_key_id,
)
from scheduler_app.domain.deletion import Deletion
from scheduler_app.domain.errors import Conflict, InvalidField, NotFound
from scheduler_app.domain.ids import TENANT, WholeId, name_of, whole_id
from scheduler_app.domain.tenant import MAX_TENANTS, Tenant, TenantState
from scheduler_app.store import Store
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.quotas import quotas_used
from scheduler_app.usecases.stops import PutResult

log = get_logger(__name__)

#: How often the last use of a key is written at most.
USED_SECONDS: Final = 60.0
_CHANGED: Final = "somebody has changed this key at the same moment: look at it, and try again"


@dataclass(frozen=True)
class KeyService:
    store: Store
    new_key: Callable[[WholeId], str]
    """A dry run makes none."""

    def create(
        self, draft: KeyDraft, caller: Caller, now: datetime, request_seed: str | None = None
    ) -> tuple[StoredKey, str]:
        """Makes a key; returns it with its text, which cannot be shown again. A second request with the same
        seed gives the key of the first one another secret: that one's answer was lost. Raises InvalidField,
        NotAuthorized, and Conflict where there are too many."""
        draft.check(caller, now)
        key_id = whole_id(draft.tenant, new_key_id(request_seed))
        made = None if request_seed is None else self.store.api_keys.get(key_id)
        if made is not None:
            return self._renewed(made, request_seed)
        tenant = Tenant(TENANT, None) if draft.tenant == TENANT else self.store.tenants.get(draft.tenant)
        if tenant is None or tenant.state is TenantState.DELETING:
            raise InvalidField("tenant", f"there is no tenant {draft.tenant[:64]}: make it first")
        if self.store.api_keys.count(draft.tenant) >= MAX_KEYS:
            raise Conflict(f"there are {MAX_KEYS} keys: delete some that nobody uses")
        text = self.new_key(key_id)
        key = StoredKey(
            id=key_id,
            name=draft.name,
            scopes=draft.scopes,
            created_at=now,
            secret_sha256=key_digest(text),
            expires_at=draft.expires_at,
            is_installations=draft.is_installations,
            tags=draft.tags,
            created_by=caller.name or "",
            request_seed=request_seed,
            requests_per_second=draft.requests_per_second,
        )
        if not self.store.api_keys.insert(key):
            raise Conflict("another key was made with the same id: ask again")
        log.warning("key.created", message="A key of the API was made", key=key_id, name=key.name)
        return key, text

    def all(self, tenant: str, caller: Caller) -> list[StoredKey]:
        """A tenant's, the newest first; those of the installation are shown to its own keys alone."""
        return [each for each in self.store.api_keys.of(tenant) if _may_see(caller, each)]

    def find(self, key_id: WholeId, caller: Caller) -> StoredKey:
        """Raises NotFound."""
        found = self.store.api_keys.get(key_id)
        if found is None or not _may_see(caller, found):
            raise NotFound(f"there is no key {name_of(key_id)[:64]}")
        return found

    def shown(self, key_id: str) -> StoredKey | None:
        """The key with this id, whosever it is: for who shows its secret, too."""
        return self.store.api_keys.shown(key_id)

    def note_use(self, key: StoredKey, address: str, now: datetime) -> None:
        """Notes that it is used, once in `USED_SECONDS`."""
        self.store.api_keys.used(key.id, now, address, every_seconds=USED_SECONDS)

    def rotate(
        self,
        key_id: WholeId,
        overlap: timedelta,
        caller: Caller,
        now: datetime,
        request_seed: str | None = None,
    ) -> tuple[StoredKey, str]:
        """Gives it another secret; the one before opens until the overlap is over. A second request with the
        same seed replaces the secret of the first one, whose answer was lost, and leaves the overlap. Raises
        NotFound, Conflict, and NotAuthorized for a key that may do more than the caller."""
        key = self.find(key_id, caller)
        caller.check_grants(key.scopes)
        if request_seed is not None and key.request_seed == request_seed:
            return self._renewed(key, request_seed)
        text = self.new_key(key_id)
        if not self.store.api_keys.rotate(key, key_digest(text), now + overlap, request_seed):
            raise Conflict(_CHANGED)
        log.warning("key.rotated", message="A key of the API has another secret", key=key_id, name=key.name)
        return replace(key, previous_until=now + overlap), text

    def revoke(self, key_id: WholeId, caller: Caller) -> StoredKey:
        """Deletes it: within seconds it opens nothing. Raises NotFound."""
        key = self.find(key_id, caller)
        self._delete(key)
        return key

    def revoke_leaked(self, text: str, now: datetime) -> None:
        """Deletes the key with this text; of one that a rotation has replaced, only the overlap ends: who has
        kept it must not take the newer one away. Whoever has the text may do that. Raises NotFound."""
        key_id, digest = key_id_of(text), key_digest(text)
        key = None if key_id is None else self.store.api_keys.shown(key_id)
        if key is not None and digest == key.secret_sha256:
            self._delete(key)
        elif key is None or not key.opens(digest, now) or not self.store.api_keys.end_overlap(key):
            raise NotFound("this is none of the stored keys, or it was deleted already")
        else:
            log.warning("key.overlap_ended", message="A replaced key was deleted", key=key.id, name=key.name)

    def _renewed(self, key: StoredKey, request_seed: str | None) -> tuple[StoredKey, str]:
        text = self.new_key(key.id)
        if key.request_seed != request_seed:
            raise Conflict(
                f"this request has made the key {name_of(key.id)}, which was rotated since: rotate it again"
            )
        if not self.store.api_keys.renew(key, key_digest(text)):
            raise Conflict(_CHANGED)
        log.warning("key.renewed", message="A request was sent again", key=key.id, name=key.name)
        return key, text

    def _delete(self, key: StoredKey) -> None:
        if not self.store.api_keys.delete(key.id):
            raise NotFound(f"there is no key {name_of(key.id)}")
        log.warning("key.deleted", message="A key of the API was deleted", key=key.id, name=key.name)


def _may_see(caller: Caller, key: StoredKey) -> bool:
    return caller.tenant is None or not key.is_installations


@dataclass(frozen=True)
class TenantService:
    store: Store
    longest_retention_days: int
    """What no tenant keeps longer: the larger one of RETENTION_DAYS and MESSAGE_RETENTION_DAYS."""
    counts_slots: bool = True
    """Whether there is a Redis that counts the attempts in flight."""

    def all(self) -> list[Tenant]:
        """By name; `default` is always one."""
        found = self.store.tenants.all()
        if all(each.name != TENANT for each in found):
            found.append(Tenant(TENANT, None))
        return sorted(found, key=lambda each: each.name)

    def find(self, name: str) -> Tenant:
        """Raises NotFound."""
        found = self.store.tenants.get(name)
        if found is None and name == TENANT:
            return Tenant(TENANT, None)
        if found is None:
            raise NotFound(f"there is no tenant {name[:64]}")
        return found

    def known(self, name: str) -> Tenant | None:
        """None where there is none of this name; `default` is always there."""
        return self.store.tenants.get(name) or (Tenant(TENANT, None) if name == TENANT else None)

    def used(self, tenants: Sequence[Tenant], now: datetime) -> dict[str, dict[str, int]]:
        """What each of them has used of the limits that it has, where that is known."""
        return quotas_used(self.store, tenants, now)

    def taking(self, name: str) -> Tenant:
        """The tenant that is to take something. Raises NotFound, and Conflict while everything of it is being
        deleted."""
        found = self.find(name)
        if found.state is TenantState.DELETING:
            raise Conflict(f"{name} is being deleted: wait until it is gone, or take another name")
        return found

    def put(self, tenant: Tenant) -> tuple[Tenant, PutResult]:
        """Sets it under its name; returns it as it is stored, and what that did. Raises InvalidField, and
        Conflict where there are too many."""
        tenant.check()
        known = self.store.tenants.get(tenant.name)
        if tenant.limits.delivery_slots is not None and not self.counts_slots:
            raise InvalidField(
                "limits/delivery_slots",
                "cannot be kept by this deployment: its broker does not count, so its operator must set"
                " FLOW_CONTROL_URL to a Redis",
            )
        days, longest = tenant.retention_days, self.longest_retention_days
        if days is not None and days > longest and (known is None or days != known.retention_days):
            raise InvalidField(
                "retention_days",
                f"must be {longest} at most: nothing is kept longer, by RETENTION_DAYS and"
                " MESSAGE_RETENTION_DAYS; raise these for all tenants first",
            )
        if known is None:
            if self.store.tenants.count() >= MAX_TENANTS:
                raise Conflict(f"there are {MAX_TENANTS} tenants: delete some that nobody needs")
        else:
            tenant = replace(tenant, created_at=known.created_at or tenant.created_at)
        if tenant == known:
            return tenant, "unchanged"
        if not self.store.tenants.put(tenant):
            raise Conflict(f"{tenant.name} is being deleted: wait until it is gone, or take another name")
        log.warning("tenant.set", message="A tenant was set", tenant=tenant.name, state=tenant.state.value)
        return tenant, "changed" if known else "created"

    def delete(self, name: str, confirm: str | None, caller: Caller, now: datetime) -> Deletion:
        """Has everything of a tenant deleted, and the tenant: beats do that. `confirm` is its name again.
        Returns the deletion, which may be at work already. Raises NotFound, Conflict, and InvalidField where
        it is not confirmed."""
        self.find(name)
        if name == TENANT:
            raise Conflict(f"{TENANT} is always there")
        if confirm != name:
            raise InvalidField(
                "confirm", f"must be {name}, the name of the tenant of which everything is deleted"
            )
        deletion = Deletion(
            id=WholeId(new_key_id()), subject=name, started_at=now, by=caller.name or "", next_due_at=now
        )
        if not self.store.deletions.start(deletion):
            return self.store.deletions.at_work(deletion.key) or deletion
        self.store.tenants.close(name)
        log.warning("tenant.deleting", message="A tenant is being deleted", tenant=name, deletion=deletion.id)
        return deletion
