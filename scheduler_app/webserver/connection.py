"""One client's connection: its phase, what waits to be sent to it, and when it is too slow."""

import socket
from collections import deque
from enum import Enum, auto
from itertools import islice
from typing import Any

from gunicorn.config import Config

from scheduler_app.webserver.framing import RequestReader
from scheduler_app.webserver.limits import MAX_BODY_SECONDS, MIN_BYTES_PER_SECOND

#: Pieces that one system call takes.
_PIECES = 64


class Phase(Enum):
    """What the connection does. In all but RUNNING it belongs to the event loop, in that one to a thread."""

    IDLE = auto()  # kept alive, between two requests
    HEADER = auto()
    BODY = auto()
    RUNNING = auto()
    ANSWER = auto()  # the rest of an answer waits for its reader
    LINGER = auto()  # the answer is the last one; what still comes is dropped


class Connection:
    """A socket that never blocks."""

    def __init__(self, cfg: Config, sock: socket.socket, peer: Any, server: Any) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.peer = peer
        self.server = server
        self.reader = RequestReader(cfg, peer)
        self.phase = Phase.HEADER
        self.since = 0.0
        """When it last did something of use: began a phase, or was found to keep the pace."""
        self.deadline = 0.0
        self.watched = 0
        """The events for which the selector watches it."""
        self.charged = 0
        """The bytes that the worker counts for it."""
        self.exchange: Any = None
        """The request being answered."""
        self.closes = False
        """Whether it ends with the answer that is being sent."""
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
        """Queues; gunicorn's Response calls it."""
        if data:
            self._out.append(data)
            self._pending += len(data)

    def flush(self) -> bool:
        """Sends what the socket takes at once; whether nothing is left. Raises OSError without a client."""
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
        """Begins a phase that may last for so many seconds, or that is measured by them."""
        self.phase, self.since, self.deadline, self._moved = phase, now, now + seconds, 0
        if phase is Phase.BODY:
            self._body_deadline = now + MAX_BODY_SECONDS

    def progress(self, count: int) -> None:
        """Counts bytes of a body that came."""
        self._moved += count

    def is_too_slow(self, now: float, seconds: float) -> bool:
        """Whether its deadline is over. A body or an answer that kept the pace is measured anew."""
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
