"""The connection to MongoDB: durable by default, and its clock measured."""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from bson.codec_options import CodecOptions, DatetimeConversion
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.errors import AutoReconnect, ConfigurationError, PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from scheduler_app.config import InvalidSetting
from scheduler_app.store.answer_limit import limited
from scheduler_app.store.collection import Document, Documents, documents
from scheduler_app.store.faults import STORE_FAULTS, only_duplicates, told_apart

#: The index for documents that are named one by one. Unless it is told, mongod tries those of the other
#: conditions beside it, and reads many documents in vain before it knows better.
BY_ID = "_id_"
SELECT_SERVER_MS = 5_000
CONNECT_MS = 5_000
#: No command takes longer; a silent connection must not hold a thread for ever.
SOCKET_MS = 30_000

Written = TypeVar("Written")


class Mongo:
    """One client for each process, made after any fork. Threads share it."""

    is_dry_run = False
    """Whether writes only report what they would do."""

    def __init__(self, uri: str, database: str, *, app_name: str = "rrule-scheduler") -> None:
        """Raises InvalidSetting for an unusable MONGO_URI."""
        try:
            self.client: MongoClient[Document] = MongoClient(
                uri,
                appname=app_name,
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
        return documents(self.db.get_collection(name))

    def majority(self, name: str) -> Documents:
        """The same collection with read concern majority: it shows only what a failover cannot take back."""
        return documents(self.db.get_collection(name, read_concern=ReadConcern("majority")))

    def command(self, name: str, value: Any = 1, **options: Any) -> Document:
        """A command on the database. Raises a STORE_FAULT, and OperationFailure where it is refused."""
        with told_apart(), limited(self.client):
            return self.db.command(name, value, **options)

    def hello(self) -> Document:
        """What mongod says of itself. Raises a STORE_FAULT, and OperationFailure where it refuses that."""
        with told_apart(), limited(self.client):
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
    "STORE_FAULTS",
    "Document",
    "Mongo",
    "PyMongoError",
    "new_token",
    "only_duplicates",
    "written_by_token",
]
