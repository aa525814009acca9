"""Destinations in MongoDB: their documents, their edits by version, their lists and their removal.

A document is `{_id, v, tenant, version, action: {type, url, method, headers}, auth: {type, username,
secret}, signing, …}`: the request is stored as a schedule's action is, so that the same code seals the
same parts of it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from bson.raw_bson import RawBSONDocument
from pymongo import ReplaceOne

from scheduler_app.actions.http.kind import HttpKind
from scheduler_app.domain.action import is_queue
from scheduler_app.domain.destination import (
    LEAST_OPEN_SECONDS,
    MAX_BREAKER_FAILURES,
    MAX_OPEN_SECONDS,
    Auth,
    AuthType,
    Breaker,
    Destination,
)
from scheduler_app.domain.http_action import HttpAction, destination_key
from scheduler_app.domain.ids import WholeId, name_of, tenant_of
from scheduler_app.domain.resources.destination import DESTINATION
from scheduler_app.domain.states import UNCLAIMED, Kind, State
from scheduler_app.domain.stored_fields import (
    Corrupt,
    fields,
    flag,
    number,
    one_of,
    optional,
    tenant,
    text,
    version,
    whole,
)
from scheduler_app.store.audit import AuditedDocuments, audited
from scheduler_app.store.bulk_writes import insert_new
from scheduler_app.store.encryption import (
    SEALED_VERSION,
    SecretBox,
    open_document,
    seal_document,
    why_unreadable,
    without_secrets,
)
from scheduler_app.store.indexes import BY_ACTION, HAS_BREAKER, NOTIFIES, OF_DESTINATION
from scheduler_app.store.mongo import BY_ID, DecodedCache, Document, Mongo
from scheduler_app.store.paging import Page, PagedQuery, PageRequest, last_of, later_than
from scheduler_app.store.resource_fields import RowCodec, read_signing, signing_document

DOCUMENT_VERSION = 1
_HTTP = HttpKind()
_AUTH_TYPES = tuple(kind.value for kind in AuthType)
#: Stored as parts of the request, and as objects.
_IN_REQUEST = {"name", "url", "method", "headers"}
_OBJECTS = {"auth", "breaker", "signing", "signing_since", "signing_secret"}
_PLAIN = RowCodec(Destination, (row for row in DESTINATION if row.name not in _IN_REQUEST | _OBJECTS))


@dataclass(frozen=True, slots=True)
class CorruptDestination:
    """A stored destination that cannot be read, and why."""

    id: str
    reason: str
    readable_elsewhere: bool = False
    """Nothing is wrong with it: a newer release wrote it, or this process lacks the key to its secrets."""


def to_destination_document(destination: Destination, secret_box: SecretBox) -> Document:
    """Returns what is stored; what is None is left out."""
    own = destination
    document: Document = {
        "_id": own.id,
        "v": DOCUMENT_VERSION,
        "tenant": own.tenant,
        "action": _HTTP.to_document(HttpAction(own.url, own.method or "", own.headers, destination=own.id)),
        "auth": own.auth
        and {"type": own.auth.type.value, "username": own.auth.username, "secret": own.auth.secret},
        "signing": signing_document(own.signing),
        "breaker": own.breaker
        and {"failures": own.breaker.failures, "open_seconds": own.breaker.open_seconds},
        "deleting": own.deleting or None,
        **_PLAIN.document(own),
    }
    return seal_document({key: value for key, value in document.items() if value is not None}, secret_box)


def read_destination(row: Document, secret_box: SecretBox) -> Destination | CorruptDestination:
    """Returns the destination that a document makes, or why it makes none."""
    try:
        return from_destination_document(row, secret_box)
    except Exception as error:  # a document edited by hand may cause any error
        return CorruptDestination(str(row["_id"]), *why_unreadable(error))


def from_destination_document(row: Mapping[str, Any], secret_box: SecretBox) -> Destination:
    """Raises Corrupt for a document edited by hand, Newer for a newer release's, and UnreadableSecret."""
    version(row.get("v"), SEALED_VERSION)
    row = open_document(row, secret_box)
    get = row.get
    own_id = WholeId(text(row["_id"], "_id"))
    tenant(get("tenant"), "tenant", own_id)
    action = _HTTP.from_document(fields(get("action"), "action"))
    if action.destination != own_id:
        raise Corrupt("action.destination is not the document's own id")
    return Destination(
        id=own_id,
        url=action.url,
        method=action.method or None,
        headers=action.headers,
        auth=optional(_auth, get("auth"), "auth"),
        signing=read_signing(get("signing"), secret_box),
        breaker=optional(_breaker, get("breaker"), "breaker"),
        deleting=bool(optional(flag, get("deleting"), "deleting")),
        **_PLAIN.read(row),
    )


def _auth(value: Any, name: str) -> Auth:
    row = fields(value, name)
    return Auth(
        type=AuthType(one_of(row.get("type"), "auth.type", _AUTH_TYPES)),
        username=text(row.get("username"), "auth.username"),
        secret=text(row.get("secret"), "auth.secret"),
    )


def _breaker(value: Any, name: str) -> Breaker:
    row = fields(value, name)
    return Breaker(
        failures=whole(row.get("failures"), "breaker.failures", least=1, most=MAX_BREAKER_FAILURES),
        open_seconds=number(
            row.get("open_seconds"), "breaker.open_seconds", least=LEAST_OPEN_SECONDS, most=MAX_OPEN_SECONDS
        ),
    )


#: A destination in use is counted no further than this.
MAX_COUNTED = 100_000
NAMES_QUEUE = "queue_v1"


class Destinations:
    def __init__(self, mongo: Mongo, secret_box: SecretBox) -> None:
        self._destinations = mongo.collection("destinations")
        self._majority = mongo.majority("destinations")
        self._schedules = mongo.collection("schedules")
        self._events = mongo.collection("events")
        self._secret_box = secret_box
        told = partial(without_secrets, secret_box=secret_box)
        self.audited = AuditedDocuments(mongo, self._destinations, "destination", shown=told)
        options = self._majority.codec_options
        self._raw = self._majority.with_options(options.with_options(document_class=RawBSONDocument))
        self._readings = DecodedCache(partial(read_destination, secret_box=secret_box), options)

    @audited()
    def insert(self, destination: Destination) -> bool:
        """Returns False when there is one of that name."""
        return not insert_new(self._destinations, [to_destination_document(destination, self._secret_box)])

    @audited()
    def update(self, destination: Destination, *, version: int) -> bool:
        """Writes a change made of the destination as it stood at `version`. Returns False when another change
        came first."""
        which = {"_id": destination.id, "version": version}
        document = to_destination_document(destination, self._secret_box)
        return self._destinations.bulk_write([ReplaceOne(which, document)]).matched_count == 1

    @audited("deletion begun")
    def begin_deletion(self, destination_id: str, *, version: int | None = None) -> bool:
        """Marks it, so that nothing new names it. Returns False when there is none of that id, or not
        at `version`."""
        which: Document = {"_id": destination_id}
        if version is not None:
            which["version"] = version
        return self._destinations.update_one(which, {"$set": {"deleting": True}}).matched_count == 1

    @audited("deletion given up")
    def give_up_deletion(self, destination_id: str) -> bool:
        """Takes the mark away; False when there was none."""
        which = {"_id": destination_id, "deleting": True}
        return self._destinations.update_one(which, {"$unset": {"deleting": ""}}).matched_count == 1

    @audited()
    def delete(self, destination_id: str, *, version: int | None = None) -> bool:
        """Removes the document with its secrets. Returns False when there is none of that id, or not at
        `version`."""
        which: Document = {"_id": destination_id}
        if version is not None:
            which["version"] = version
        return self._destinations.delete_one(which).deleted_count == 1

    def get(self, destination_id: str) -> Destination | CorruptDestination | None:
        """Returns None when there is none of that id."""
        row = self._majority.find_one({"_id": destination_id})
        return read_destination(row, self._secret_box) if row else None

    def in_use(self, destination_id: str) -> int:
        """Returns how many schedules name the destination, for what they call or for whom they
        tell, at most `MAX_COUNTED` of each; one that does both counts once, unless there are more."""
        living: Document = {"tenant": tenant_of(destination_id), "state": {"$ne": "deleted"}}
        called = living | {"action.destination": destination_id}
        told = living | {
            "notifies.destination": name_of(destination_id),
            "action.destination": {"$ne": destination_id},
        }
        return self._schedules.count_documents(
            called, hint=BY_ACTION, limit=MAX_COUNTED
        ) + self._schedules.count_documents(told, hint=NOTIFIES, limit=MAX_COUNTED)

    def users(self, destination_id: str, *, limit: int) -> list[str]:
        """The ids of schedules that call the destination, `limit` at most; deleted ones are none of them."""
        living = {"tenant": tenant_of(destination_id), "state": {"$ne": "deleted"}}
        rows = self._schedules.find(
            living | {"action.destination": destination_id}, {"_id": 1}, hint=BY_ACTION
        )
        return [row["_id"] for row in rows.limit(limit).batch_size(limit)]

    def messages_of(self, destination_id: str) -> int:
        """Returns how many messages that are not finished name the destination, as `in_use`."""
        key = destination_key(destination_id)
        living: Document = {"due_at": {"$exists": True}, "kind": Kind.MESSAGE.value}
        told = {
            "tenant": tenant_of(destination_id),
            "notifies.destination": name_of(destination_id),
            "origin": {"$ne": key},
        }
        return self._events.count_documents(
            living | {"origin": key}, hint=OF_DESTINATION, limit=MAX_COUNTED
        ) + self._events.count_documents(living | told, hint=NOTIFIES, limit=MAX_COUNTED)

    def waiting(self, destination_id: str, *, in_flight: int | None) -> int:
        """Returns how many events wait for the destination, at most `MAX_COUNTED`: in MongoDB, in the broker,
        and in workers. `in_flight` is how many requests are under way; None: that is not known, and what
        workers hold does not count. An event counts for the destination that its schedule named when it was
        made."""
        living: Document = {"origin": destination_key(destination_id), "due_at": {"$exists": True}}
        unclaimed = living | {"state": {"$in": [state.value for state in sorted(UNCLAIMED)]}}
        waiting = self._events.count_documents(unclaimed, hint=OF_DESTINATION, limit=MAX_COUNTED)
        if in_flight is None:
            return waiting
        # An event whose receiver is still to say how its work went waits for that, and not for room.
        claimed = living | {"state": State.RUNNING.value, "completion.awaiting": {"$ne": True}}
        held = self._events.count_documents(claimed, hint=OF_DESTINATION, limit=MAX_COUNTED)
        return min(MAX_COUNTED, waiting + max(0, held - in_flight))

    def queues(self, *, limit: int) -> list[str]:
        """Returns the queues that destinations of all tenants name, from that many destinations at most."""
        named = self._destinations.find(
            {"queue": {"$exists": True}}, {"queue": 1, "_id": 0}, hint=NAMES_QUEUE
        )
        found = {row["queue"] for row in named.limit(limit) if is_queue(row["queue"])}
        return sorted(found)

    def for_delivery(self, ids: Sequence[str]) -> dict[str, Destination | CorruptDestination]:
        """Returns destinations by id. They are read from MongoDB for each batch, after its claim, so that a
        change holds from the next attempt on; only the decoding of unchanged documents is kept."""
        rows = self._raw.find({"_id": {"$in": list(ids)}})
        found = [self._readings.of(bytes(cast("RawBSONDocument", row).raw)) for row in rows]
        return {each.id: each for each in found}

    def stoppable(self, *, limit: int) -> list[Destination]:
        """Those of all tenants that are paused or have a breaker, `limit` at most; what cannot be read is
        left out."""
        which: Document = {"$or": [{"paused": True}, {"breaker": {"$exists": True}}]}
        found = [
            read_destination(row, self._secret_box)
            for row in self._destinations.find(which, limit=limit, hint=BY_ID)
        ]
        return [each for each in found if isinstance(each, Destination)]

    def with_breaker(self, last: tuple[str, str], *, limit: int) -> tuple[list[Destination], tuple[str, str]]:
        """Those with a breaker after the last one that was looked at, in the order of tenants and ids, and
        what the next look goes on after; what cannot be read is left out."""
        which = {"breaker": {"$exists": True}} | later_than(last)
        asked = self._destinations.find(which, hint=HAS_BREAKER).sort([("tenant", 1), ("_id", 1)])
        rows = list(asked.limit(limit))
        found = [read_destination(row, self._secret_box) for row in rows]
        return [each for each in found if isinstance(each, Destination)], last_of(rows, limit=limit)

    def unreadable(self, *, limit: int) -> dict[str, str]:
        """Of `limit` of all tenants, those that cannot be read, with the reasons."""
        found = [
            read_destination(row, self._secret_box)
            for row in self._destinations.find({}, limit=limit, hint=BY_ID)
        ]
        return {each.id: each.reason for each in found if isinstance(each, CorruptDestination)}

    def versions(self, ids: Collection[str]) -> dict[str, object]:
        """The stored versions by id; None for a destination that is gone."""
        rows = self._majority.find({"_id": {"$in": list(ids)}}, {"version": 1}, hint=BY_ID)
        return dict.fromkeys(ids) | {row["_id"]: row.get("version") for row in rows}

    def reseal(self) -> tuple[int, dict[str, str]]:
        """Encrypts with the newest key what an older one has sealed, beside processes that work. Returns how
        many destinations that were, and those that cannot be read with the reasons. May be called again after
        a STORE_FAULT."""
        sealed, unreadable = 0, dict[str, str]()
        for row in self._majority.find({}).sort("_id", 1):
            token = row.get("sealed")
            if isinstance(token, bytes) and self._secret_box.is_newest(token):
                continue
            found = read_destination(row, self._secret_box)
            if isinstance(found, CorruptDestination):
                unreadable[found.id] = found.reason
                continue
            document = to_destination_document(found, self._secret_box)
            if "sealed" in document:
                # A change that came in between has sealed it with that process's newest key.
                same = {"_id": found.id, "version": found.version}
                sealed += self._destinations.bulk_write([ReplaceOne(same, document)]).matched_count
        return sealed, unreadable

    def page(self, tenant: str, window: PageRequest) -> Page[Destination | CorruptDestination]:
        """Returns the tenant's destinations, newest first; the window's times are creation times."""
        found = PagedQuery(self._destinations, "created_at", {"tenant": tenant}, "list_v1").page(window)
        return Page([read_destination(row, self._secret_box) for row in found.rows], found.next)
