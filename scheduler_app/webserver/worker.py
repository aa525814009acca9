"""gunicorn's worker class: waitress reads requests and sends answers, with deadlines for slow clients."""

import json
import logging
import os
import resource
import select
import socket
import time
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from http import HTTPStatus
from threading import Lock
from types import SimpleNamespace
from typing import Any, Literal

from gunicorn.config import Config
from gunicorn.workers.base import Worker
from waitress import adjustments, channel, server, task, wasyncore

from scheduler_app.config import load_settings
from scheduler_app.loading import without_garbage_collection
from scheduler_app.telemetry import get_logger
from scheduler_app.webserver import limits
from scheduler_app.webserver.request_parser import Refusal, RequestParser

log = get_logger(__name__)

_SWEEP_SECONDS = 0.5
#: Without a connection nothing has a deadline: then it only looks whether gunicorn is still there, and tells
#: it that this process is.
_IDLE_SECONDS = 2.0
_LOG_SECONDS = 10.0
#: Files that a process needs beside connections: MongoDB, Redis, logs, metrics.
_OTHER_FILES = 128
_NEVER = 1 << 40

#: What a connection is doing: "answer" where the client has not read all that is there to be read, "linger"
#: where the last answer is sent and what the client still sends is dropped. In all phases but "running" it
#: waits for the client.
Phase = Literal["idle", "header", "body", "running", "answer", "linger"]


class _Adjustments(adjustments.Adjustments):  # type: ignore[misc]
    """waitress's settings. Where it would write to temporary files, what all clients hold has one bound."""

    inbuf_overflow = outbuf_overflow = _NEVER
    max_request_header_size = max_request_body_size = _NEVER  # `RequestParser` knows better
    connection_limit = channel_timeout = _NEVER  # `WaitressWorker` closes connections
    outbuf_high_watermark = limits.PENDING_ANSWER_BYTES
    recv_bytes = 16 * 1024
    clear_untrusted_proxy_headers = False  # `api.auth` judges what proxies say
    log_socket_errors = False
    ident = None


class _Threads(task.ThreadedTaskDispatcher):  # type: ignore[misc]
    """The threads that compute answers. Probes have their own, so that they never wait for requests."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._lock, self._count = Lock(), 0
        self.change_count(count)
        liveness, readiness = task.ThreadedTaskDispatcher(), task.ThreadedTaskDispatcher()
        liveness.set_thread_count(1)
        readiness.set_thread_count(2)  # it asks MongoDB
        self._probes = {"/health": liveness, "/healthz": liveness, "/readyz": readiness}

    def add_task(self, task: "Channel") -> None:
        request = task.requests[0]
        probe = self._probes.get("/health" if request.error else request.path)
        if probe is not None:
            probe.add_task(task)
        else:
            super().add_task(task)

    def stop(self) -> None:
        """Takes no more requests, and does not wait for what is being answered."""
        self.change_count(-self._count)
        for each in self._probes.values():
            each.set_thread_count(0)

    def change_count(self, count: int) -> None:
        with self._lock:
            self._count += count
            self.set_thread_count(
                max(0, self._count)
            )  # it is less where one that waited goes on after the stop


class _Answer(task.WSGITask):  # type: ignore[misc]
    """A request that the application answers."""

    def service(self) -> None:
        log = self.channel.server.worker.log
        try:
            super().service()
        finally:
            if self.wrote_header and log.access_log_enabled:
                environ = self.get_environment() | {"RAW_URI": self.request.request_uri}
                sent, headers = self.content_bytes_written, self.response_headers
                asked = [(name.replace("_", "-"), value) for name, value in self.request.headers.items()]
                took = timedelta(seconds=time.time() - self.start_time)
                log.access(
                    SimpleNamespace(status=self.status, headers=headers, sent=sent), asked, environ, took
                )

    def write(self, data: bytes) -> None:
        super().write(data)
        if self.chunked_response:  # there waitress does not count
            self.content_bytes_written += len(data)

    def build_response_header(self) -> bytes:
        if self.channel.server.worker.is_last_request():
            self.request.headers["CONNECTION"] = "close"
        header: bytes = super().build_response_header()
        return header

    def set_close_on_finish(self) -> None:
        # waitress would close after each answer that has no Content-Length: a 204, one in chunks.
        ends_by_itself = self.version == "1.1" and (self.content_length is None or not self.has_body)
        wants_end = self.request.command == "HEAD" or self.request.headers.get("CONNECTION") == "close"
        if wants_end or not ends_by_itself:
            super().set_close_on_finish()


class _Problem(task.ErrorTask):  # type: ignore[misc]
    """The answer to a refused request, as a problem (RFC 9457). It is the last one of its connection."""

    def execute(self) -> None:
        error, self.version = self.request.error, "1.1"
        title, detail = HTTPStatus(error.code).phrase, error.body
        if error.code == 400 and not isinstance(error, Refusal):
            detail = f"the request is not well-formed HTTP: {detail}"[:300]
        problem = {"type": "about:blank", "title": title, "status": error.code, "detail": detail}
        body = (json.dumps(problem) + "\n").encode()
        self.status, self.content_length = f"{error.code} {title}", len(body)
        self.response_headers = [("Content-Type", "application/problem+json")]
        if error.code == HTTPStatus.SERVICE_UNAVAILABLE:
            self.response_headers.append(("Retry-After", "2"))
        self.set_close_on_finish()
        self.write(body)


class Channel(channel.HTTPChannel):  # type: ignore[misc]
    """One client's connection."""

    task_class, error_task_class, parser_class = _Answer, _Problem, RequestParser
    close_when_flushed: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.since = self._began = time.monotonic()
        """When the client last made progress; when the phase began."""
        self._lingers = False
        self._served = self._moved = self._moved_before = 0
        self._state: object = None
        super().__init__(*args, **kwargs)
        self.server.worker.awake.add(self._fileno)
        self.server.worker.admit(self)

    @property
    def phase(self) -> Phase:
        if self._lingers:
            return "linger"
        if self.total_outbufs_len:
            return "answer"
        if self.requests:
            return "running"
        if self.request is None:
            return "idle"
        return "body" if self.request.headers_finished else "header"

    @property
    def held_bytes(self) -> int:
        body = self.request and self.request.body_rcv
        return int(self.total_outbufs_len) + (len(body) if body is not None else 0)

    def refuse(self, status: int, detail: str) -> None:
        """Answers by an error, which ends the connection."""
        refused, self.request = RequestParser(self.adj), None
        refused.error = Refusal(status, detail)
        with self.requests_lock:
            self.requests.append(refused)
            self.server.add_task(self)

    def observe(self, now: float) -> None:
        """Notes when a phase began; called from time to time."""
        if self._state != (self._served, self.phase):
            self._state, self._began = (self._served, self.phase), now
            self.since, self._moved_before = now, self._moved

    def is_too_slow(self, now: float, slow_seconds: float, keepalive: float) -> bool:
        """Whether its deadline is over. A body or an answer that kept the pace gets a new deadline."""
        self.observe(now)
        phase, seconds = self.phase, slow_seconds
        if phase == "linger":
            seconds = limits.LINGER_SECONDS
        elif phase == "idle" and self._served:
            seconds = keepalive
        if phase == "running" or now < self.since + seconds:
            return False
        kept_pace = self._moved - self._moved_before >= limits.MIN_BYTES_PER_SECOND * seconds
        in_time = phase == "answer" or (phase == "body" and now < self._began + limits.MAX_BODY_SECONDS)
        if kept_pace and in_time:
            self.since, self._moved_before = now, self._moved
        return not (kept_pace and in_time)

    # -- what waitress calls -----------------------------------------------------------------------------

    def del_channel(self, map: dict[int, Any] | None = None) -> None:
        # The next connection may get the same number. This one may be closed already, or not polled yet.
        with suppress(KeyError, TypeError):
            self.server.worker.poller.unregister(self._fileno)
        super().del_channel(map)

    def handle_read(self) -> None:
        try:
            data = self.socket.recv(self.adj.recv_bytes)
        except BlockingIOError:
            return
        except OSError:  # the client is gone, or the way to it
            self.handle_close()
            return
        self._moved += len(data)
        if data and not self._lingers:
            self.received(data)
            if self.held_bytes >= limits.SLOW_BYTES:
                self.server.worker.free_memory(spared=self)
        elif not data and self.phase == "body":
            self.refuse(400, "the body ended before it was complete")
        elif not data:
            self.handle_close()

    def handle_write(self) -> None:
        # waitress tries again and again as long as a thread writes, which slows that thread down.
        with self.outbuf_lock:
            self._flush_exception(self._flush_some)
            if self.total_outbufs_len < self.adj.outbuf_high_watermark:
                self.outbuf_lock.notify()
        if self.will_close:
            self.handle_close()
        elif self.connected and self.close_when_flushed and not self.total_outbufs_len:
            # Closed at once, it would be reset where the client still sends, who would not see the answer.
            self.close_when_flushed, self._lingers = False, True
            self.socket.shutdown(socket.SHUT_WR)

    def send(self, data: bytes, do_close: bool = True) -> int:
        sent: int = super().send(data, do_close)
        self._moved += sent
        return sent

    def service(self) -> None:
        self._served += 1
        super().service()

    def _flush_outbufs_below_high_watermark(self) -> None:
        if self.total_outbufs_len > self.adj.outbuf_high_watermark:
            # This thread waits for its client to read: another one takes requests meanwhile.
            self.server.task_dispatcher.change_count(1)
            try:
                super()._flush_outbufs_below_high_watermark()
            finally:
                self.server.task_dispatcher.change_count(-1)


class _Server(server.BaseWSGIServer):  # type: ignore[misc]
    """Accepts connections from one of gunicorn's sockets."""

    channel_class = Channel

    def __init__(self, worker: "WaitressWorker", listener: socket.socket) -> None:
        self.worker = worker
        family, address = (listener.family, listener.type, listener.proto), listener.getsockname()
        super().__init__(
            worker.wsgi, worker.map, True, listener, worker.threads, worker.adj, (*family, address), False
        )
        self.active_channels, self.server_name = worker.channels, self.effective_host

    def getsockname(self) -> tuple[str, int]:
        name = self.socket.getsockname()
        return name[:2] if isinstance(name, tuple) else ("localhost", 0)

    def fix_addr(self, addr: Any) -> Any:
        # A Unix socket's peer has no address.
        return addr if isinstance(addr, tuple) else ("", "")

    def accept(self) -> Any:
        try:
            return super().accept()
        except OSError:
            # No files are left, for one. Accepting pauses until the next sweep, or the loop would spin.
            self.accepting = False
            self.worker.make_room()
            return None


class WaitressWorker(Worker):  # type: ignore[misc]
    """Serves HTTP/1.1 without TLS. It obeys gunicorn's settings `threads`, `keepalive`, `worker_connections`,
    `backlog`, `graceful_timeout`, `max_requests`, the access log and the limits of a header, and
    API_SLOW_CLIENT_SECONDS."""

    alive: bool

    @classmethod
    def check_config(cls, cfg: Config, log: Any) -> None:
        """Called by gunicorn once, before it forks."""
        if cfg.is_ssl:
            raise SystemExit("scheduler: the API speaks no TLS by itself; put a TLS proxy in front of it")

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        # Clients that go away while they are answered, and requests that wait for a thread, are no news.
        logging.getLogger("waitress").setLevel(logging.WARNING)
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        self.slow_seconds = load_settings().api_slow_client_seconds
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = self.cfg.worker_connections
        self.most = wanted if files == resource.RLIM_INFINITY else max(1, min(wanted, files - _OTHER_FILES))
        self.adj = _Adjustments(backlog=self.cfg.backlog)
        self.adj.gunicorn = self.cfg
        self.map: dict[int, Any] = {}
        self.poller = select.poll()
        self.awake: set[int] = set()
        """The files of which it has to be asked whether they are to be read and written."""
        self.channels: dict[int, Channel] = {}
        self.closed: Counter[str] = Counter()
        self.next_sweep = self.next_log = 0.0

    def load_wsgi(self) -> None:
        with without_garbage_collection():
            super().load_wsgi()

    def run(self) -> None:
        self.begin()
        while self.alive and self.ppid == os.getppid():
            self.turn(self._pause())
        # It answers the requests that have begun, for graceful_timeout seconds at most.
        self._accept(False)
        began = now = time.monotonic()
        while self.channels and now < began + self.cfg.graceful_timeout:
            if now >= began + limits.STOPPING_IDLE_SECONDS:
                for each in self._in_phases("idle", "header", "linger"):
                    each.handle_close()
            self.turn(0.1)
            now = time.monotonic()
        self.threads.stop()

    def begin(self) -> None:
        """Starts the threads, and accepts connections."""
        self.threads = _Threads(self.cfg.threads)
        self.servers = [_Server(self, listener.sock) for listener in self.sockets]
        self.awake.update(self.map)
        for woken in self.PIPE[:1]:  # gunicorn writes into it at each signal
            self.poller.register(woken, select.POLLIN)

    def _pause(self) -> float:
        if self.channels or not all(each.accepting for each in self.servers):
            return _SWEEP_SECONDS
        # gunicorn gives a worker half of its own `timeout`; 0 is none.
        return min(_IDLE_SECONDS, self.timeout / 2 or _IDLE_SECONDS)

    def turn(self, seconds: float) -> None:
        """Reads and writes what can be read and written, after having waited for it so long at most."""
        self.notify()
        self.poll(seconds)
        now = time.monotonic()
        if now >= self.next_sweep:
            self.next_sweep = now + _SWEEP_SECONDS
            self.sweep(now)

    def poll(self, seconds: float) -> None:
        """Does what waitress's loop does, but asks no connection anew that waits for its client to send: many
        slow clients would cost each request time."""
        for number in list(self.awake):
            each = self.map.get(number)
            if each is not None:
                reads, writes = each.readable(), each.writable() and not each.accepting
                self.poller.register(number, select.POLLIN * bool(reads) | select.POLLOUT * bool(writes))
            if each is None or (reads and not writes):
                self.awake.remove(number)
        for number, events in self.poller.poll(seconds * 1000):
            if number in self.map:
                self.awake.add(number)
                wasyncore.readwrite(self.map[number], events)
            elif number in self.PIPE:
                os.read(number, 4096)

    def sweep(self, now: float) -> None:
        """Ends what is too slow; called every half a second."""
        self._accept(self.alive)
        self.awake.update(self.map)
        for each in list(self.channels.values()):
            if each.is_too_slow(now, self.slow_seconds, self.cfg.keepalive):
                self.closed["too_slow"] += each.phase in ("header", "body", "answer")
                if each.phase in ("header", "body"):
                    each.refuse(408, "the request did not come in time; send it again, faster")
                else:
                    each.handle_close()
        self.free_memory()
        if self.closed.total() and now >= self.next_log:
            self.next_log = now + _LOG_SECONDS
            log.warning(
                "api.slow_clients",
                message="Connections were closed: their clients were too slow, or there were too many",
                open=len(self.channels),
                **+self.closed,
            )
            self.closed.clear()

    def is_last_request(self) -> bool:
        """Whether a connection ends with the answer that begins now; called by threads."""
        self.nr += 1
        if self.nr >= self.max_requests and self.alive:
            self.log.info("Restarting the worker after max_requests")
            self.alive = False
        return not (self.alive and self.cfg.keepalive)

    def admit(self, newest: Channel) -> None:
        """Makes room for a new connection, or refuses it."""
        if len(self.channels) > self.most and not self.make_room(newest):
            self.closed["refused"] += 1
            newest.refuse(503, "the server is full; try again")

    def make_room(self, newest: Channel | None = None) -> bool:
        """Closes a connection; returns False where all are being answered. An honest client sends its request
        at once, so it is not the slowest."""
        return self._close_slowest(newest, "idle", "header", "body", "answer", "linger")

    def free_memory(self, spared: Channel | None = None) -> None:
        """Closes those that hold a good part of it while all connections together hold too much."""
        while sum(each.held_bytes for each in self.channels.values()) > limits.MAX_BUFFERED_BYTES:
            if not self._close_slowest(spared, "body", "answer", held_bytes=limits.SLOW_BYTES):
                return

    def _close_slowest(self, spared: Channel | None, *phases: Phase, held_bytes: int = 0) -> bool:
        """Closes the connection whose client has made no progress for the longest time, if there is one."""
        found = [each for each in self._in_phases(*phases) if each.held_bytes >= held_bytes]
        now = time.monotonic()
        for each in found:
            each.observe(now)
        slowest = min((each for each in found if each is not spared), key=lambda it: it.since, default=None)
        if slowest is not None:
            self.closed["evicted"] += slowest.phase != "idle"
            slowest.handle_close()
        return slowest is not None

    def _in_phases(self, *phases: Phase) -> list[Channel]:
        return [each for each in self.channels.values() if each.phase in phases]

    def _accept(self, wanted: bool) -> None:
        for each in self.servers:
            each.accepting = wanted
