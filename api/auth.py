"""Who sends a request, and whether they may: the client behind a proxy, the API key, the origin.

The headers `Forwarded` (RFC 7239) and `X-Forwarded-*` count where the peer is one of TRUSTED_PROXIES; routes
never see them. Without API keys the API answers to loopback only. Wrong keys are counted for each address, by
the sign-in and by the API, and limited; the right key opens whatever its address has tried before, because
all clients behind one proxy or one router have one address.

A page of another site may not make a browser change anything. Browsers say where a request comes from, in
Sec-Fetch-Site (Fetch Metadata) and Origin (RFC 6454), and a page can neither suppress nor forge these
headers. Programs send neither. API keys do not replace this check: a proxy that adds the key adds it to the
requests of every page.
"""

import hashlib
import ipaddress
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice, zip_longest
from threading import Lock
from typing import NamedTuple
from urllib.parse import urlsplit
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from flask import Flask, Response, current_app, g, request
from werkzeug.http import parse_list_header
from werkzeug.wrappers import Response as AnyResponse

from scheduler_app.api.acts import note_wrong_key
from scheduler_app.api.known_keys import known_keys
from scheduler_app.api.narrowing import require_narrowed
from scheduler_app.api.problems import HttpProblem
from scheduler_app.api.scopes import NO_SCOPE, SAFE_METHODS, require_scope_of_route, scope_of_route
from scheduler_app.api.services import EVERYBODY, NOBODY, admit, services
from scheduler_app.clock import monotonic
from scheduler_app.config import Settings, is_loopback
from scheduler_app.domain.api_key import Caller, key_id_of
from scheduler_app.domain.command_line import TOKEN_PREFIX
from scheduler_app.domain.ids import SEPARATOR, name_of, tenant_of
from scheduler_app.telemetry import get_logger
from scheduler_app.webserver.limits import PREFIX

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
            given = unmapped_address(address)
        except ValueError:
            return False
        return any(given in network for network in self._trusted)


def unmapped_address(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
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
        return str(unmapped_address(text))
    except ValueError:
        return ""


_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_MAX_ORIGIN_SHOWN = 100


def register_cross_site_check(app: Flask, settings: Settings) -> None:
    """Must follow authentication and precede everything that reads a body."""
    app.config["PUBLIC_URL"] = settings.public_url
    app.before_request(_check_origin)
    app.after_request(_forbid_sniffing)


def _forbid_sniffing(response: Response) -> Response:
    """Browsers must not guess another content type than the one declared."""
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    return response


def _check_origin() -> None:
    if request.method in SAFE_METHODS:
        return
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    # Set by the browser itself, so it also holds behind a proxy that changes Host. `none`: no page sent it.
    if site in ("same-origin", "none") or (site is None and origin is None):
        return
    # `same-site` is another port of this host or another host of this domain: still another origin.
    if origin is not None and site != "cross-site" and is_own_origin(origin):
        return
    raise HttpProblem(
        403,
        f"this request comes from a page of another origin{_origin_shown(origin)}, which may change nothing"
        " here: call the API from a program, or from a page under the API's own host and port; a proxy in"
        " front of the API must pass the Host header on",
    )


def is_own_origin(origin: str) -> bool:
    """Whether an Origin, or a Referer, is of PUBLIC_URL, or names the host and port of this request. Its
    scheme is not compared there: behind a proxy that terminates TLS the browser saw https, and this process
    may see http."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    if parts.scheme not in _DEFAULT_PORTS or not parts.netloc:
        return False
    if f"{parts.scheme}://{parts.netloc}".lower() == current_app.config["PUBLIC_URL"]:
        return True
    port = _DEFAULT_PORTS[parts.scheme]
    return parts.netloc.lower().removesuffix(port) == request.host.lower().removesuffix(port)


def _origin_shown(origin: str | None) -> str:
    return f" ({ascii(origin[:_MAX_ORIGIN_SHOWN])[1:-1]})" if origin else ""


log = get_logger(__name__)

#: Wrong keys of one address within `SECONDS` that are answered by a 401. Each process of the API counts for
#: itself.
MAX_WRONG_KEYS = 10
WRONG_KEYS_SECONDS = 60
#: Addresses whose wrong keys have lines in the audit, within that time; all are logged.
MAX_TOLD = 100
#: Addresses that are remembered; beyond that, the one whose first wrong key is the oldest is forgotten.
MAX_ADDRESSES = 10_000
#: A client that has one IPv6 address mostly has all of its network.
_IPV6_PREFIX = 64


class WrongKeys:
    """The addresses that have sent a wrong key, and how many since when."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._told = (float("-inf"), 0)

    def __len__(self) -> int:
        return len(self._counts)

    def may_be_told(self, now: float) -> bool:
        """Whether another address may have a line in the audit, of `MAX_TOLD` in this time."""
        with self._lock:
            began, count = self._told if now - self._told[0] < WRONG_KEYS_SECONDS else (now, 0)
            self._told = began, count + 1
        return count < MAX_TOLD

    def add(self, address: str, now: float) -> int:
        """Counts a wrong key; returns how many the address has sent since its first one within `SECONDS`.
        `now` is in seconds, of any clock that only goes forward."""
        client = _client_of(address)
        with self._lock:
            began, count = self._counts.get(client, (now, 0))
            if now - began >= WRONG_KEYS_SECONDS:
                del self._counts[client]
                began, count = now, 0
            self._counts[client] = (began, count + 1)
            if len(self._counts) > MAX_ADDRESSES:
                self._counts.popitem(last=False)
        return count + 1


def refuse_beyond_limit(event: str, what: str = "API key", why: str = "") -> None:
    """Counts and logs a wrong key, a wrong token, or a sign-in that was refused, of the request's client, as
    `event`. Raises Problem beyond the limit."""
    counted: WrongKeys = current_app.extensions["wrong_keys"]
    address = request.remote_addr or ""
    count = counted.add(address, monotonic())
    if count == 1 and counted.may_be_told(monotonic()):
        note_wrong_key(event, _client_of(address), why)
    if count <= MAX_WRONG_KEYS:
        more = {"why": why} if why else {}
        log.warning(event, message=f"A wrong {what} was refused", address=address, **more)
        return
    if count == MAX_WRONG_KEYS + 1:
        log.warning("api.keys_limited", message=f"An address sent many wrong {what}s", address=address)
    raise HttpProblem(
        429,
        f"more than {MAX_WRONG_KEYS} wrong {what}s from this address within a minute; wait, or use a right"
        " one",
        headers={"Retry-After": str(WRONG_KEYS_SECONDS)},
    )


def _client_of(address: str) -> str:
    try:
        given = unmapped_address(address)
    except ValueError:
        return address
    if given.version == 4:
        return str(given)
    return str(ipaddress.ip_network((int(given), _IPV6_PREFIX), strict=False))


#: A calendar program cannot send headers: of this path alone the route judges the token in the URL, which
#: opens nothing else.
FEED_PATH = f"{PREFIX}/calendar.ics"
#: What a receiver says of its event's work.
COMPLETION_PATH = re.compile(rf"{PREFIX}/events/[^/]+/(complete|fail)")
#: Pages have their own access, with a session in the place of a key: `api/pages/access.py`.
PAGES = "pages"
OPEN_PATHS = (
    *("/health", "/healthz", "/readyz", "/docs/", "/swagger-ui", "/swagger/", "/favicon.ico", "/echo"),
    # The token in its path is judged by the route, and opens one heartbeat.
    "/ping/",
)


def register_auth(app: Flask, settings: Settings, page_access: Callable[[], AnyResponse | None]) -> None:
    """Checks every request before its route, those to unknown paths included. `page_access` judges those of
    the pages, which have a session in the place of a key."""

    @app.before_request
    def check() -> AnyResponse | None:
        if request.blueprint == PAGES:
            return page_access()
        if not request.path.startswith(OPEN_PATHS):
            _check_key(settings.needs_key)
        return None


def _check_key(needs_key: bool) -> None:
    if not needs_key:
        _require_local_name()
    elif request.path == FEED_PATH and request.method in ("GET", "HEAD") and "token" in request.args:
        return
    elif scope_of_route() == NO_SCOPE:
        # Its body holds the key that it deletes, and the route checks that one.
        return
    if (token := _given_completion_token()) is not None:
        _admit_receiver(token)
        return
    given = _given_key()
    if not needs_key and (given is None or key_id_of(given) is None):
        admit(EVERYBODY)
        return
    keys, now = known_keys(), services().now()
    if given is not None and given.startswith(TOKEN_PREFIX):
        _admit_person(keys.person(given, now))
        return
    shown = None if given is None else keys.caller(given, now)
    if shown is None:
        if given is not None:
            refuse_beyond_limit("api.key_refused")
        raise HttpProblem(
            401,
            "an API key is needed: send Authorization: Bearer <key>, or X-API-Key: <key>",
            headers={"WWW-Authenticate": "Bearer"},
        )
    admit(shown.caller)
    if shown.stored is not None:
        keys.note_use(shown.stored, now)
    require_scope_of_route()
    if shown.caller.tags:
        require_narrowed()


def _admit_person(found: Caller | None) -> None:
    """Lets the command line of a person in."""
    if found is None:
        refuse_beyond_limit("api.key_refused")
        raise HttpProblem(
            401,
            "this sign-in is over: sign in again, by `scheduler login`",
            headers={"WWW-Authenticate": "Bearer"},
        )
    admit(found)
    require_scope_of_route()


def _admit_receiver(token: str) -> None:
    """A receiver has no key: the token of its callback, which the route judges, opens one event. It knows the
    event by its whole id, which says whose it is."""
    g.caller = replace(NOBODY, owner=hashlib.sha256(token.encode()).hexdigest())
    event_id = (request.view_args or {}).get("event_id", "")
    if SEPARATOR in name_of(event_id) and request.view_args is not None:
        request.view_args["event_id"] = name_of(event_id)
        g.tenant = tenant_of(name_of(event_id))


def _given_completion_token() -> str | None:
    if request.method != "POST" or not COMPLETION_PATH.fullmatch(request.path):
        return None
    return request.headers.get("X-Scheduler-Completion-Token")


def _given_key() -> str | None:
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer" and value:
        return value.strip()
    return request.headers.get("X-API-Key") or None


def is_local_name() -> bool:
    """Whether the request's Host is a name of loopback."""
    host = request.host.rsplit(":", 1)[0] if not request.host.endswith("]") else request.host
    return is_loopback(host)


def _require_local_name() -> None:
    """Refuses a request whose Host is not a name of loopback. Without keys this stops DNS rebinding: a page
    in a browser on this machine would reach the API under a name that its author's DNS points to loopback."""
    if not is_local_name():
        host = request.host.rpartition(":")[0] or request.host
        raise HttpProblem(403, f"without API_KEYS the API answers to localhost only, not to {host[:100]!r}")
