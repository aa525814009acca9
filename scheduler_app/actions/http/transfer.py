"""One libcurl easy handle and what it gathers, the connections that it may use, and what libcurl reports, in
sentences for the person whose callback failed.

Connections that were opened with credentials are used again with the very same credentials only. A receiver
may take the caller of the first request on a connection for that of all that follow, as NTLM and Negotiate
do, and sessions bound to TLS: a connection that one schedule has opened must not carry another's request.
libcurl tells connections apart by scheme, host, port and TLS options; headers mean nothing to it. HTTP/2, by
which requests of several would share one, is off.
"""

import os
import socket
from collections import OrderedDict
from collections.abc import Callable

import pycurl

from scheduler_app.actions.http.guard import Guard, refused_by_settings
from scheduler_app.actions.http.request import USER_AGENT, Request
from scheduler_app.actions.http.response import SNIPPET_BYTES, Response, snippet_of
from scheduler_app.domain.masking import one_line
from scheduler_app.telemetry import get_logger

Credentials = tuple[tuple[str, str], ...]


class ConnectionPool:
    """The connections, and TLS sessions, of one set of credentials."""

    __slots__ = ("active", "peak", "share")

    def __init__(self) -> None:
        self.active = 0
        #: As many requests were under way at once: no more connections than that stay open.
        self.peak = 0
        self.share = pycurl.CurlShare()
        self.share.setopt(pycurl.SH_SHARE, pycurl.LOCK_DATA_CONNECT)
        self.share.setopt(pycurl.SH_SHARE, pycurl.LOCK_DATA_SSL_SESSION)


class ConnectionPools:
    """A pool for each set of credentials, made when it is asked for; those unused for longest go first.

    All of them together keep at most `max_connections` idle connections.
    """

    def __init__(self, max_connections: int) -> None:
        self._room = max_connections
        self.in_use = 0
        """Connections of requests under way."""
        self._pools: OrderedDict[Credentials, ConnectionPool] = OrderedDict()

    def __len__(self) -> int:
        return len(self._pools)

    def enter(self, credentials: Credentials) -> ConnectionPool | None:
        """The pool for a request that begins; None if no room is left: then its connection must be a fresh
        one, and is not kept."""
        pool = self._pools.get(credentials)
        if pool is None or pool.active == pool.peak:
            if not self._room and not self._evict():
                return None
            if pool is None:
                pool = self._pools[credentials] = ConnectionPool()
            self._room -= 1
            pool.peak += 1
        pool.active += 1
        self.in_use += 1
        self._pools.move_to_end(credentials)
        return pool

    def leave(self, pool: ConnectionPool) -> None:
        """The request has ended, and its handle no longer knows the pool."""
        pool.active -= 1
        self.in_use -= 1

    def close(self) -> None:
        """Closes every idle connection. No handle may know a pool any more."""
        for pool in self._pools.values():
            pool.share.close()
        self._pools.clear()

    def _evict(self) -> bool:
        """Makes room; False when every pool is in use."""
        for credentials, pool in self._pools.items():
            if not pool.active:
                del self._pools[credentials]
                pool.share.close()
                self._room += pool.peak
                return True
        return False


CONNECT_SECONDS = 5.0

_CLOSED = "the receiver closed the connection before the answer was complete"
_SENTENCES = {
    pycurl.E_GOT_NOTHING: "the receiver closed the connection without an answer",
    pycurl.E_PARTIAL_FILE: _CLOSED,
    pycurl.E_RECV_ERROR: _CLOSED,
    pycurl.E_SEND_ERROR: "the receiver closed the connection while the request was sent",
    100: "the answer's headers are too large",  # CURLE_TOO_LARGE, which pycurl does not name
}
# libcurl's own words are good where they tell what was wrong with the other side.
_NOT_HTTP = "the answer is not HTTP/1.1"
_PREFIXES = {
    pycurl.E_COULDNT_RESOLVE_HOST: "the name was not resolved",
    pycurl.E_COULDNT_CONNECT: "could not connect",
    pycurl.E_SSL_CONNECT_ERROR: "TLS failed",
    pycurl.E_PEER_FAILED_VERIFICATION: "the certificate is not accepted",
    # Not our URL's scheme, which was checked before: an answer without a status line, taken for HTTP/0.9.
    pycurl.E_UNSUPPORTED_PROTOCOL: _NOT_HTTP,
    pycurl.E_FTP_WEIRD_SERVER_REPLY: _NOT_HTTP,
}


def failure_sentence(code: int, message: str, os_errno: int) -> str:
    """The sentence for a CURLcode other than a timeout; `message` is libcurl's, `os_errno` may be 0."""
    if code == pycurl.E_COULDNT_CONNECT and os_errno:
        message = os.strerror(os_errno).lower()
    elif code == pycurl.E_RECV_ERROR and "response headers" in message:
        return _SENTENCES[100]
    elif code in _SENTENCES:
        return _SENTENCES[code]
    message = message or f"curl's error {code}"
    prefix = _PREFIXES.get(code)
    return f"{prefix}: {message}" if prefix else message


log = get_logger(__name__)

MAX_BODY = 64 * 1024
"""Bytes read of an answer's body; the answer stands without the rest."""

_EMPTY = (b"\r\n", b"\n")
_REDIRECTS = frozenset((301, 302, 303, 307, 308))


class Transfer:
    """An easy handle, used for one request after another.

    The options that protect us are set once and no request touches them: `reset()` and setting all of them
    again costs 5 to 10 µs a request. What a request does touch, `prepare` sets where it differs from the
    last one's.
    """

    __slots__ = (
        "_body",
        "_body_size",
        "_form",
        "_guard",
        "_head",
        "_opened",
        "_pool",
        "_port_refusal",
        "_refusals",
        "_request",
        "_socket_error",
        "_timeout_seconds",
        "_url",
        "curl",
        "is_apart",
    )

    def __init__(self, guard: Guard, ca_bundle: str, on_socket: Callable[[int, int], int]) -> None:
        """`on_socket` is told each new descriptor and its purpose (CURLOPT_SOCKOPTFUNCTION)."""
        self._guard = guard
        self._timeout_seconds: float | None = None
        self._form: tuple[str, bytes | None] | None = None
        self._url = ""
        self._pool: ConnectionPool | None = None
        #: Whether its connection is shared with no other credentials.
        self.is_apart = False
        self.curl = curl = pycurl.Curl()
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        curl.setopt(pycurl.SOCKOPTFUNCTION, on_socket)
        curl.setopt(pycurl.WRITEFUNCTION, self._on_body)
        # No limit of ours: libcurl gives up on more than 300 KiB or 5,000 lines of headers, counting interim
        # answers and trailers too (MAX_HTTP_RESP_HEADER_SIZE, _COUNT).
        self._head: list[bytes] = []
        curl.setopt(pycurl.HEADERFUNCTION, self._head.append)
        # A redirect, a proxy or a foreign scheme would go where the URL does not say. Of PROXY and NOPROXY
        # either is enough against the variables of the environment.
        curl.setopt(pycurl.FOLLOWLOCATION, 0)
        curl.setopt(pycurl.UNRESTRICTED_AUTH, 0)
        curl.setopt(pycurl.PROXY, "")
        curl.setopt(pycurl.NOPROXY, "*")
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        curl.setopt(pycurl.NETRC, pycurl.NETRC_IGNORED)
        curl.setopt(pycurl.CAINFO, ca_bundle)
        curl.setopt(pycurl.SSL_VERIFYPEER, 1)
        curl.setopt(pycurl.SSL_VERIFYHOST, 2)
        # pycurl's own is a list of the libraries in use, with their versions.
        curl.setopt(pycurl.USERAGENT, USER_AGENT)
        # Without it the resolver's timeout is a SIGALRM, which only a main thread survives.
        curl.setopt(pycurl.NOSIGNAL, 1)
        # One request at a time on a connection: with HTTP/2 a slow or failing connection would
        # take every other callback to that host with it.
        curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)

    def prepare(self, request: Request, url: str, lines: list[str] | list[bytes]) -> None:
        """Set what differs between requests. Raises pycurl.error for what libcurl will not have."""
        self._request = request
        self._body = b""
        self._body_size = 0
        self._head.clear()
        self._opened = 0
        self._refusals: list[str] = []
        self._port_refusal: str | None = None
        self._socket_error: OSError | None = None
        setopt = self.curl.setopt
        # Mostly it is what the last request had.
        if (request.method, request.body) != self._form:
            # First, because it also undoes the last request's body and NOBODY (CURLOPT_HTTPGET).
            setopt(pycurl.HTTPGET, 1)
            if request.method == "HEAD":
                setopt(pycurl.NOBODY, 1)
            elif request.body is not None:
                setopt(pycurl.POSTFIELDS, request.body)
            elif request.method in ("POST", "PUT", "PATCH"):
                setopt(pycurl.POSTFIELDS, b"")  # Content-Length: 0 (RFC 9110 §8.6)
            setopt(pycurl.CUSTOMREQUEST, request.method)
            self._form = request.method, request.body
        if url != self._url:
            setopt(pycurl.URL, url)
            self._url = url
        setopt(pycurl.HTTPHEADER, lines)
        if request.timeout_seconds != self._timeout_seconds:
            timeout_ms = max(1, round(request.timeout_seconds * 1000))
            setopt(pycurl.TIMEOUT_MS, timeout_ms)
            setopt(pycurl.CONNECTTIMEOUT_MS, min(timeout_ms, round(CONNECT_SECONDS * 1000)))
            self._timeout_seconds = request.timeout_seconds

    def keep_apart(self, pool: ConnectionPool | None) -> None:
        """Uses connections of this pool alone; without one, a fresh connection that is not kept."""
        self.is_apart = True
        self._pool = pool
        if pool is not None:
            self.curl.setopt(pycurl.SHARE, pool.share)
        else:
            self.curl.setopt(pycurl.FRESH_CONNECT, 1)
            self.curl.setopt(pycurl.FORBID_REUSE, 1)

    def keep_apart_no_more(self) -> ConnectionPool | None:
        """Takes `keep_apart` back; returns the pool."""
        pool, self._pool, self.is_apart = self._pool, None, False
        if pool is not None:
            self.curl.unsetopt(pycurl.SHARE)
        else:
            self.curl.setopt(pycurl.FRESH_CONNECT, 0)
            self.curl.setopt(pycurl.FORBID_REUSE, 0)
        return pool

    def close(self) -> None:
        self.curl.close()

    # What libcurl calls. An exception here would be printed and lost, so none may leave.

    def _open_socket(self, purpose: int, address: tuple[int, int, int, tuple[str, int]]) -> object:
        family, kind, protocol, endpoint = address
        self._port_refusal = self._guard.port_refusal(endpoint[1])
        reason = self._port_refusal or self._guard.refusal(endpoint[0])
        if reason is not None:
            self._refusals.append(reason)
            return pycurl.SOCKET_BAD
        try:
            opened = socket.socket(family, kind, protocol)
        except OSError as error:
            self._socket_error = error
            return pycurl.SOCKET_BAD
        self._opened += 1
        return _Lent(opened.detach())

    def _on_body(self, chunk: bytes) -> int | None:
        if self._body_size < SNIPPET_BYTES:
            # One byte more than is shown tells that there was more.
            self._body += chunk[: SNIPPET_BYTES + 1 - self._body_size]
        self._body_size += len(chunk)
        return 0 if self._body_size > MAX_BODY else None

    # How it ended.

    def answer(self, code: int, message: str) -> Response:
        """The Response, after libcurl ended the transfer with the CURLcode `code`."""
        request = self._request
        getinfo = self.curl.getinfo
        duration_ms = round(getinfo(pycurl.TOTAL_TIME) * 1000, 3)
        snippet = snippet_of(self._body) if self._body else ""
        cut_by_us = code == pycurl.E_WRITE_ERROR and self._body_size > MAX_BODY
        if code == pycurl.E_OK and not self._head_is_whole():
            code = pycurl.E_PARTIAL_FILE  # libcurl takes a connection closed amid the headers for their end
        if code != pycurl.E_OK and not cut_by_us:
            if self._refusals:
                log.warning(
                    "callback.refused",
                    message="This worker's settings refuse addresses of a receiver",
                    event_id=request.key,
                    refused=list(dict.fromkeys(self._refusals)),
                )
            if self._refusals and not self._opened:
                error = refused_by_settings(self._port_refusal)
                return Response(request.key, None, error, False, None, None, snippet, duration_ms, ours=True)
            error, permanent = self._failure(code, message)
            return Response(request.key, None, one_line(error), permanent, None, None, snippet, duration_ms)
        status = getinfo(pycurl.RESPONSE_CODE)
        retry_after: str | None = None
        location: str | None = None
        failed: str | None = None
        if status >= 300:
            retry_after = self._header(b"retry-after:")
            location = self._header(b"location:")
            if status in _REDIRECTS:
                failed = f"redirect to {location} not followed" if location else "redirect without a location"
        return Response(request.key, status, failed, False, retry_after, location, snippet, duration_ms)

    def _failure(self, code: int, message: str) -> tuple[str, bool]:
        if self._socket_error is not None and not self._opened:
            return f"no socket could be opened: {self._socket_error.strerror}", False
        if code == pycurl.E_OPERATION_TIMEDOUT:
            seconds = self._request.timeout_seconds
            if self.curl.getinfo(pycurl.REQUEST_SIZE) > 0:  # it was sent: TLS is done, too
                sentence = f"timed out after {seconds:g} s"
            else:
                sentence = f"timed out: no connection within {min(seconds, CONNECT_SECONDS):g} s"
        else:
            sentence = failure_sentence(code, message, self.curl.getinfo(pycurl.OS_ERRNO))
        if self._refusals:
            sentence = f"{sentence} (and refused: a private address)"
        return sentence, code == pycurl.E_URL_MALFORMAT

    def _head_is_whole(self) -> bool:
        """Whether an empty line ended the last head (a trailer may follow it)."""
        for line in reversed(self._head):
            if line in _EMPTY:
                return True
            if line.startswith(b"HTTP/"):
                return False
        return False

    def _header(self, name: bytes) -> str | None:
        for line in reversed(self._head):
            if line[: len(name)].lower() == name:
                return one_line(line[len(name) :].decode("utf-8", "replace").strip())
            if line.startswith(b"HTTP/"):
                break  # above it is an interim answer (103 Early Hints), whose headers are not the answer's
        return None


class _Lent:
    """A socket's descriptor, lent until libcurl has its own: pycurl calls dup() and drops this object.

    A `socket.socket` would warn of being dropped unclosed, and keeping it would keep the connection open.
    """

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        return self._fd

    def __del__(self) -> None:
        os.close(self._fd)
