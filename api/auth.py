"""Authentication: an API key, or loopback only."""

import hashlib
import re

from flask import Flask, g, request

from scheduler_app.api.cross_site import SAFE_METHODS
from scheduler_app.api.problems import Problem
from scheduler_app.api.wrong_keys import refuse_beyond_limit
from scheduler_app.config import Settings, is_loopback
from scheduler_app.config.api_keys import Role, matching
from scheduler_app.webserver.api_paths import PREFIX

#: A calendar program cannot send headers: of this path alone the route judges the token in the URL, which
#: opens nothing else.
FEED_PATH = f"{PREFIX}/calendar.ics"
#: What a receiver says of its event's work.
COMPLETION_PATH = re.compile(rf"{PREFIX}/events/[^/]+/(complete|fail)")
#: Pages have their own access, with a session in the place of a key: `api/pages/access.py`.
PAGES = "pages"
#: Endpoints that change nothing, though their requests have a body.
READ_ONLY_POSTS = frozenset(("previews.preview_rule", "pages.preview_when", "pages.pick"))
OPEN_PATHS = ("/health", "/healthz", "/readyz", "/docs/", "/swagger-ui", "/swagger/", "/favicon.ico", "/echo")


def register(app: Flask, settings: Settings) -> None:
    """Checks every request before its route, those to unknown paths included."""
    keys = settings.keys

    @app.before_request
    def check() -> None:
        if request.path.startswith(OPEN_PATHS) or request.blueprint == PAGES:
            return
        if not keys:
            _require_local_name()
            g.owner = "open"
            return
        if request.path == FEED_PATH and request.method in ("GET", "HEAD") and "token" in request.args:
            return
        if (token := _completion_token()) is not None:
            g.owner = hashlib.sha256(token.encode()).hexdigest()
            return
        given = _given_key()
        key = None if given is None else matching(given, keys)
        if key is None:
            if given is not None:
                refuse_beyond_limit("api.key_refused")
            raise Problem(
                401,
                "an API key is needed: send Authorization: Bearer <key>, or X-API-Key: <key>",
                headers={"WWW-Authenticate": "Bearer"},
            )
        # Identifies the caller, for what belongs to one key; the key itself is stored nowhere.
        g.owner, g.key_name = key.digest, key.name
        if key.role is Role.READ and request.method not in SAFE_METHODS:
            refuse_reader()


def _completion_token() -> str | None:
    """Of a receiver, which has no key: the token of its callback, which the route judges, opens one event."""
    if request.method != "POST" or not COMPLETION_PATH.fullmatch(request.path):
        return None
    return request.headers.get("X-Scheduler-Completion-Token")


def _given_key() -> bytes | None:
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer" and value:
        return value.strip().encode()
    key = request.headers.get("X-API-Key")
    return key.encode() if key else None


def refuse_reader() -> None:
    """Refuses a request that may change something, of a key that may only read. A preview changes nothing."""
    if request.endpoint not in READ_ONLY_POSTS:
        raise Problem(403, "this API key may only read: use one with the role write")


def is_local_name() -> bool:
    """Whether the request's Host is a name of loopback."""
    host = request.host.rsplit(":", 1)[0] if not request.host.endswith("]") else request.host
    return is_loopback(host)


def _require_local_name() -> None:
    """Refuses a request whose Host is not a name of loopback. Without keys this stops DNS rebinding: a page
    in a browser on this machine would reach the API under a name that its author's DNS points to loopback."""
    if not is_local_name():
        host = request.host.rpartition(":")[0] or request.host
        raise Problem(403, f"without API_KEYS the API answers to localhost only, not to {host[:100]!r}")
