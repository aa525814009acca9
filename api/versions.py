"""Gives the API its two names: a request to `/api/…` is handled as one to `/api/v1/…`.

This happens before the application sees the request, so that whatever compares paths knows the name `/api/v1`
alone. Addresses in answers follow the name that the client used.
"""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from flask import request

from scheduler_app.webserver.api_paths import aliased, canonical

_IS_ALIASED = "scheduler.api_is_aliased"


class Versions:
    """The application, whose routes begin with `/api/v1`, under both names."""

    def __init__(self, app: WSGIApplication) -> None:
        self.app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        asked: str = environ.get("PATH_INFO", "")
        path = canonical(asked)
        if path == asked:
            return self.app(environ, start_response)

        def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            named = [(name, _aliased(value) if name == "Location" else value) for name, value in headers]
            return start_response(status, named, *more)

        # A copy: the server's log shows the path that was asked for.
        return self.app({**environ, "PATH_INFO": path, _IS_ALIASED: True}, start)


def as_asked(path: str) -> str:
    """A path of the API under the name that the client used."""
    return aliased(path) if _IS_ALIASED in request.environ else path


def _aliased(address: str) -> str:
    """A redirect's address is a whole URL, a new resource's is a path."""
    parts = urlsplit(address)
    return parts._replace(path=aliased(parts.path)).geturl()
