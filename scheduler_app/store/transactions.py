"""Transactions that are open in mongod, of all processes.

mongod keeps one of a process that was killed open until its `transactionLifetimeLimitSeconds` are over. So
long it holds what it has written, and every other write of one of these documents waits, with all that its
command has to do for others. A user may see and end its own ones without any role for that.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

from bson.binary import Binary

from scheduler_app.store.mongo import APP_NAME, Mongo

#: There is at most one for each thread that changes something.
MAX_SEEN: Final = 1_000


class IdleTransaction(NamedTuple):
    """One between two of its commands. Two that are equal are the same one, with no command in between."""

    session: Binary
    number: int
    """Of the session's transactions."""
    worked_micros: int
    """By all of its commands until now."""
    client: str
    """The address from which the last one came."""


class OpenTransactions:
    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo

    def idle(self) -> list[IdleTransaction]:
        """Those of the scheduler's processes in which no command is at work. Raises a STORE_FAULT, and a
        rejection."""
        which = {"type": "idleSession", "transaction.parameters.autocommit": False, "appName": APP_NAME}
        pipeline = [
            {"$currentOp": {"allUsers": False, "idleSessions": True}},
            {"$match": which},
            {"$limit": MAX_SEEN},
            {"$project": {"lsid.id": 1, "transaction": 1, "client": 1}},
        ]
        found = self._mongo.admin_command("aggregate", pipeline=pipeline, cursor={"batchSize": MAX_SEEN})
        return [
            IdleTransaction(
                row["lsid"]["id"],
                row["transaction"]["parameters"]["txnNumber"],
                row["transaction"]["timeActiveMicros"],
                row.get("client", ""),
            )
            for row in found["cursor"]["firstBatch"]
        ]

    def end(self, transactions: Collection[IdleTransaction]) -> None:
        """Undoes them. A process that goes on with one all the same is told so by MongoDB, and makes it anew.
        Raises a STORE_FAULT, and a rejection."""
        self._mongo.admin_command("killSessions", [{"id": each.session} for each in transactions])
