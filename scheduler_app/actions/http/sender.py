"""Sending many requests at once from one thread."""

import os

import certifi
import pycurl

from scheduler_app.actions.http import curl_request
from scheduler_app.actions.http.connection_pools import ConnectionPools
from scheduler_app.actions.http.event_loop import EventLoop
from scheduler_app.actions.http.guard import Guard
from scheduler_app.actions.http.request import Request
from scheduler_app.actions.http.response import Response, refused
from scheduler_app.actions.http.transfer import Transfer
from scheduler_app.domain.errors import InvalidField


class Sender:
    """Sends requests through one libcurl multi handle, and keeps connections open between them.

    It belongs to one thread, but for `wake`. Nothing moves outside of `wait`. `start` never queues: its
    caller decides how many requests are under way at once. A request that waits for its receiver costs
    nothing meanwhile: libcurl is told of each socket that is ready, and of nothing else.

    `max_connections` is how many idle connections are kept for reuse, and as many again of requests that have
    credentials, which share none with others (see `connection_pools`). A receiver may close an idle
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
            url = curl_request.checked_url(request)
            lines, credentials = curl_request.header_lines(request)
        except InvalidField as error:
            self._done.append(refused(request.key, f"refused: {error.field}: {error.message}"))
            return
        transfer = self._idle.pop() if self._idle else Transfer(self._guard, self._ca_bundle, self._on_socket)
        try:
            transfer.prepare(request, url, lines)
            if credentials:
                transfer.keep_apart(self._pools.enter(credentials))
            self._multi.add_handle(transfer.curl)
        except (pycurl.error, ValueError, TypeError, OverflowError) as error:
            self._discard(transfer)
            self._done.append(refused(request.key, f"refused: {error}"))
            return
        self._active[transfer.curl] = transfer

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
