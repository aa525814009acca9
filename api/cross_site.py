"""Requests that a page of another site makes a browser send: refused for methods that change something.

A browser says where such a request came from (Fetch Metadata, RFC 6454), and a page can neither prevent nor
forge that. Programs send neither header. Keys do not make this needless: a proxy that adds the key adds it
for every page.
"""

from urllib.parse import urlsplit

from flask import Flask, request

from api.problems import Problem

SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_SHOWN = 100


def register(app: Flask) -> None:
    """After authentication, before anything is read."""
    app.before_request(_check)


def _check() -> None:
    if request.method in SAFE_METHODS:
        return
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    # The browser's own word, which holds where a proxy has changed the Host, too. `none`: no page sent it.
    if site in ("same-origin", "none") or (site is None and origin is None):
        return
    # `same-site` is another port of this host, or another host of this domain: as foreign as any.
    if origin is not None and site != "cross-site" and _is_own(origin):
        return
    raise Problem(
        403,
        f"this request comes from a page of another origin{_named(origin)}, which may change nothing here:"
        " call the API from a program, or from a page under the API's own host and port; a proxy in front of"
        " the API must pass the Host header on",
    )


def _is_own(origin: str) -> bool:
    """Whether an Origin is where this request was sent. Its scheme is not compared: where a proxy ends TLS,
    the browser saw https and this process sees http."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    if parts.scheme not in _DEFAULT_PORTS or not parts.netloc:
        return False
    port = _DEFAULT_PORTS[parts.scheme]
    return parts.netloc.lower().removesuffix(port) == request.host.lower().removesuffix(port)


def _named(origin: str | None) -> str:
    return f" ({ascii(origin[:_SHOWN])[1:-1]})" if origin else ""
