"""Protection against cross-site requests: a page of another site may not make a browser change anything.

Browsers say where a request comes from, in Sec-Fetch-Site (Fetch Metadata) and Origin (RFC 6454), and a page
can neither suppress nor forge these headers. Programs send neither. API keys do not replace this check: a
proxy that adds the key adds it to the requests of every page.
"""

from urllib.parse import urlsplit

from flask import Flask, current_app, request

from scheduler_app.api.problems import Problem
from scheduler_app.config import Settings

SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_SHOWN = 100


def register(app: Flask, settings: Settings) -> None:
    """Must follow authentication and precede everything that reads a body."""
    app.config["PUBLIC_URL"] = settings.public_url
    app.before_request(_check)


def _check() -> None:
    if request.method in SAFE_METHODS:
        return
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    # Set by the browser itself, so it also holds behind a proxy that changes Host. `none`: no page sent it.
    if site in ("same-origin", "none") or (site is None and origin is None):
        return
    # `same-site` is another port of this host or another host of this domain: still another origin.
    if origin is not None and site != "cross-site" and is_own(origin):
        return
    raise Problem(
        403,
        f"this request comes from a page of another origin{_named(origin)}, which may change nothing here:"
        " call the API from a program, or from a page under the API's own host and port; a proxy in front of"
        " the API must pass the Host header on",
    )


def is_own(origin: str) -> bool:
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


def _named(origin: str | None) -> str:
    return f" ({ascii(origin[:_SHOWN])[1:-1]})" if origin else ""
