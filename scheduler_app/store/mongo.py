"""The connection to MongoDB: durable by default, its clock measured, its errors sorted, its answers waited
for within a limit.

The limit on waiting begins anew with each answer. So it ends a request whose MongoDB accepts connections
and does not answer, and none that has much to do. It leaves out the time in which a replica set elects a
primary: its members answer, and a primary comes. Leases say until when a claim holds; they are written and
judged by mongod's own clock and by no other.

Of documents that are read again and again, an unchanged one is decoded once, and a corrupt one logged once.
"""

import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache, wraps
from typing import Any, Final, Generic, TypeVar

import bson
import pymongo
from bson.codec_options import CodecOptions, DatetimeConversion
from pymongo import MongoClient
from pymongo.client_session import ClientSession
from pymongo.collection import Collection
from pymongo.cursor import Cursor
from pymongo.database import Database
from pymongo.errors import AutoReconnect, ConfigurationError, ExecutionTimeout, OperationFailure, PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from scheduler_app.clock import monotonic
from scheduler_app.config import InvalidSetting
from scheduler_app.store.faults import Unavailable, raise_classified, raising_store_faults
from scheduler_app.telemetry import get_logger

_UNLIMITED = nullcontext()


class _AnswerLimit:
    """What one thread waits for an answer; `command` bounds one command."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = monotonic() + seconds

    @contextmanager
    def command(self, client: MongoClient[Any]) -> Iterator[None]:
        """Raises a STORE_FAULT where the answer does not come in time, or no primary is elected."""
        if _is_electing(client):
            # Waits as long as without a limit.
            client.is_primary  # noqa: B018
            self.begin_anew()
        try:
            with pymongo.timeout(self.seconds_left()):
                yield
        except ExecutionTimeout:
            raise
        except OperationFailure:
            self.begin_anew()
            raise
        self.begin_anew()

    def seconds_left(self) -> float:
        """Raises a STORE_FAULT where none are left; pymongo would look for a server half a second more."""
        left = self._until - monotonic()
        if left <= 0:
            raise Unavailable(f"MongoDB has not answered within {self._seconds:g} s")
        return left

    def begin_anew(self) -> None:
        self._until = monotonic() + self._seconds


_current: ContextVar[_AnswerLimit | None] = ContextVar("answer_limit", default=None)


def limit_command(client: MongoClient[Any]) -> AbstractContextManager[None]:
    """Stands around each command."""
    limit = _current.get()
    return _UNLIMITED if limit is None else limit.command(client)


@contextmanager
def answers_within(seconds: float) -> Iterator[None]:
    """Bounds how long this thread waits for any answer of MongoDB inside of it: a later one is a
    STORE_FAULT."""
    token = _current.set(_AnswerLimit(seconds))
    try:
        yield
    finally:
        _current.reset(token)


def begin_answer_limit_anew() -> None:
    """For a thread that has waited for somebody else than MongoDB."""
    if (limit := _current.get()) is not None:
        limit.begin_anew()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Bounds the time of everything that this thread asks MongoDB inside of it, together; what takes longer
    is a STORE_FAULT. It is for callers who would rather know at once that MongoDB is away than wait."""
    limit = _current.get()
    left = seconds if limit is None else min(seconds, limit.seconds_left())
    token = _current.set(None)
    try:
        with pymongo.timeout(left):
            yield
    finally:
        _current.reset(token)


def _is_electing(client: MongoClient[Any]) -> bool:
    """Whether members of a replica set answer, and none of them is primary."""
    known = client.topology_description
    members = known.server_descriptions().values()
    return not known.has_writable_server() and any(each.is_server_type_known for each in members)


Document = dict[str, Any]

#: Of the transaction that this thread is in.
_session: ContextVar[ClientSession | None] = ContextVar("session", default=None)


def met_another_write(error: BaseException | None) -> bool:
    """Whether MongoDB has undone all of a transaction, so that it may begin anew."""
    while error is not None:
        has_label = getattr(error, "has_error_label", None)
        if has_label is not None and has_label("TransientTransactionError"):
            return True
        error = error.__cause__
    return False


def is_in_transaction() -> bool:
    """Whether this thread is in one: MongoDB ends it at the first error of a command."""
    return _session.get() is not None


def _in_transaction(options: dict[str, Any]) -> dict[str, Any]:
    session = _session.get()
    return options if session is None else {"session": session, **options}


class DocumentCursor(Cursor[Document]):
    """The answer to a `find`, which asks MongoDB when it is read."""

    def __next__(self) -> Document:
        try:
            with limit_command(self.collection.database.client):
                return self.next()
        except OperationFailure as error:
            raise_classified(error)

    def to_list(self, length: int | None = None) -> list[Document]:
        """All that are left: of thousands, to ask for one after the other takes as long as to decode them."""
        try:
            with limit_command(self.collection.database.client):
                return super().to_list(length)
        except OperationFailure as error:
            raise_classified(error)


class Documents(Collection[Document]):
    """The store reads and writes every collection through one of these."""

    def find(self, *args: Any, **options: Any) -> DocumentCursor:
        return DocumentCursor(self, *args, **_in_transaction(options))

    def with_options(self, *args: Any, **options: Any) -> "Documents":  # type: ignore[override]
        return with_store_faults(super().with_options(*args, **options))


def with_store_faults(plain: Collection[Document]) -> Documents:
    """The same collection, whose verbs tell transient errors from rejections."""
    return Documents(
        plain.database,
        plain.name,
        codec_options=plain.codec_options,
        read_preference=plain.read_preference,
        write_concern=plain.write_concern,
        read_concern=plain.read_concern,
    )


def _verb_with_store_faults(verb: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(verb)
    def classifying(self: Documents, *args: Any, **options: Any) -> Any:
        try:
            with limit_command(self.database.client):
                return verb(self, *args, **_in_transaction(options))
        except OperationFailure as error:
            raise_classified(error)

    return classifying


for _name in (
    *("insert_one", "insert_many", "bulk_write", "update_one", "update_many", "delete_one", "delete_many"),
    *("replace_one", "find_one", "find_one_and_update", "find_one_and_delete", "aggregate", "distinct"),
    *("count_documents", "estimated_document_count", "create_indexes", "index_information"),
):
    setattr(Documents, _name, _verb_with_store_faults(getattr(Collection, _name)))


#: The index for documents that are named one by one. Unless it is told, mongod tries those of the other
#: conditions beside it, and reads many documents in vain before it knows better.
BY_ID = "_id_"
#: By this name mongod knows connections of ours.
APP_NAME: Final = "rrule-scheduler"
SELECT_SERVER_MS = 5_000
CONNECT_MS = 5_000
#: No command takes longer; a silent connection must not hold a thread for ever.
SOCKET_MS = 30_000

Written = TypeVar("Written")


class Mongo:
    """One client for each process, made after any fork. Threads share it."""

    is_dry_run = False
    """Whether writes only report what they would do."""

    def __init__(self, uri: str, database: str) -> None:
        """Raises InvalidSetting for an unusable MONGO_URI."""
        try:
            self.client: MongoClient[Document] = MongoClient(
                uri,
                appname=APP_NAME,
                tz_aware=True,
                retryWrites=True,
                retryReads=True,
                serverSelectionTimeoutMS=SELECT_SERVER_MS,
                connectTimeoutMS=CONNECT_MS,
                socketTimeoutMS=SOCKET_MS,
                maxPoolSize=200,
            )
        except (ConfigurationError, ValueError) as error:
            raise InvalidSetting(
                f"MONGO_URI cannot be used ({' '.join(str(error).split())}); give it as"
                " mongodb://user:password@host:27017/?replicaSet=rs0"
            ) from None
        self.db: Database[Document] = self.client.get_database(
            database,
            # A date beyond Python's years is a `DatetimeMS`, and bytes that are no UTF-8 are replaced: one
            # such value would otherwise keep the whole answer that it is part of from being decoded. What has
            # no place in a field is found where its type is checked.
            codec_options=CodecOptions(
                tz_aware=True,
                tzinfo=UTC,
                datetime_conversion=DatetimeConversion.DATETIME_AUTO,
                unicode_decode_error_handler="replace",
            ),
            write_concern=WriteConcern("majority", j=True),
        )

    def collection(self, name: str) -> Documents:
        """The collection, whose verbs tell transient errors from rejections (see `faults`)."""
        return with_store_faults(self.db.get_collection(name))

    def majority(self, name: str) -> Documents:
        """The same collection with read concern majority: it shows only what a failover cannot take back."""
        return with_store_faults(self.db.get_collection(name, read_concern=ReadConcern("majority")))

    def command(self, name: str, value: Any = 1, **options: Any) -> Document:
        """A command on the database. Raises a STORE_FAULT, and OperationFailure where it is refused."""
        with raising_store_faults(), limit_command(self.client):
            return self.db.command(name, value, **options)

    @contextmanager
    def transaction(self) -> Iterator[ClientSession]:
        """What this thread asks of collections inside of it is written as a whole at its end, or not at all
        where it raises anything. Inside of another one it is part of that. Raises a STORE_FAULT.

        It is for few documents: to change an indexed field of one in it, MongoDB 6.0 takes 0.1 ms with 10
        indexes of the collection, 0.4 ms with 20 and 0.9 ms with 30, ten times or more what it takes outside.
        Inserts cost no more.
        """
        outer = _session.get()
        if outer is not None:
            yield outer
            return
        with raising_store_faults(), self.client.start_session() as session:
            # It follows no collection's concerns, and the client has none.
            session.start_transaction(
                read_concern=ReadConcern("snapshot"), write_concern=WriteConcern("majority", j=True)
            )
            token = _session.set(session)
            try:
                yield session
            except BaseException:
                session.abort_transaction()
                raise
            finally:
                _session.reset(token)
            with limit_command(self.client):
                session.commit_transaction()

    def admin_command(self, name: str, value: Any = 1, **options: Any) -> Document:
        """A command on mongod. Raises a STORE_FAULT, and OperationFailure where it is refused."""
        with raising_store_faults(), limit_command(self.client):
            return self.client.admin.command(name, value, **options)

    def hello(self) -> Document:
        """What mongod says of itself. Raises a STORE_FAULT, and OperationFailure where it refuses that."""
        with raising_store_faults(), limit_command(self.client):
            return self.client.admin.command("hello")

    def server_time(self) -> datetime:
        """mongod's clock, in whole milliseconds. Raises a STORE_FAULT."""
        moment: datetime = self.hello()["localTime"]
        return moment.replace(tzinfo=UTC)

    def close(self) -> None:
        self.client.close()


def new_token() -> str:
    """A claim's token: 64 random bits, fresh for each claim."""
    return secrets.token_hex(8)


def written_by_token(write: Callable[[], Written]) -> Written | None:
    """Does an `update_many` that writes a token into what it changes, and repeats it where its connection
    breaks: pymongo repeats only writes of one document.

    Returns None then: what was written has to be read back by the token, because it may have been written
    before the connection broke. Raises a STORE_FAULT when the second one fails, too. `write` must leave alone
    what it has written already.
    """
    try:
        return write()
    except AutoReconnect:
        write()
        return None


__all__ = [
    "BY_ID",
    "Document",
    "Mongo",
    "PyMongoError",
    "new_token",
    "written_by_token",
]


#: Leases are minutes; a clock of mongod's that is put back by less than this ends none.
LONGEST_LEASE_MS = 86_400_000


def lease(seconds: float) -> dict[str, Any]:
    """The expression of a lease that ends `seconds` after mongod makes the write."""
    return {"$add": ["$$NOW", int(seconds * 1000)]}


def lease_over(field: str, jumped_ahead_seconds: float = 0.0) -> Document:
    """The condition of a lease that is over.

    A lease that is not a date counts as over, and so does one that ends later than any that is ever given: it
    would hold its document for ever. `jumped_ahead_seconds` is by how much mongod's clock has jumped ahead
    since the lease was written: the lease holds so much longer.
    """
    beyond = {"$add": ["$$NOW", LONGEST_LEASE_MS]}
    now = {"$subtract": ["$$NOW", int(jumped_ahead_seconds * 1000)]} if jumped_ahead_seconds else "$$NOW"
    return {"$or": [{"$expr": {"$lte": [f"${field}", now]}}, {"$expr": {"$gt": [f"${field}", beyond]}}]}


def unclaimed(owner: str, lease_until: str) -> Document:
    """The condition of a document that is not claimed, or whose claim is over. `owner` and `lease_until`
    are the names of the claim's fields."""
    return {"$or": [{owner: {"$exists": False}}, *lease_over(lease_until)["$or"]]}


Decoded = TypeVar("Decoded")

#: As many as have an event each second where a worker's machine is busy with them: fewer would be pushed out
#: in turn before they come again.
CACHED_DOCUMENTS = 4_000
#: Larger documents are mostly a callback's body, and not worth the memory.
MAX_CACHED_BYTES = 4 * 1024


class DecodedCache(Generic[Decoded]):
    """What `read` makes of a document, which must depend on nothing but the document.

    Each batch reads the schedules of its events, the same ones time and again, and decoding one costs
    several times what fetching its bytes does. Thread-safe.
    """

    def __init__(
        self,
        read: Callable[[Document], Decoded],
        options: CodecOptions[Document],
        *,
        size: int = CACHED_DOCUMENTS,
        most_bytes: int = MAX_CACHED_BYTES,
    ) -> None:
        def decoded(raw: bytes) -> Decoded:
            return read(bson.decode(raw, options))

        self._decoded, self._most_bytes = decoded, most_bytes
        self._kept = lru_cache(maxsize=size)(decoded)

    def of(self, raw: bytes) -> Decoded:
        """The reading of a document's BSON."""
        return self._kept(raw) if len(raw) <= self._most_bytes else self._decoded(raw)


log = get_logger(__name__)

#: With more of them it forgets all, and may repeat a report.
MOST_REMEMBERED: Final = 1_000


class CorruptReports:
    """One for each collection of a process. `event` is the log event, `message` what it means; `field` names
    the document in the line."""

    def __init__(self, event: str, message: str, field: str) -> None:
        self._event, self._message, self._field = event, message, field
        self._reported: set[tuple[str, str]] = set()

    def report(self, name: str, reason: str) -> None:
        """Logs it, unless it was logged for the same reason."""
        if (name, reason) in self._reported:
            return
        if len(self._reported) >= MOST_REMEMBERED:
            self._reported.clear()
        self._reported.add((name, reason))
        log.error(self._event, message=self._message, reason=reason, **{self._field: name[:200]})
