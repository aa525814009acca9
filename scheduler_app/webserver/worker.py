"""gunicorn's worker class: an event loop reads requests and sends answers, threads compute the answers."""

import errno
import os
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from gunicorn.config import Config
from gunicorn.workers.base import Worker

from scheduler_app.config import load_settings
from scheduler_app.loading import without_garbage_collection
from scheduler_app.telemetry import get_logger
from scheduler_app.webserver.connection import Answering, Connection, Phase
from scheduler_app.webserver.exchange import Exchange
from scheduler_app.webserver.limits import LINGER_SECONDS, STOPPING_IDLE_SECONDS
from scheduler_app.webserver.network_errors import is_of_the_network
from scheduler_app.webserver.open_connections import OpenConnections
from scheduler_app.webserver.problems import RefusedRequest, overloaded, too_slow
from scheduler_app.webserver.request_threads import RequestThreads

log = get_logger(__name__)

_RECEIVE_BYTES = 64 * 1024
_SWEEP_SECONDS = 0.5
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class BufferingWorker(Worker):  # type: ignore[misc]
    """Serves HTTP/1.1 without TLS. It obeys gunicorn's settings `threads`, `keepalive`, `worker_connections`,
    `graceful_timeout`, `max_requests` and the limits of a header, and API_SLOW_CLIENT_SECONDS."""

    alive: bool

    @classmethod
    def check_config(cls, cfg: Config, log: Any) -> None:
        """Called by gunicorn once, before it forks."""
        if cfg.is_ssl:
            raise SystemExit("scheduler: the API speaks no TLS by itself; put a TLS proxy in front of it")

    def init_process(self) -> None:
        self.slow_seconds = load_settings().api_slow_client_seconds
        self.selector = selectors.DefaultSelector()
        self.connections = OpenConnections(self.cfg.worker_connections)
        self.done: deque[Connection] = deque()
        self.woken = False
        self.threads = RequestThreads(self.cfg.threads)
        self.next_sweep = 0.0
        self.accepting = False
        super().init_process()

    def load_wsgi(self) -> None:
        with without_garbage_collection():
            super().load_wsgi()

    def run(self) -> None:
        self.selector.register(self.PIPE[0], selectors.EVENT_READ, self._drain_pipe)
        for listener in self.sockets:
            listener.setblocking(False)
        self._accept_connections(True)
        while self.alive and self.ppid == os.getppid():
            self._turn()
        self._stop()

    def is_last_request(self) -> bool:
        """Whether a connection ends with the request that begins now; called by threads."""
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
        """Answers the requests that have begun, for graceful_timeout seconds at most."""
        self._accept_connections(False)
        began = time.monotonic()
        while self.connections and (now := time.monotonic()) < began + self.cfg.graceful_timeout:
            if now >= began + STOPPING_IDLE_SECONDS:
                for connection in self.connections.in_phases(Phase.IDLE, Phase.HEADER, Phase.LINGER):
                    self._close(connection)
            self._turn(0.1)
        self.threads.shutdown()
        self.selector.close()

    def _wake(self) -> None:
        """Called by a thread: makes the loop look at `done`."""
        if not self.woken:
            self.woken = True
            os.write(self.PIPE[1], b".")

    def _drain_pipe(self) -> None:
        # gunicorn writes to it, too, when a signal comes.
        os.read(self.PIPE[0], 4096)
        self.woken = False
        while self.done:
            connection = self.done.popleft()
            self._guarded(connection, self._advanced)

    def _guarded(self, connection: Connection, step: Callable[[Connection], None]) -> None:
        """Runs a step of one connection; whatever it raises ends only that connection."""
        if connection not in self.connections:
            return
        try:
            step(connection)
        except Exception as error:
            if not is_of_the_network(error):
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
        """Accepts one connection: other processes accept from the same socket, too."""
        try:
            sock, peer = listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                # Accepting pauses until the next sweep; otherwise the loop would spin.
                self.connections.count_closed("refused")
                self._make_room()
                self._accept_connections(False)
            return
        connection = Connection(self.cfg, sock, peer, listener.getsockname())
        self.connections.add(connection)
        connection.enter(Phase.HEADER, time.monotonic(), self.slow_seconds)
        if self.connections.is_overfull and not self._make_room(connection):
            self.connections.count_closed("refused")
            self._guarded(connection, partial(self._refuse, overloaded()))
            return
        self._watch(connection, selectors.EVENT_READ)

    def _make_room(self, newest: Connection | None = None) -> bool:
        """Closes the least active connection but `newest`; returns False where all are being answered."""
        connection = self.connections.least_active(newest)
        if connection is None:
            return False
        if connection.phase is not Phase.IDLE:
            self.connections.count_closed("evicted")
        self._close(connection)
        return True

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
        """Closes a connection in any phase but RUNNING, in which a thread owns the socket."""
        self._watch(connection, 0)
        self.connections.discard(connection)
        connection.sock.close()
        if connection.exchange is not None:
            self.threads.submit(connection.exchange.abandon)

    def _charge(self, connection: Connection) -> None:
        """Counts the memory it holds; when all hold too much together, the slowest others are closed."""
        self.connections.charge(connection)
        while (slowest := self.connections.slowest_holder(spared=connection)) is not None:
            self.connections.count_closed("evicted")
            self._close(slowest)

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

    def _run(self, connection: Connection, exchange: Answering, path: str) -> None:
        self._watch(connection, 0)
        connection.exchange = exchange
        connection.enter(Phase.RUNNING, time.monotonic(), 0.0)
        self.threads.submit(partial(self._advance, connection, exchange), path)

    def _advance(self, connection: Connection, exchange: Answering) -> None:
        """Runs in a thread."""
        try:
            exchange.advance()
        finally:
            self.done.append(connection)
            self._wake()

    def _advanced(self, connection: Connection) -> None:
        if connection.exchange is not None and connection.exchange.is_over:
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
        for connection in self.connections:
            if connection.phase is not Phase.RUNNING and connection.is_too_slow(now, self.slow_seconds):
                self._guarded(connection, self._give_up)
        if self.alive:
            self._accept_connections(True)
        self.connections.log_closed(now)

    def _give_up(self, connection: Connection) -> None:
        if connection.phase in (Phase.HEADER, Phase.BODY) and not connection.reader.is_empty:
            self.connections.count_closed("too_slow")
            self._refuse(too_slow("the request"), connection)
            return
        if connection.phase is Phase.ANSWER:
            self.connections.count_closed("too_slow")
        self._close(connection)
