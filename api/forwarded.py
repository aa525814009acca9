"""Finds out who the client is, and whether it came by https, where a proxy stands in front of the API.

The headers `Forwarded` (RFC 7239) and `X-Forwarded-*` count where the peer is one of TRUSTED_PROXIES. Routes
never see these headers: they see the client's address and scheme, as they look from outside.
"""

import ipaddress
from collections.abc import Iterable, Sequence
from itertools import islice, zip_longest
from typing import NamedTuple
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from werkzeug.http import parse_list_header

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
#: Proxies that a request may have passed, one behind the other.
MAX_PROXIES = 20


class _Hop(NamedTuple):
    """What one proxy says of the request that it got; a text is empty where it says nothing."""

    address: str
    scheme: str
    host: str


class Forwarded:
    """The application, as it looks from outside of the trusted proxies."""

    def __init__(self, app: WSGIApplication, trusted: Sequence[Network], *, takes_host: bool) -> None:
        """`takes_host`: whether a trusted proxy may say under which host it was called. Not without API keys:
        there the Host is what tells pages of other sites from our own, and a page can send such a header."""
        self.app = app
        self._trusted = trusted
        self._takes_host = takes_host

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        peer: str = environ.get("REMOTE_ADDR", "")
        found = self._outside(peer, islice(_hops(environ), MAX_PROXIES))
        for name in [name for name in environ if name.startswith(("HTTP_X_FORWARDED", "HTTP_FORWARDED"))]:
            del environ[name]
        environ["REMOTE_ADDR"] = found.address
        if found.address != peer:
            environ.pop("REMOTE_PORT", None)
        if found.scheme:
            environ["wsgi.url_scheme"] = found.scheme
        if found.host and self._takes_host:
            environ["HTTP_HOST"] = found.host
        return self.app(environ, start_response)

    def _outside(self, peer: str, hops: Iterable[_Hop]) -> _Hop:
        """What the outermost trusted proxy says; its own address where it names no other."""
        found = _Hop(peer, "", "")
        for hop in hops:
            if not self._trusts(found.address):
                break
            address = _address(hop.address)
            found = _Hop(address or found.address, hop.scheme or found.scheme, hop.host or found.host)
            if not address:
                break
        return found

    def _trusts(self, address: str) -> bool:
        if not address:
            # A Unix socket, which the operator has made for a proxy.
            return bool(self._trusted)
        try:
            given = unmapped(address)
        except ValueError:
            return False
        return any(given in network for network in self._trusted)


def unmapped(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The address, which is an IPv4 one where it is written as `::ffff:10.0.0.1`. Raises ValueError."""
    given = ipaddress.ip_address(address)
    return (given.version == 6 and given.ipv4_mapped) or given


def _hops(environ: WSGIEnvironment) -> Iterable[_Hop]:
    """What the proxies say, the one nearest to us first. Where both kinds of header are there, the `X-` ones
    count: most proxies set those, and pass a client's `Forwarded` on as it came."""
    named = [environ.get(f"HTTP_X_FORWARDED_{name}", "") for name in ("FOR", "PROTO", "HOST")]
    if any(named):
        columns = [[each.strip() for each in reversed(text.split(","))] if text else [] for text in named]
        for address, scheme, host in zip_longest(*columns, fillvalue=""):
            yield _Hop(address, _scheme(scheme), host)
        return
    for element in reversed(parse_list_header(environ.get("HTTP_FORWARDED", ""))):
        pairs = {
            name.strip().lower(): value.strip().strip('"')
            for name, _, value in (pair.partition("=") for pair in element.split(";"))
        }
        yield _Hop(pairs.get("for", ""), _scheme(pairs.get("proto", "")), pairs.get("host", ""))


def _scheme(text: str) -> str:
    return text.lower() if text.lower() in ("http", "https") else ""


def _address(text: str) -> str:
    """The address in `203.0.113.9`, `203.0.113.9:4711`, `2001:db8::1` or `[2001:db8::1]:4711`; empty for
    anything else, such as `unknown`."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return str(unmapped(text))
    except ValueError:
        return ""
