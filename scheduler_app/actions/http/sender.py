"""Executes HTTP actions, many at once, from one thread: it turns each request into what libcurl takes,
refuses what must never reach libcurl, waits for its sockets and timers, and tells it which of them are ready.
"""

import os
import select
import socket
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from urllib.parse import quote

import certifi
import pycurl

from scheduler_app.actions.http.guard import Guard
from scheduler_app.actions.http.request import (
    OUR_HEADERS,
    Request,
    check_name,
    check_url,
    check_value,
    request_of,
)
from scheduler_app.actions.http.response import Response, refused_response, verdict_of
from scheduler_app.actions.http.transfer import ConnectionPools, Credentials, Transfer
from scheduler_app.actions.kind import Verdict
from scheduler_app.clock import monotonic
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.event import Event
from scheduler_app.domain.http_action import METHODS, OPTIONS
from scheduler_app.domain.masking import is_credential
from scheduler_app.domain.schedule import Deliverable
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

_ASCII = "".join(map(chr, range(0x21, 0x7F)))


def header_lines(request: Request) -> tuple[list[str] | list[bytes], Credentials]:
    """The headers for CURLOPT_HTTPHEADER, where "Name;" is sent empty and "Name:" is not sent at all; and
    those of them that tell who is calling.

    Raises InvalidField for a header that must not be sent. All of it was checked when the schedule was
    made; it is checked again because what is stored may be older than today's rules, and because a line end
    that reaches libcurl is a header, or a whole request, injected by a stranger.
    """
    headers = request.headers
    typed, secret = _check_names(tuple([name for name, _ in headers]))
    credentials = (
        tuple([(headers[place][0].lower(), headers[place][1]) for place in secret]) if secret else ()
    )
    lines = [f"{name}: {value}" if value else f"{name};" for name, value in headers]
    if not typed:
        lines.append("Content-Type:")  # libcurl would claim that a body is a form
    lines.append("Expect:")  # libcurl would wait up to a second for "100 Continue" before a large body
    text = "".join(lines)
    if text.isascii() and text.isprintable():  # the common case in one look: no line end, nothing to encode
        return lines, credentials
    for name, value in headers:
        check_value(name, value)
    try:
        return [line.encode() for line in lines], credentials
    except UnicodeEncodeError:
        raise InvalidField("headers", "must not contain half a surrogate pair") from None


def checked_url(request: Request) -> str:
    """The URL with what is beyond ASCII percent-encoded as UTF-8 (RFC 3987 §3.1).

    Raises InvalidField for a URL or method that cannot be sent.
    """
    if request.method not in (*METHODS, OPTIONS):
        raise InvalidField("method", f"must be one of {', '.join(METHODS)}, not {request.method[:32]!r}")
    return _checked_url(request.url)


# Cached, because a schedule brings the same URL and the same names every time.


@lru_cache(maxsize=1024)
def _checked_url(url: str) -> str:
    check_url(url)
    return quote(url, safe=_ASCII, errors="replace")


@lru_cache(maxsize=1024)
def _check_names(names: tuple[str, ...]) -> tuple[bool, tuple[int, ...]]:
    """Whether Content-Type is among them, and the places of those that tell who is calling; raises
    InvalidField."""
    for name in names:
        check_name(name)
    lower = [name.lower() for name in names]
    places = [place for place, name in enumerate(lower) if is_credential(name) and name not in OUR_HEADERS]
    return "content-type" in lower, tuple(places)


#: libcurl's word for what it waits for on a socket, in the kernel's.
_WATCHED = {
    pycurl.POLL_IN: select.EPOLLIN,
    pycurl.POLL_OUT: select.EPOLLOUT,
    pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
}
# One in a while, for all transfers: see `_perform`.
warnings.filterwarnings("ignore", message="socket_all is deprecated", category=DeprecationWarning)
_READABLE, _WRITABLE = ~select.EPOLLOUT, ~(select.EPOLLIN | select.EPOLLPRI)
#: Sockets that one look at the kernel brings; the next look brings the others.
MAX_READY = 1_024
#: With this many sockets ready at once, and this share of all transfers, one call looks at all of them.
BUSY = 4
BUSY_SHARE = 4
#: In steps of this share of the idle ones libcurl is told how many connections are in use.
IN_USE_STEPS = 10
#: While its caller does not wait, up to so many transfers go on being looked at together when none has ended:
#: to watch a socket, and to leave it again, costs more than a few such looks.
MAX_UNWATCHED = 100


class EventLoop:
    """Drives a multi handle by `curl_multi_socket_action`: what it costs follows what is ready.

    `curl_multi_perform` looks at every transfer each time: with 200 requests that wait for an answer it took
    19 % of a core, with 2,000 it took 71 %; this takes 3 to 4 %.

    While most transfers are ready together, as in a burst to a receiver that answers at once, it is the other
    way round: each action lets go of the interpreter's lock and has to win it back from the worker's other
    threads. Then `curl_multi_perform` moves all transfers in one call, until it finds that none has ended;
    `curl_multi_socket_all` tells which sockets the rest waits for. (In one run of such
    bursts a worker took 7 to 29 % less CPU for a callback with it.)
    """

    def __init__(self, multi: pycurl.CurlMulti) -> None:
        self._multi = multi
        self._epoll = select.epoll()
        self._woken, self._wake = socket.socketpair()
        self._woken.setblocking(False)
        self._wake.setblocking(False)
        self._waker = self._woken.fileno()
        self._epoll.register(self._waker, select.EPOLLIN)
        self._timer: float | None = None
        self._is_busy = False
        """No socket is watched yet: `run` begins with a look at all transfers."""
        self._watched: dict[int, int] = {}
        multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)

    def wake(self) -> None:
        """Ends `run` at once. Any thread may call it."""
        with suppress(OSError):  # it is full: the loop has been told already; or closed: it has ended
            self._wake.send(b"w")

    def run(self, timeout: float, transfers: int) -> int:
        """Serves sockets and timers for at most `timeout` seconds, until fewer than `transfers` are running
        or `wake` is called. Returns how many are running."""
        deadline = monotonic() + timeout
        running = transfers
        if self._is_busy:
            running = self._perform(transfers, waits=timeout > 0)
            if self._is_busy:
                return running
        while running >= transfers:
            now = monotonic()
            if self._timer is not None and self._timer <= now:
                self._timer = None
                _, running = self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
                continue  # it may have set the timer again
            until = deadline if self._timer is None or self._timer > deadline else self._timer
            found = self._ready(until - now)
            woken = self._forget_wakes() if any(fd == self._waker for fd, _ in found) else False
            if len(found) >= BUSY and len(found) * BUSY_SHARE >= transfers:
                self._is_busy = True
                running = self._perform(transfers, waits=timeout > 0)
            else:
                running = self._act(found, running)
            if woken or monotonic() >= deadline:
                break
        return running

    def close(self) -> None:
        """To be called after the multi handle was closed."""
        self._epoll.close()
        self._woken.close()
        self._wake.close()

    def _act(self, found: list[tuple[int, int]], running: int) -> int:
        """Moves the transfers whose sockets are ready; returns how many are running."""
        for fd, events in found:
            if fd == self._waker:
                continue
            # An error or a hang-up is both: libcurl finds out by reading or by writing.
            ready = pycurl.CSELECT_IN if events & _READABLE else 0
            if events & _WRITABLE:
                ready |= pycurl.CSELECT_OUT
            _, running = self._multi.socket_action(fd, ready)
        return running

    def _perform(self, transfers: int, *, waits: bool) -> int:
        """Moves all transfers; returns how many are running. `waits`: whether sockets are waited for if none
        has ended."""
        running: int
        _, running = self._multi.perform()
        if running >= transfers and (waits or transfers > MAX_UNWATCHED):
            self._is_busy = False
            # It does not tell `_watch` of sockets, and then they would not be waited for. (pycurl calls
            # `socket_all` deprecated, as it looks at all transfers: here that is what it is called for.)
            _, running = self._multi.socket_all()
        return running

    def _ready(self, seconds: float) -> list[tuple[int, int]]:
        """The sockets that become ready within that many seconds."""
        milliseconds = int(seconds * 1000)
        if milliseconds > 0:
            # epoll counts whole milliseconds and rounds up, and a callback would be as late.
            return self._epoll.poll((milliseconds - 0.5) / 1000, MAX_READY)
        if seconds > 0:
            time.sleep(seconds)
        return self._epoll.poll(0, MAX_READY)

    def _forget_wakes(self) -> bool:
        with suppress(BlockingIOError):
            while self._woken.recv(4096):
                continue
        return True

    # What libcurl calls. An exception here would be printed and lost, so none may leave.

    def _watch(self, what: int, fd: int, multi: object, data: object) -> None:
        wanted, watched = _WATCHED.get(what, 0), self._watched.get(fd, 0)
        if wanted == watched:
            return
        if not wanted:  # POLL_REMOVE, POLL_NONE
            del self._watched[fd]
            self._epoll.unregister(fd)
            return
        self._watched[fd] = wanted
        if watched:
            self._epoll.modify(fd, wanted)
        else:
            self._epoll.register(fd, wanted)

    def _set_timer(self, milliseconds: int) -> None:
        if milliseconds < 0:
            self._timer = None
        else:
            # Mostly 0, "at once", after a request was added: that needs no look at the clock.
            self._timer = monotonic() + milliseconds / 1000 if milliseconds else 0.0


class Sender:
    """Sends requests through one libcurl multi handle, and keeps connections open between them.

    It belongs to one thread, but for `wake`. Nothing moves outside of `wait`. `start` never queues: its
    caller decides how many requests are under way at once. A request that waits for its receiver costs
    nothing meanwhile: libcurl is told of each socket that is ready, and of nothing else.

    `max_connections` is how many idle connections are kept for reuse beside those in use, and as many again
    of requests that have credentials, which share none with others (see `ConnectionPools`). While there are
    more, because many requests ended together, each that ends closes another. A receiver may close an idle
    connection at the very moment that the next request is written to it; libcurl then sends it again on a new
    connection, whatever its method, if not a byte of an answer had come (`Curl_retry_request`). So a POST
    can reach a receiver twice within one attempt, with the same `Idempotency-Key`, when it read a request on
    a reused connection and closed it without an answer. On a fresh connection nothing is sent twice.

    Names are resolved in threads of libcurl's, two for a name and at most 20 (CURLMOPT_RESOLVE_THREADS_MAX,
    which pycurl cannot set): while ten names of one sender get no answer from their DNS, other names wait.

    `ca_bundle` is a PEM file of trusted authorities instead of certifi's. Certificates are always verified.
    """

    def __init__(self, guard: Guard, *, ca_bundle: str | None = None, max_connections: int = 500) -> None:
        self._guard = guard
        self._ca_bundle = ca_bundle or certifi.where()
        self._max_idle = max_connections
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, max_connections)
        self._in_use = 0
        self._step = max(1, max_connections // IN_USE_STEPS)
        self._loop = EventLoop(self._multi)
        self._pools = ConnectionPools(max_connections)
        self._idle: list[Transfer] = []
        self._active: dict[pycurl.Curl, Transfer] = {}
        self._done: list[Response] = []

    @property
    def in_flight(self) -> int:
        """Requests that were started and whose answers `wait` has not returned yet."""
        return len(self._active) + len(self._done)

    def start(self, request: Request) -> None:
        """Begin a request. What is wrong with it does not raise: it becomes a permanent Response."""
        try:
            url = checked_url(request)
            lines, credentials = header_lines(request)
        except InvalidField as error:
            self._done.append(refused_response(request.key, f"refused: {error.field}: {error.message}"))
            return
        transfer = self._idle.pop() if self._idle else Transfer(self._guard, self._ca_bundle, self._on_socket)
        try:
            transfer.prepare(request, url, lines)
            if credentials:
                transfer.keep_apart(self._pools.enter(credentials))
            self._multi.add_handle(transfer.curl)
        except (pycurl.error, ValueError, TypeError, OverflowError) as error:
            self._discard(transfer)
            self._done.append(refused_response(request.key, f"refused: {error}"))
            return
        self._active[transfer.curl] = transfer
        self._keep_idle()

    def wait(self, timeout: float) -> list[Response]:
        """Drive the transfers for at most `timeout` seconds, until one ends or `wake` is called; the answers
        that there are then."""
        running = self._loop.run(0.0 if self._done else timeout, len(self._active))
        if running < len(self._active):
            self._collect()
        done, self._done = self._done, []
        return done

    def wake(self) -> None:
        """End the present `wait`, or the next one, at once. Any thread may call it."""
        self._loop.wake()

    def interrupt(self) -> None:
        """Drop every request in flight, without a response; their connections are closed."""
        for transfer in self._active.values():
            self._multi.remove_handle(transfer.curl)
            self._discard(transfer)
        self._active.clear()
        self._done.clear()

    def close(self) -> None:
        """Close every connection; requests in flight are dropped without a response. May be called twice.

        It waits for look-ups of names that are still under way, as libcurl joins their threads: up to the
        timeout of the system's resolver (10 s by default), however short the request's was.
        """
        self.interrupt()
        for transfer in self._idle:
            transfer.close()
        self._idle.clear()
        self._pools.close()
        self._multi.close()
        self._loop.close()

    def _collect(self) -> None:
        """Take the transfers that ended off the multi handle."""
        queued = 1
        while queued:
            queued, succeeded, failed = self._multi.info_read()
            for curl in succeeded:
                self._finish(curl, pycurl.E_OK, "")
            for curl, code, message in failed:
                self._finish(curl, code, message)
        self._keep_idle()

    def _keep_idle(self) -> None:
        """Leaves the idle connections their room, whatever is in use.

        libcurl's bound is of both together: beyond it each request that ended closed the longest idle
        connection, for which libcurl looks at all of them, and so the next request had to open another. While
        1,000 receivers were waited for, that was each request to all others, and three times its CPU.
        """
        in_use = len(self._active) - self._pools.in_use
        in_use -= in_use % self._step
        if in_use != self._in_use:
            self._in_use = in_use
            self._multi.setopt(pycurl.M_MAXCONNECTS, self._max_idle + in_use)

    def _finish(self, curl: pycurl.Curl, code: int, message: str) -> None:
        transfer = self._active.pop(curl)
        self._done.append(transfer.answer(code, message))
        self._multi.remove_handle(curl)
        if transfer.is_apart:
            self._leave_pool(transfer)
        if len(self._idle) < self._max_idle:
            self._idle.append(transfer)
        else:
            transfer.close()

    def _leave_pool(self, transfer: Transfer) -> None:
        pool = transfer.keep_apart_no_more()
        if pool is not None:
            self._pools.leave(pool)

    def _discard(self, transfer: Transfer) -> None:
        if transfer.is_apart:
            self._leave_pool(transfer)
        transfer.close()

    @staticmethod
    def _on_socket(fd: int, purpose: int) -> int:
        os.set_inheritable(fd, False)  # pycurl took it by dup(), whose copies survive an exec
        return 0  # CURL_SOCKOPT_OK


class HttpExecutor:
    """An `Executor` over one sender, whose requests make progress in `wait`."""

    def __init__(self, sender: Sender, *, concurrency: int) -> None:
        """`concurrency`: requests in flight to one origin."""
        self.concurrency = concurrency
        self._sender = sender
        self._in_flight: dict[str, tuple[Deliverable, datetime, str | None]] = {}

    def start(self, event: Event, deliverable: Deliverable, now: datetime) -> None:
        self._sender.start(request_of(event, deliverable, now))
        self._in_flight[event.id] = deliverable, now, event.completion_token

    def wait(self, timeout: float) -> Sequence[Verdict]:
        responses = self._sender.wait(timeout)
        return [self._verdict(response) for response in responses] if responses else ()

    def wake(self) -> None:
        self._sender.wake()

    def interrupt(self) -> None:
        self._in_flight.clear()
        self._sender.interrupt()

    def close(self) -> None:
        self._in_flight.clear()
        self._sender.close()

    def _verdict(self, response: Response) -> Verdict:
        deliverable, started_at, token = self._in_flight.pop(response.key)
        try:
            return verdict_of(response, deliverable, started_at, completion_token=token)
        except Exception as error:  # a bug that one response triggers must not end the other attempts
            log.exception("callback.broken", message="A response breaks our code", event_id=response.key)
            return Verdict.of_error(response.key, error)
