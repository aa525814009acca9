"""The door through which one process reaches MongoDB and Redis: it lists each call, and can break one.

It stands where pymongo and redis-py write to their sockets and read from them; real servers are behind it.
The tried process has clients of its own, by which its calls are told from those of all others: its name in
MongoDB, and the name of the host in the broker's URL.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import pytest
import redis
from bson.raw_bson import RawBSONDocument
from pymongo.errors import NetworkTimeout
from pymongo.synchronous.pool import Connection
from redis.connection import AbstractConnection

#: The name of the tried process among MongoDB's clients, and the host in its broker's URL.
TRIED: Final = "tried"
TRIED_HOST: Final = "localhost"
#: What pymongo's clients get beside the store's options. The driver's own second try would hide a fault from
#: the application; a fault that survives it looks like one without it.
CLIENT_OPTIONS: Final = {"appname": TRIED, "retryWrites": False, "retryReads": False}

_MONGO_WRITES = frozenset({"insert", "update", "delete", "findAndModify", "commitTransaction"})
_REDIS_WRITES = frozenset({"LPUSH", "EVALSHA", "EVAL"})
#: Of connections, and not of what a process does.
_NO_CALLS = frozenset(
    {"hello", "ismaster", "ping", "endSessions", "killCursors", "abortTransaction"}
) | frozenset({"HELLO", "AUTH", "CLIENT", "SELECT", "PING", "INFO"})
#: These threads look again and again, as time passes: only their first look is a place.
_POLLING = frozenset({"withholding", "reports", "leases"})
PATIENCE_SECONDS: Final = 60.0


class Way(StrEnum):
    """How a call breaks."""

    REFUSED = "refused"
    """It fails before it has effect."""
    LOST = "answer lost"
    """It fails after it had effect."""
    ENDED = "process ended"
    """The process ends before it: nothing after it runs, no handler and no `finally`."""


@dataclass(frozen=True)
class Call:
    """A call of a process: the `number`-th one of this kind by this thread."""

    thread: str
    kind: str
    number: int
    writes: bool = field(compare=False)

    def __str__(self) -> str:
        return f"{self.kind} #{self.number} by {self.thread}"


class Door:
    """Of one run of one process. Thread-safe."""

    def __init__(self, broken: Call | None = None, way: Way | None = None) -> None:
        """`broken` is the call that breaks; None: all are listed alone. `way` None: the process stops before
        that call until `go_on`."""
        self.calls: list[Call] = []
        self.reached = threading.Event()
        self._broken, self._way = broken, way
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()
        self._stopped_at: int | None = None
        self._goes_on = threading.Event()
        self._buried = False
        self._answer_lost: set[int] = set()

    def go_on(self) -> None:
        """A process that was stopped goes on."""
        self._goes_on.set()

    def bury(self) -> None:
        """What is left of a process that has ended comes to its end: it reaches no server any more."""
        self._buried = True
        self._goes_on.set()

    def sends(self, connection: int, kind: str, *, writes: bool) -> bool:
        """A call is about to be sent by that connection; False when it fails before."""
        thread = threading.current_thread().name
        with self._lock:
            self._counts[thread, kind] += 1
            call = Call(thread, kind, self._counts[thread, kind], writes)
            if thread not in _POLLING or call.number == 1:
                self.calls.append(call)
            hit = call == self._broken and not self.reached.is_set()
            if hit:
                self.reached.set()
        if hit and self._way is None:
            assert self._goes_on.wait(PATIENCE_SECONDS), "a stopped process was never let go on"
        elif self._way is Way.ENDED and self.reached.is_set():
            assert self._goes_on.wait(PATIENCE_SECONDS), "a process that ended was never buried"
        elif hit and self._way is Way.LOST:
            self._answer_lost.add(connection)
        return not self._buried and not (hit and self._way is Way.REFUSED)

    def loses_answer(self, connection: int) -> bool:
        """Whether the answer that this connection has just got is lost."""
        if connection in self._answer_lost:
            self._answer_lost.discard(connection)
            return True
        return False


class Doors:
    """Where the tried process's calls pass; one door at a time is in its place."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._door: Door | None = None
        self._of_mongo(patch)
        self._of_redis(patch)

    @contextmanager
    def put(self, door: Door) -> Iterator[Door]:
        self._door = door
        try:
            yield door
        finally:
            door.bury()
            self._door = None

    def _of_mongo(self, patch: pytest.MonkeyPatch) -> None:
        send: Callable[..., None] = Connection.send_message
        receive: Callable[..., Any] = Connection.receive_message

        def fail(connection: Connection) -> None:
            connection.close_conn(None)
            # Not AutoReconnect: after that pymongo waits half a second before it looks at the server again.
            raise NetworkTimeout("broken by the test")

        def send_message(connection: Connection, message: bytes, max_doc_size: int) -> None:
            door = self._door if connection.opts.appname == TRIED else None
            kind = _mongo_command(message) if door else ""
            if door and kind and not door.sends(id(connection), kind, writes=_first(kind) in _MONGO_WRITES):
                fail(connection)
            send(connection, message, max_doc_size)

        def receive_message(connection: Connection, request_id: int | None) -> Any:
            answer = receive(connection, request_id)
            if self._door and self._door.loses_answer(id(connection)):
                fail(connection)
            return answer

        patch.setattr(Connection, "send_message", send_message)
        patch.setattr(Connection, "receive_message", receive_message)

    def _of_redis(self, patch: pytest.MonkeyPatch) -> None:
        send: Callable[..., None] = AbstractConnection.send_packed_command
        receive: Callable[..., Any] = AbstractConnection.read_response

        def fail(connection: Any) -> None:
            connection.disconnect()
            raise redis.TimeoutError("broken by the test")

        def send_packed_command(connection: Any, command: Any, check_health: bool = True) -> None:
            door = self._door if getattr(connection, "host", "") == TRIED_HOST else None
            kind = _redis_command(command) if door else ""
            if door and kind and not door.sends(id(connection), kind, writes=_first(kind) in _REDIS_WRITES):
                fail(connection)
            send(connection, command, check_health)

        def read_response(connection: Any, *args: Any, **options: Any) -> Any:
            answer = receive(connection, *args, **options)
            if self._door and self._door.loses_answer(id(connection)):
                fail(connection)
            return answer

        patch.setattr(AbstractConnection, "send_packed_command", send_packed_command)
        patch.setattr(AbstractConnection, "read_response", read_response)


def _mongo_command(message: bytes) -> str:
    """The command and its collection; empty for what is no call. An OP_MSG has its command behind 16 bytes of
    a header, 4 of flags and 1 for the kind of the section."""
    length = int.from_bytes(message[21:25], "little")
    command = RawBSONDocument(message[21 : 21 + length])
    name = next(iter(command))
    of = command.get("collection") if name == "getMore" else command[name]
    return "" if name in _NO_CALLS else f"{name} {of}" if isinstance(of, str) else name


def _redis_command(command: Any) -> str:
    """The command of a packet, or those of a pipeline's; empty for what is no call."""
    packed = command if isinstance(command, bytes) else b"".join(command)
    # An array of bulk strings: the number of items, a length, the name.
    name = packed.split(b"\r\n", 3)[2].decode()
    return "" if name in _NO_CALLS else f"{name} of Redis"


def _first(kind: str) -> str:
    return kind.partition(" ")[0]
