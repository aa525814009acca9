"""Requests that must be done once: who is at it, and what the answer was."""

from dataclasses import dataclass

from bson import ObjectId
from pymongo.errors import DuplicateKeyError

from scheduler_app.domain.errors import Conflict
from scheduler_app.domain.field_types import Corrupt, fields, text, whole, wrong
from scheduler_app.store.events.documents import lease_over
from scheduler_app.store.mongo import Document, Mongo, new_token

DOCUMENT_VERSION = 1
BY_OWNER = "owner_v1"
#: An answer is kept for a day from the first request on.
KEPT_SECONDS = 86_400
#: So many answers are kept for each owner, and so many bytes of them: the oldest go before their day is over.
MAX_ANSWERS = 100_000
MAX_BYTES = 64 * 1024 * 1024
#: An owner's answers are counted when this process has kept so many more of them, or so many bytes.
ANSWERS_BETWEEN_COUNTS = 1_000
BYTES_BETWEEN_COUNTS = 8 * 1024 * 1024
#: Longer than any request of ours takes. A process that died in the middle holds its key no longer.
LEASE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Begun:
    """The request is ours to do. `seed`, 24 hex digits, is the same when it is begun again after a crash:
    ids made of it make whatever the first try has left be found instead of made twice."""

    id: str
    token: str
    seed: str


@dataclass(frozen=True, slots=True)
class InFlight:
    """Another process is doing it at this moment."""


@dataclass(frozen=True, slots=True)
class Different:
    """The key was used for another request."""


@dataclass(frozen=True, slots=True)
class Answered:
    """It was done before; this is what was answered."""

    status: int
    headers: dict[str, str]
    body: bytes


def _read(record: Document, request: str, token: str) -> Begun | InFlight | Different | Answered:
    """Raises Corrupt."""
    if text(record.get("request"), "request") != request:
        return Different()
    if record.get("token") == token:
        return Begun(record["_id"], token, text(record.get("seed"), "seed"))
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

    def begin(self, owner: str, key: str, request: str) -> Begun | InFlight | Different | Answered:
        """`owner` is a digest of who asks, `request` one of what is asked for. Raises Conflict where the
        record can no longer be read."""
        identity, token, seed = f"{owner}:{key}", new_token(), str(ObjectId())
        lease: Document = {"lease_until": {"$add": ["$$NOW", LEASE_SECONDS * 1000]}, "token": token}
        first = {
            "v": DOCUMENT_VERSION,
            "owner": owner,
            "request": request,
            "seed": seed,
            "created_at": "$$NOW",
        }
        try:
            # No record has this token: it is inserted, or there is one under this key already. An update,
            # because only an update can write mongod's own time.
            self._records.update_one(
                {"_id": identity, "token": token}, [{"$set": first | lease}], upsert=True
            )
            return Begun(identity, token, seed)
        except DuplicateKeyError:
            pass
        # Who began it died before it had an answer: the lease is over by mongod's clock.
        self._records.update_one(
            {
                "_id": identity,
                "request": request,
                "answer": {"$exists": False},
            }
            | lease_over("lease_until"),
            [{"$set": lease}],
        )
        return self._judge(self._majority.find_one({"_id": identity}), request, token)

    @staticmethod
    def _judge(record: Document | None, request: str, token: str) -> Begun | InFlight | Different | Answered:
        if record is None:
            return InFlight()  # it was given up this very moment; whoever asks again begins it anew
        try:
            return _read(record, request, token)
        except Corrupt as error:
            # Nobody knows any more whether it was done; to do it again may be to do it twice.
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
        self._bound(begun.id.partition(":")[0], len(body))
        return result.matched_count == 1

    def _bound(self, owner: str, size: int) -> None:
        """Now and then the oldest answers of an owner go that are beyond what is kept for it."""
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
                # What has no answer yet is at work, and under a lease.
                beyond = {"owner": owner, "created_at": {"$lte": row["created_at"]}}
                self._records.delete_many(beyond | {"answer": {"$exists": True}})
                return

    def give_up(self, begun: Begun) -> None:
        """It came to nothing that is worth an answer for ever: the next try is a new one."""
        self._records.delete_one({"_id": begun.id, "token": begun.token, "answer": {"$exists": False}})
