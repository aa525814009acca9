"""How long a request waits for a MongoDB that hangs: one that accepts connections and does not answer.

The limit begins anew with each answer. So it ends a request whose MongoDB hangs, and none that has much to
do. It also leaves out the time in which a replica set elects a primary: its members answer, and a primary
comes.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import pymongo
from pymongo import MongoClient
from pymongo.errors import ExecutionTimeout, OperationFailure

from scheduler_app.clock import monotonic
from scheduler_app.store.faults import Unavailable

_UNLIMITED = nullcontext()


class _AnswerLimit:
    """What one thread waits for an answer; `command` bounds one command."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = monotonic() + seconds

    @contextmanager
    def command(self, client: MongoClient[Any]) -> Iterator[None]:
        """Raises a STORE_FAULT where the answer does not come in time, or no primary is elected."""
        if _elects(client):
            # Waits as long as without a limit.
            client.is_primary  # noqa: B018
            self._begin_anew()
        try:
            with pymongo.timeout(self.seconds_left()):
                yield
        except ExecutionTimeout:
            raise
        except OperationFailure:
            self._begin_anew()
            raise
        self._begin_anew()

    def seconds_left(self) -> float:
        """Raises a STORE_FAULT where none are left; pymongo would look for a server half a second more."""
        left = self._until - monotonic()
        if left <= 0:
            raise Unavailable(f"MongoDB has not answered within {self._seconds:g} s")
        return left

    def _begin_anew(self) -> None:
        self._until = monotonic() + self._seconds


_current: ContextVar[_AnswerLimit | None] = ContextVar("answer_limit", default=None)


def limited(client: MongoClient[Any]) -> AbstractContextManager[None]:
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


def _elects(client: MongoClient[Any]) -> bool:
    """Whether members of a replica set answer, and none of them is primary."""
    known = client.topology_description
    members = known.server_descriptions().values()
    return not known.has_writable_server() and any(each.is_server_type_known for each in members)
