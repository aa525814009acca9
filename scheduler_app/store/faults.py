"""Errors of MongoDB, sorted by what helps against them.

*Transient*: MongoDB is away, electing, full, slow, or does not let this process in. The same command
succeeds later: these are `STORE_FAULTS`, after which callers try again.

*Rejected*: MongoDB, or the encoder in front of it, will never do this command on this document: an
expression over a wrong type, a document that grew too large, failed validation. Trying again is in vain,
and holds up whatever shares the command. These are `REJECTED`; `bulk_writes.write_isolated` finds the
document.

pymongo has one class, `OperationFailure`, for both. An `except` chooses by class alone, so the collections
that `Mongo.collection` gives (`Documents`) raise a transient one as `Unavailable` and leave the others as
they are. That is a `try` around each command, which costs nothing where nothing is raised; and no verb of
the store has to remember it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from bson.errors import BSONError
from pymongo.errors import (
    BulkWriteError,
    ConnectionFailure,
    ExecutionTimeout,
    OperationFailure,
    PyMongoError,
    WriteConcernError,
)


class Unavailable(PyMongoError):
    """MongoDB refused a command for a reason of its own, not of a document's: the same command succeeds
    later."""


class IndexMissing(Unavailable):
    """A command names an index that is not there: it is still being built for a new database or a new
    release, or somebody dropped it."""


#: Errors after which a retry may succeed. None of them is among REJECTED.
STORE_FAULTS: tuple[type[Exception], ...] = (ConnectionFailure, Unavailable)

#: Errors after which no retry succeeds. The last two are what bson raises for a number or a text that it
#: cannot encode. They must be caught around a command of the store alone.
REJECTED: tuple[type[Exception], ...] = (OperationFailure, BSONError, OverflowError, UnicodeError)

DUPLICATE_KEY = 11000

_TRANSIENT_LABELS = ("RetryableWriteError", "TransientTransactionError", "RetryableError", "NetworkError")
_TRANSIENT_CODES = frozenset(
    {
        *(6, 7, 89, 202, 317, 384, 9001),  # hosts, sockets, connection pools
        *(91, 189, 10058, 10107, 11600, 11602, 13435, 13436),  # shutting down, no primary
        *(64, 75, 79, 100, 133, 134, 216),  # write and read concerns, elections
        *(24, 46, 50, 112, 262, 365, 462, 11601),  # locks, time limits, conflicts, overload, interrupted
        *(43, 136, 175, 237, 239, 246),  # cursors, plans and snapshots that ended
        *(39, 146, 292, 14031),  # files, memory, disk space
        *(63, 70, 150, 13388),  # a cluster's routing that moved on
    }
)
#: An operator has to fix these, and no document is at fault: they are reported and tried again. Atlas reports
#: exceeded quotas by 8000.
_ACCESS_CODES = frozenset({13, 18, 391, 8000})
_BAD_VALUE = 2
_NO_SUCH_INDEX = "hint provided does not correspond to an existing index"
#: What MongoDB says of one document whose fields have all the right types: it failed the validation of the
#: collection, or became too large.
_OF_ONE_DOCUMENT = frozenset({121, 10334, 17280, 17419, 17420})


def classified(error: OperationFailure) -> PyMongoError:
    """`Unavailable` where a retry helps; the error itself where MongoDB rejects the command as such."""
    # A write concern that was not met counts as not written.
    if isinstance(error, ExecutionTimeout | WriteConcernError):
        return Unavailable(str(error))
    codes = _codes(error)
    if codes & _ACCESS_CODES:
        return Unavailable(
            "MongoDB does not let this process in, or not do this; see to the user, its password and its role"
            f" (readWrite) in MONGO_URI: {error}"
        )
    if codes & _TRANSIENT_CODES or any(map(error.has_error_label, _TRANSIENT_LABELS)):
        return Unavailable(str(error))
    if _BAD_VALUE in codes and _NO_SUCH_INDEX in str(error):
        return IndexMissing(
            "an index is missing; every process builds the indexes when it starts, so try again in a moment,"
            f" and restart a process if this lasts: {(error.details or {}).get('errmsg', '')!s:.200}"
        )
    return error


def raise_classified(error: OperationFailure) -> NoReturn:
    """Raises what `classified` makes of it."""
    raised = classified(error)
    if raised is error:
        raise error
    raise raised from error


@contextmanager
def raising_store_faults() -> Iterator[None]:
    """Raises transient errors as STORE_FAULTS, around commands that are not verbs of a collection."""
    try:
        yield
    except OperationFailure as error:
        raise_classified(error)


def of_one_document(error: Exception) -> bool:
    """Whether the error says by itself that the fault is the document's, or its new values'."""
    if not isinstance(error, OperationFailure):
        return True  # it could not even be encoded
    return bool(_codes(error) & _OF_ONE_DOCUMENT)


def only_duplicates(error: BulkWriteError) -> bool:
    """Whether the only errors are documents that existed already."""
    return not rejected_positions(error) and not (error.details or {}).get("writeConcernErrors")


def rejected_positions(error: BulkWriteError) -> dict[int, str]:
    """The operations of an unordered bulk write that were rejected, without duplicates, and why."""
    return {
        failure["index"]: str(failure.get("errmsg"))
        for failure in (error.details or {}).get("writeErrors", [])
        if failure["code"] != DUPLICATE_KEY
    }


def _codes(error: OperationFailure) -> set[Any]:
    """The code of a command, or those of each part of a bulk write."""
    if not isinstance(error, BulkWriteError):
        return {error.code}
    details: Mapping[str, Any] = error.details or {}
    concerns = {each.get("code", 64) for each in details.get("writeConcernErrors", [])}
    # Whatever a write concern says: it counts as not written.
    return {each.get("code") for each in details.get("writeErrors", [])} | ({64} if concerns else set())
