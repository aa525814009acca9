"""One client's connection: its phase, the bytes to be sent, and the deadlines of a slow client."""

import socket
from collections import deque
from enum import Enum, auto
from itertools import islice
from typing import Protocol

from gunicorn.config import Config

from scheduler_app.webserver.framing import RequestReader
from scheduler_app.webserver.limits import MAX_BODY_SECONDS, MIN_BYTES_PER_SECOND

#: Pieces that one system call takes.
_PIECES = 64


class Phase(Enum):
    """What the connection is doing. In RUNNING it belongs to a thread, in all others to the event loop."""

    IDLE = auto()  # kept alive, between two requests
    HEADER = auto()
    BODY = auto()
    RUNNING = auto()
    ANSWER = auto()  # the client has not read the whole answer yet
    LINGER = auto()  # the last answer is sent; what the client still sends is dropped


class Answering(Protocol):
    """A request that is being answered (see `exchange`)."""

    is_over: bool

    def advance(self) -> None: ...

    def abandon(self) -> None: ...


class Connection:
    """A socket that never blocks."""

    def __init__(self, cfg: Config, sock: socket.socket, peer: object, server: object) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.peer = peer
        self.server = server
        self.reader = RequestReader(cfg, peer)
        self.phase = Phase.HEADER
        self.since = 0.0
        """When the client last made progress: a phase began, or the pace was found sufficient."""
        self.deadline = 0.0
        self.watched = 0
        """The selector's events for which it is watched."""
        self.charged = 0
        """The bytes in memory that are counted for it."""
        self.exchange: Answering | None = None
        """The request being answered."""
        self.closes = False
        """Whether the connection ends with the answer that is being sent."""
        self._out: deque[bytes | memoryview] = deque()
        self._pending = 0
        self._moved = 0
        self._body_deadline = 0.0

    # -- answers -----------------------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """Bytes that wait to be sent."""
        return self._pending

    @property
    def held_bytes(self) -> int:
        return self._pending + self.reader.held_bytes

    def sendall(self, data: bytes) -> None:
        """Queues bytes to be sent; gunicorn's Response calls it like a socket's."""
        if data:
            self._out.append(data)
            self._pending += len(data)

    def flush(self) -> bool:
        """Sends what the socket takes without blocking; returns whether nothing is left. Raises OSError
        when the client is gone."""
        while self._out:
            try:
                sent = self.sock.sendmsg(list(islice(self._out, _PIECES)))
            except (BlockingIOError, InterruptedError):
                return False
            self._pending -= sent
            self._moved += sent
            while sent:
                first = self._out.popleft()
                if sent < len(first):
                    self._out.appendleft(memoryview(first)[sent:])
                    break
                sent -= len(first)
        return True

    # -- deadlines ---------------------------------------------------------------------------------------

    def enter(self, phase: Phase, now: float, seconds: float) -> None:
        """Begins a phase that may last for `seconds`, or whose pace is measured over them."""
        self.phase, self.since, self.deadline, self._moved = phase, now, now + seconds, 0
        if phase is Phase.BODY:
            self._body_deadline = now + MAX_BODY_SECONDS

    def progress(self, count: int) -> None:
        """Counts received bytes of a body."""
        self._moved += count

    def is_too_slow(self, now: float, seconds: float) -> bool:
        """Whether its deadline is over. A body or an answer that kept the pace gets a new deadline."""
        if now < self.deadline:
            return False
        kept_pace = self._moved >= MIN_BYTES_PER_SECOND * seconds
        if self.phase is Phase.ANSWER:
            in_time = kept_pace
        else:
            in_time = self.phase is Phase.BODY and kept_pace and now < self._body_deadline
        if in_time:
            self.since, self.deadline, self._moved = now, now + seconds, 0
        return not in_time
