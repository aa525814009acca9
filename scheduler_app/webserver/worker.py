"""The worker class: an event loop that reads requests and sends answers, and threads that make them."""

import errno
import os
import resource
import selectors
import socket
import time
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from gunicorn.workers.base import Worker

from scheduler_app.config import load_settings
from scheduler_app.telemetry import get_logger
from scheduler_app.webserver.connection import Connection, Phase
from scheduler_app.webserver.exchange import Exchange
from scheduler_app.webserver.limits import (
    LINGER_SECONDS,
    MAX_BUFFERED_BYTES,
    STOPPING_IDLE_SECONDS,
)
from scheduler_app.webserver.problems import RefusedRequest, overloaded, too_slow

log = get_logger(__name__)

_RECEIVE_BYTES = 64 * 1024
_SWEEP_SECONDS = 0.5
_LOG_SECONDS = 10.0
#: What a process needs beside connections: MongoDB, Redis, logs, metrics.
_OTHER_FILES = 128
#: What may be closed when the process is full: all that waits for its client.
_EXPENDABLE = (Phase.LINGER, Phase.IDLE, Phase.HEADER, Phase.BODY, Phase.ANSWER)
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_LIVENESS = frozenset(("/health", "/healthz"))
_READINESS = frozenset(("/readyz",))


class BufferingWorker(Worker):  # type: ignore[misc]
    """HTTP/1.1 without TLS. `threads`, `keepalive`, `worker_connections`, `graceful_timeout`, `max_requests`
    and the limits of a header are gunicorn's settings; API_SLOW_CLIENT_SECONDS is ours."""

    alive: bool

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        """Called by gunicorn once, before it forks."""
        if cfg.is_ssl:
            raise SystemExit("scheduler: the API speaks no TLS by itself; put a TLS proxy in front of it")

    def init_process(self) -> None:
        self.slow_seconds = load_settings().api_slow_client_seconds
        self.selector = selectors.DefaultSelector()
        self.connections: set[Connection] = set()
        self.most_connections = _most_connections(self.cfg.worker_connections)
        self.held_bytes = 0
        self.done: deque[Connection] = deque()
        self.woken = False
        self.threads = ThreadPoolExecutor(self.cfg.threads, "request")
        # A probe must not wait behind requests, and "alive" not behind "ready", which asks MongoDB.
        self.liveness = ThreadPoolExecutor(1, "liveness")
        self.readiness = ThreadPoolExecutor(2, "readiness")
        self.closed: Counter[str] = Counter()
        self.next_sweep = self.next_log = 0.0
        self.accepting = False
        super().init_process()

    def run(self) -> None:
        self.selector.register(self.PIPE[0], selectors.EVENT_READ, self._drain_pipe)
        for listener in self.sockets:
            listener.setblocking(False)
        self._accept_connections(True)
        while self.alive and self.ppid == os.getppid():
            self._turn()
        self._stop()

    def is_last_request(self) -> bool:
        """Whether a connection ends with the request that begins now; a thread asks."""
        self.nr += 1
        if self.nr >= self.max_requests and self.alive:
            self.log.info("Restarting the worker after max_requests")
            self.alive = False
        return not self.alive

    # -- the loop ----------------------------------------------------------------------------------------

    def _turn(self, seconds: float = _SWEEP_SECONDS) -> None:
        self.notify()
        for key, _ in self.selector.select(seconds):
            key.data()
        now = time.monotonic()
        if now >= self.next_sweep:
            self.next_sweep = now + _SWEEP_SECONDS
            self._sweep(now)

    def _stop(self) -> None:
        """Answers what has begun, for graceful_timeout seconds at most."""
        self._accept_connections(False)
        began = time.monotonic()
        while self.connections and (now := time.monotonic()) < began + self.cfg.graceful_timeout:
            if now >= began + STOPPING_IDLE_SECONDS:
                for connection in self._in(Phase.IDLE, Phase.HEADER, Phase.LINGER):
                    self._close(connection)
            self._turn(0.1)
        for pool in (self.threads, self.liveness, self.readiness):
            pool.shutdown(wait=False, cancel_futures=True)
        self.selector.close()

    def _wake(self) -> None:
        """From a thread: the loop looks at `done`."""
        if not self.woken:
            self.woken = True
            os.write(self.PIPE[1], b".")

    def _drain_pipe(self) -> None:
        # gunicorn writes to it as well, at signals.
        os.read(self.PIPE[0], 4096)
        self.woken = False
        while self.done:
            connection = self.done.popleft()
            self._guarded(connection, self._advanced)

    def _guarded(self, connection: Connection, step: Any) -> None:
        """A connection that our own code cannot handle ends alone."""
        if connection not in self.connections:
            return
        try:
            step(connection)
        except OSError:
            # The client is gone.
            self._close(connection)
        except Exception:
            log.exception("api.connection_failed", message="A connection could not be served")
            self._close(connection)

    # -- connections -------------------------------------------------------------------------------------

    def _accept_connections(self, wanted: bool) -> None:
        if wanted is self.accepting:
            return
        self.accepting = wanted
        for listener in self.sockets:
            if wanted:
                self.selector.register(listener, selectors.EVENT_READ, partial(self._accept, listener))
            else:
                self.selector.unregister(listener)

    def _accept(self, listener: Any) -> None:
        """One at a time: other processes accept from the same socket."""
        try:
            sock, peer = listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                # Until the next sweep, or the loop would spin.
                self.closed["refused"] += 1
                self._make_room()
                self._accept_connections(False)
            return
        connection = Connection(self.cfg, sock, peer, listener.getsockname())
        self.connections.add(connection)
        connection.enter(Phase.HEADER, time.monotonic(), self.slow_seconds)
        if len(self.connections) > self.most_connections and not self._make_room(connection):
            self.closed["refused"] += 1
            self._guarded(connection, partial(self._refuse, overloaded()))
            return
        self._watch(connection, selectors.EVENT_READ)

    def _make_room(self, newest: Connection | None = None) -> bool:
        """Closes the connection whose client has done nothing of use for longest; False where all are being
        answered. An honest client sends its request at once: by then it is among the newest."""
        waiting = [each for each in self._in(*_EXPENDABLE) if each is not newest]
        if not waiting:
            return False
        oldest = min(waiting, key=lambda each: each.since)
        self.closed["evicted"] += oldest.phase is not Phase.IDLE
        self._close(oldest)
        return True

    def _in(self, *phases: Phase) -> list[Connection]:
        return [connection for connection in self.connections if connection.phase in phases]

    def _watch(self, connection: Connection, events: int) -> None:
        if events == connection.watched:
            return
        if not connection.watched:
            step = partial(self._guarded, connection, self._ready)
            self.selector.register(connection.sock, events, step)
        elif not events:
            self.selector.unregister(connection.sock)
        else:
            step = partial(self._guarded, connection, self._ready)
            self.selector.modify(connection.sock, events, step)
        connection.watched = events

    def _close(self, connection: Connection) -> None:
        """In any phase but RUNNING: then the socket is a thread's."""
        self._watch(connection, 0)
        self.connections.discard(connection)
        self.held_bytes -= connection.charged
        connection.sock.close()
        if connection.exchange is not None:
            self.threads.submit(connection.exchange.abandon)

    def _charge(self, connection: Connection) -> None:
        """Counts what it holds in memory; when it is too much in all, the slowest of the others make room."""
        held = connection.held_bytes
        self.held_bytes += held - connection.charged
        connection.charged = held
        while self.held_bytes > MAX_BUFFERED_BYTES:
            others = self._in(Phase.BODY, Phase.ANSWER)
            slow = [each for each in others if each is not connection and each.charged >= _RECEIVE_BYTES]
            if not slow:
                return
            self.closed["evicted"] += 1
            self._close(min(slow, key=lambda each: each.since))

    # -- requests ----------------------------------------------------------------------------------------

    def _ready(self, connection: Connection) -> None:
        if connection.phase is Phase.ANSWER:
            self._send(connection)
        else:
            self._receive(connection)

    def _receive(self, connection: Connection) -> None:
        try:
            data = connection.sock.recv(_RECEIVE_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        if connection.phase is Phase.LINGER:
            if not data:
                self._close(connection)
            return
        if not data:
            if connection.reader.in_body:
                self._refuse(RefusedRequest(400, "the body ended before it was complete"), connection)
            else:
                self._close(connection)
            return
        connection.reader.feed(data)
        connection.progress(len(data))
        self._read(connection)

    def _read(self, connection: Connection) -> None:
        """Hands a complete request to a thread; otherwise waits for the rest of it."""
        reader, now = connection.reader, time.monotonic()
        try:
            request = reader.next_request()
        except RefusedRequest as refusal:
            self._refuse(refusal, connection)
            return
        if request is not None:
            self._run(connection, Exchange(self, connection, request), request.path)
            return
        if reader.continue_expected:
            reader.continue_expected = False
            connection.sendall(_CONTINUE)
            connection.flush()
        if reader.in_body and connection.phase is not Phase.BODY:
            connection.enter(Phase.BODY, now, self.slow_seconds)
        elif connection.phase is Phase.IDLE and not reader.is_empty:
            connection.enter(Phase.HEADER, now, self.slow_seconds)
        self._watch(connection, selectors.EVENT_READ)
        self._charge(connection)

    def _run(self, connection: Connection, exchange: Exchange, path: str) -> None:
        self._watch(connection, 0)
        connection.exchange = exchange
        connection.enter(Phase.RUNNING, time.monotonic(), 0.0)
        pool = self.threads
        if path in _LIVENESS:
            pool = self.liveness
        elif path in _READINESS:
            pool = self.readiness
        pool.submit(self._advance, connection, exchange)

    def _advance(self, connection: Connection, exchange: Exchange) -> None:
        """In a thread."""
        try:
            exchange.advance()
        finally:
            self.done.append(connection)
            self._wake()

    def _advanced(self, connection: Connection) -> None:
        if connection.exchange.is_over:
            connection.exchange = None
        connection.enter(Phase.ANSWER, time.monotonic(), self.slow_seconds)
        self._send(connection)

    def _send(self, connection: Connection) -> None:
        sent = connection.flush()
        self._charge(connection)
        if not sent:
            self._watch(connection, selectors.EVENT_WRITE)
        elif connection.exchange is not None:
            self._run(connection, connection.exchange, "")
        elif connection.closes:
            self._linger(connection)
        else:
            connection.enter(Phase.IDLE, time.monotonic(), self.cfg.keepalive)
            self._read(connection)

    def _refuse(self, refusal: RefusedRequest, connection: Connection) -> None:
        connection.closes = True
        connection.sendall(refusal.answer())
        connection.enter(Phase.ANSWER, time.monotonic(), self.slow_seconds)
        self._send(connection)

    def _linger(self, connection: Connection) -> None:
        connection.sock.shutdown(socket.SHUT_WR)
        connection.enter(Phase.LINGER, time.monotonic(), LINGER_SECONDS)
        self._watch(connection, selectors.EVENT_READ)

    # -- deadlines ---------------------------------------------------------------------------------------

    def _sweep(self, now: float) -> None:
        for connection in list(self.connections):
            if connection.phase is not Phase.RUNNING and connection.is_too_slow(now, self.slow_seconds):
                self._guarded(connection, self._give_up)
        if self.alive:
            self._accept_connections(True)
        if self.closed.total() and now >= self.next_log:
            self.next_log = now + _LOG_SECONDS
            log.warning(
                "api.slow_clients",
                message="Connections were closed: their clients were too slow, or there were too many",
                open=len(self.connections),
                **self.closed,
            )
            self.closed.clear()

    def _give_up(self, connection: Connection) -> None:
        if connection.phase in (Phase.HEADER, Phase.BODY) and not connection.reader.is_empty:
            self.closed["too_slow"] += 1
            self._refuse(too_slow("the request"), connection)
            return
        self.closed["too_slow"] += connection.phase is Phase.ANSWER
        self._close(connection)


def _most_connections(wanted: int) -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, min(wanted, files - _OTHER_FILES) if files != resource.RLIM_INFINITY else wanted)
