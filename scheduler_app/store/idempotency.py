"""Requests with an Idempotency-Key: who is doing each of them, and what the answer was."""

from dataclasses import dataclass

from bson import ObjectId
from pymongo.errors import DuplicateKeyError

from scheduler_app.domain.errors import Conflict
from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.stored_fields import Corrupt, fields, text, whole, wrong
from scheduler_app.store.mongo import Document, Mongo, lease, lease_over, new_token

DOCUMENT_VERSION = 1
BY_OWNER = "owner_v1"
#: An answer is kept for a day from the first request on.
KEPT_SECONDS = 86_400
#: Limits of the answers kept for each owner, and of their bytes: beyond them, the oldest are removed early.
MAX_ANSWERS = 100_000
MAX_BYTES = 64 * 1024 * 1024
#: After how many new answers of an owner, or bytes of them, this process counts all of the owner's answers.
ANSWERS_BETWEEN_COUNTS = 1_000
BYTES_BETWEEN_COUNTS = 8 * 1024 * 1024
#: Longer than any request of ours takes. A process that died in the middle holds its key no longer.
LEASE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Begun:
    """This process has the request to do.

    `request_seed`, 24 hex digits, is the same when the request is begun again after a crash or a server
    error. Ids are made of it, so that what the first try has made is found, and not made twice.
    """

    id: str
    token: str
    request_seed: str
    owner: str
    """Whose answers are counted together: who asks, and its tenant."""


@dataclass(frozen=True, slots=True)
class InFlight:
    """Another process, or another thread, is doing the request at this moment."""


@dataclass(frozen=True, slots=True)
class KeyReused:
    """The key was used for another request."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The request was done before; this is what was answered."""

    status: int
    headers: dict[str, str]
    body: bytes


def _read(record: Document, request: str, token: str, owner: str) -> Begun | InFlight | KeyReused | Answered:
    """Raises Corrupt."""
    if text(record.get("request"), "request") != request:
        return KeyReused()
    if record.get("token") == token:
        return Begun(record["_id"], token, text(record.get("seed"), "seed"), owner)
    if record.get("answer") is None:
        return InFlight()
    answer = fields(record["answer"], "answer")
    headers = fields(answer.get("headers"), "answer.headers")
    body = answer.get("body")
    if not isinstance(body, bytes):
        raise wrong("answer.body", body, "binary data")
    return Answered(
        whole(answer.get("status"), "answer.status", least=200, most=599),
        {name: text(value, f"answer.headers: {name}") for name, value in headers.items()},
        bytes(body),
    )


class Idempotency:
    def __init__(self, mongo: Mongo) -> None:
        self._records = mongo.collection("idempotency")
        self._majority = mongo.majority("idempotency")
        self._uncounted: dict[str, tuple[int, int]] = {}

    def begin(
        self, tenant: str, owner: str, key: str, request: str
    ) -> Begun | InFlight | KeyReused | Answered:
        """`owner` is a digest of who asks, `request` one of what is asked for. Raises Conflict where the
        record can no longer be read."""
        # Not by a colon, as in other ids: keys have colons, and one that an owner of `default` chose must not
        # look like another tenant's.
        owner = owner if tenant == TENANT else f"{tenant}/{owner}"
        identity, token, request_seed = f"{owner}:{key}", new_token(), str(ObjectId())
        held: Document = {"lease_until": lease(LEASE_SECONDS), "token": token}
        first = {
            "v": DOCUMENT_VERSION,
            "owner": owner,
            "request": request,
            "seed": request_seed,
            "created_at": "$$NOW",
        }
        try:
            # No record has this token: it is inserted, or there is one under this key already. An update,
            # because only an update can write mongod's own time.
            self._records.update_one({"_id": identity, "token": token}, [{"$set": first | held}], upsert=True)
            return Begun(identity, token, request_seed, owner)
        except DuplicateKeyError:
            pass
        # Its first process died before there was an answer, or released it: the lease is over by mongod's
        # clock.
        self._records.update_one(
            {
                "_id": identity,
                "request": request,
                "answer": {"$exists": False},
            }
            | lease_over("lease_until"),
            [{"$set": held}],
        )
        return self._judge(self._majority.find_one({"_id": identity}), request, token, owner)

    @staticmethod
    def _judge(
        record: Document | None, request: str, token: str, owner: str
    ) -> Begun | InFlight | KeyReused | Answered:
        if record is None:
            return (
                InFlight()
            )  # it was given up this very moment; the next request with the key begins it again
        try:
            return _read(record, request, token, owner)
        except Corrupt as error:
            # It is unknown whether it was done; doing it again may be doing it twice.
            raise Conflict(
                f"what is kept under this Idempotency-Key is corrupt ({error}): look whether the request was"
                " done, and take a new key"
            ) from None

    def finish(self, begun: Begun, status: int, headers: dict[str, str], body: bytes) -> bool:
        """Keeps the answer; False when the lease was lost to another try."""
        answer = {"status": status, "headers": headers, "body": body}
        result = self._records.update_one(
            {"_id": begun.id, "token": begun.token},
            {"$set": {"answer": answer, "size": len(body)}, "$unset": {"lease_until": ""}},
        )
        self._bound(begun.owner, len(body))
        return result.matched_count == 1

    def _bound(self, owner: str, size: int) -> None:
        """Removes the oldest answers of an owner that are beyond its limits, now and then."""
        answers, written = self._uncounted.get(owner, (0, 0))
        answers, written = answers + 1, written + size
        if answers < ANSWERS_BETWEEN_COUNTS and written < BYTES_BETWEEN_COUNTS:
            self._uncounted[owner] = answers, written
            return
        self._uncounted.pop(owner, None)
        kept = 0
        # By index alone, newest first.
        newest = self._records.find({"owner": owner}, {"_id": 0, "created_at": 1, "size": 1}, hint=BY_OWNER)
        for number, row in enumerate(newest.limit(MAX_ANSWERS + 1)):
            kept += row.get("size") or 0
            if number == MAX_ANSWERS or kept > MAX_BYTES:
                # What has no answer yet and is under a lease is at work.
                beyond = {"owner": owner, "created_at": {"$lte": row["created_at"]}}
                over = [{"answer": {"$exists": True}}, *lease_over("lease_until")["$or"]]
                self._records.delete_many(beyond | {"$or": over})
                return

    def release(self, begun: Begun) -> None:
        """Ends the lease of a request whose answer is not kept, as of one that a fault has broken off: what
        it has written may be there, so the next try goes on with its seed."""
        which = {"_id": begun.id, "token": begun.token, "answer": {"$exists": False}}
        self._records.update_one(which, [{"$set": {"lease_until": "$$NOW"}}])
        self._bound(begun.owner, 0)

    def give_up(self, begun: Begun) -> None:
        """Forgets the request, whose answer is not worth keeping: the next try starts from the beginning."""
        self._records.delete_one({"_id": begun.id, "token": begun.token, "answer": {"$exists": False}})
