"""Connections that were opened with credentials are used again with the very same credentials only.

A receiver may take the caller of the first request on a connection for that of all that follow, as NTLM and
Negotiate do, and sessions bound to TLS: a connection that one schedule has opened must not carry another's
request. libcurl tells connections apart by scheme, host, port and TLS options; headers mean nothing to it.
HTTP/2, by which requests of several would share one, is off.
"""

from collections import OrderedDict

import pycurl

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
        self._pools.move_to_end(credentials)
        return pool

    def leave(self, pool: ConnectionPool) -> None:
        """The request has ended, and its handle no longer knows the pool."""
        pool.active -= 1

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
