"""Keys of the API: of each a hash. No key can be read from the database."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from pymongo import ASCENDING

from scheduler_app.domain.api_key import MAX_KEYS, KeyScope, StoredKey
from scheduler_app.domain.ids import WholeId, name_of, tenant_of, whole_id
from scheduler_app.domain.stored_fields import (
    Corrupt,
    flag,
    instant,
    items,
    number,
    one_of,
    optional,
    text,
    version,
)
from scheduler_app.store.audit import AuditedDocuments, audited
from scheduler_app.store.bulk_writes import insert_new
from scheduler_app.store.indexes import BY_EXPIRY, OF_TENANT
from scheduler_app.store.mongo import BY_ID, CorruptReports, Document, Mongo

DOCUMENT_VERSION: Final = 1


class StoredKeys:
    """A document's `_id` is the id that stands in the key; whose it is, is a field."""

    def __init__(self, mongo: Mongo) -> None:
        self._keys = mongo.collection("api_keys")
        self._majority = mongo.majority("api_keys")
        self.audited = AuditedDocuments(
            mongo,
            self._keys,
            "key",
            row_ids=lambda key_id: (name_of(key_id),),
            of_installation=lambda row: bool(row.get("installation")),
        )
        self._reports = CorruptReports(
            "key.corrupt", "A stored key cannot be read and opens nothing; delete it", "key"
        )

    @audited()
    def insert(self, key: StoredKey) -> bool:
        """False where a key of any tenant has that id."""
        return not insert_new(self._keys, [_document(key)])

    def of(self, tenant: str) -> list[StoredKey]:
        """A tenant's, and those of the installation that were made in it, the newest first."""
        rows = self._majority.find({"tenant": tenant}, hint=OF_TENANT).limit(MAX_KEYS)
        found = [each for row in rows if (each := self._sound(row)) is not None]
        return sorted(found, key=lambda each: each.created_at, reverse=True)

    def count(self, tenant: str) -> int:
        return self._keys.count_documents({"tenant": tenant}, hint=OF_TENANT, limit=MAX_KEYS)

    def get(self, key_id: WholeId) -> StoredKey | None:
        row = self._majority.find_one(_named(key_id))
        return None if row is None else self._sound(row)

    def expiring(
        self, last: tuple[datetime, str], before: datetime, *, limit: int
    ) -> tuple[list[StoredKey], tuple[datetime, str] | None]:
        """Those of all tenants that expire after `last`, an instant and an id of a document, the earliest
        first; and the last of them where there are more."""
        at, own_id = last
        # What somebody has made an array is found like its items, and has no place in the order.
        later = {"$gt": at, "$lt": before, "$not": {"$type": "array"}}
        which = {"$or": [{"expires_at": at, "_id": {"$gt": own_id}}, {"expires_at": later}]}
        order = [("expires_at", ASCENDING), ("_id", ASCENDING)]
        rows = list(self._keys.find(which, sort=order, hint=BY_EXPIRY).limit(limit))
        found = [each for row in rows if (each := self._sound(row)) is not None]
        return found, (rows[-1]["expires_at"], str(rows[-1]["_id"])) if len(rows) == limit else None

    def many(self, key_ids: Collection[WholeId]) -> list[StoredKey]:
        """Those of these that there are."""
        rows = self._keys.find({"_id": {"$in": [name_of(each) for each in key_ids]}}, hint=BY_ID)
        found = [each for row in rows if (each := self._sound(row)) is not None]
        return [each for each in found if each.id in key_ids]

    def shown(self, key_id: str) -> StoredKey | None:
        """The key with this id, of any tenant: for a caller who shows the key itself."""
        row = self._keys.find_one({"_id": key_id}, hint=BY_ID)
        return None if row is None else self._sound(row)

    @audited("rotated")
    def rotate(
        self, key: StoredKey, secret_sha256: str, previous_until: datetime, request_seed: str | None
    ) -> bool:
        """From now on another one opens, and this one until then; False where it was changed or deleted."""
        which = _named(key.id) | {"secret_sha256": key.secret_sha256}
        change = {
            "secret_sha256": secret_sha256,
            "previous_sha256": key.secret_sha256,
            "previous_until": previous_until,
            "request_seed": request_seed,
        }
        return self._keys.update_one(which, {"$set": change}, hint=BY_ID).matched_count == 1

    @audited("given another secret")
    def renew(self, key: StoredKey, secret_sha256: str) -> bool:
        """Another secret opens in the place of its own; False where it was changed or deleted."""
        which = _named(key.id) | {"secret_sha256": key.secret_sha256}
        change = {"$set": {"secret_sha256": secret_sha256}}
        return self._keys.update_one(which, change, hint=BY_ID).matched_count == 1

    @audited("overlap ended")
    def end_overlap(self, key: StoredKey) -> bool:
        """The key before the last rotation opens nothing any more; False where there was another one."""
        which = _named(key.id) | {"previous_sha256": key.previous_sha256}
        change = {"$unset": {"previous_sha256": "", "previous_until": ""}}
        return self._keys.update_one(which, change, hint=BY_ID).matched_count == 1

    @audited()
    def delete(self, key_id: WholeId) -> bool:
        """False where there is none."""
        return self._keys.delete_one(_named(key_id)).deleted_count == 1

    def delete_all(self, tenant: str) -> int:
        """Deletes a tenant's; returns how many there were."""
        rows = list(self._keys.find({"tenant": tenant}, {"_id": 1}, hint=OF_TENANT).limit(MAX_KEYS))
        return sum(self.delete(whole_id(tenant, row["_id"])) for row in rows)

    def used(self, key_id: WholeId, at: datetime, address: str, *, every_seconds: float) -> None:
        """Notes a use, unless another one was noted less than `every_seconds` ago."""
        before = at - timedelta(seconds=every_seconds)
        which = _named(key_id) | {"$or": [{"last_used_at": None}, {"last_used_at": {"$lte": before}}]}
        self._keys.update_one(which, {"$set": {"last_used_at": at, "last_used_from": address}}, hint=BY_ID)

    def _sound(self, row: Mapping[str, Any]) -> StoredKey | None:
        try:
            return _read(row)
        except Corrupt as error:
            self._reports.report(str(row.get("_id"))[:200], str(error))
            return None


def _named(key_id: WholeId) -> Document:
    return {"_id": name_of(key_id), "tenant": tenant_of(key_id)}


def _document(key: StoredKey) -> Document:
    row: Document = {
        **_named(key.id),
        "v": DOCUMENT_VERSION,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "secret_sha256": key.secret_sha256,
        "created_at": key.created_at,
        "created_by": key.created_by or None,
        "expires_at": key.expires_at,
        "installation": key.is_installations or None,
        "tags": list(key.tags) or None,
        "request_seed": key.request_seed,
        "requests_per_second": key.requests_per_second,
    }
    return {name: value for name, value in row.items() if value is not None}


def _read(row: Mapping[str, Any]) -> StoredKey:
    """Raises Corrupt."""
    get = row.get
    version(get("v"), DOCUMENT_VERSION)
    scopes = [one_of(each, "an item of scopes", tuple(KeyScope)) for each in items(get("scopes"), "scopes")]
    return StoredKey(
        id=whole_id(text(get("tenant"), "tenant"), text(get("_id"), "_id")),
        name=text(get("name"), "name"),
        scopes=frozenset(map(KeyScope, scopes)),
        secret_sha256=text(get("secret_sha256"), "secret_sha256"),
        created_at=instant(get("created_at"), "created_at"),
        created_by=optional(text, get("created_by"), "created_by") or "",
        expires_at=optional(instant, get("expires_at"), "expires_at"),
        is_installations=bool(optional(flag, get("installation"), "installation")),
        tags=tuple(text(each, "an item of tags") for each in optional(items, get("tags"), "tags") or ()),
        previous_sha256=optional(text, get("previous_sha256"), "previous_sha256"),
        previous_until=optional(instant, get("previous_until"), "previous_until"),
        last_used_at=optional(instant, get("last_used_at"), "last_used_at"),
        last_used_from=optional(text, get("last_used_from"), "last_used_from"),
        request_seed=optional(text, get("request_seed"), "request_seed"),
        requests_per_second=optional(number, get("requests_per_second"), "requests_per_second"),
    )
