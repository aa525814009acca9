"""The connection to MongoDB: durable by default, and its clock measured."""

import secrets
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any

import pymongo
from bson.codec_options import CodecOptions
from pymongo import MongoClient
from pymongo.collection import Collection
from pymongo.database import Database
from pymongo.errors import (
    BulkWriteError,
    ConfigurationError,
    ConnectionFailure,
    ExecutionTimeout,
    OperationFailure,
    PyMongoError,
    WriteConcernError,
)
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from scheduler_app.config import InvalidSetting

Document = dict[str, Any]

#: What a retry may mend: MongoDB is away, electing, full, slow. A write-concern error counts as not written.
STORE_FAULTS: tuple[type[Exception], ...] = (
    ConnectionFailure,
    ExecutionTimeout,
    WriteConcernError,
    OperationFailure,
)

DUPLICATE_KEY = 11000
#: The index for documents that are named one by one. Unless it is told, mongod tries those of the other
#: conditions beside it, and reads many documents in vain before it knows better.
BY_ID = "_id_"
SELECT_SERVER_MS = 5_000
CONNECT_MS = 5_000
#: No single command of ours takes longer; a silent link must not hold a thread for ever.
SOCKET_MS = 30_000


class Mongo:
    """One client for each process, made after any fork. Threads share it."""

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
            codec_options=CodecOptions(tz_aware=True, tzinfo=UTC),
            write_concern=WriteConcern("majority", j=True),
        )

    def collection(self, name: str) -> Collection[Document]:
        return self.db.get_collection(name)

    def majority(self, name: str) -> Collection[Document]:
        """The same collection, read with the concern that shows only what a failover cannot take back."""
        return self.db.get_collection(name, read_concern=ReadConcern("majority"))

    def server_time(self) -> datetime:
        """mongod's clock, in whole milliseconds. Raises a STORE_FAULT."""
        hello = self.client.admin.command("hello")
        moment: datetime = hello["localTime"]
        return moment.replace(tzinfo=UTC)

    def close(self) -> None:
        self.client.close()


def within(seconds: float) -> AbstractContextManager[None]:
    """Bounds everything that this thread asks MongoDB in it, together: what takes longer is a STORE_FAULT.
    For who would rather know at once that it is away than wait for it."""
    return pymongo.timeout(seconds)


def new_token() -> str:
    """A claim's token: 64 random bits, fresh for each claim."""
    return secrets.token_hex(8)


def only_duplicates(error: BulkWriteError) -> bool:
    """Whether all that went wrong is that documents were there already."""
    details = error.details or {}
    return not details.get("writeConcernErrors") and all(
        failure["code"] == DUPLICATE_KEY for failure in details.get("writeErrors", [])
    )


__all__ = [
    "BY_ID",
    "STORE_FAULTS",
    "Document",
    "Mongo",
    "PyMongoError",
    "new_token",
    "only_duplicates",
    "within",
]
