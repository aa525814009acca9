"""`?dry_run=true`: a write answers what it would do, and changes nothing.

One mechanism for all: the request's services stand on a store that judges writes and does none, and neither
make secrets nor dispatch. Every route that writes declares the parameter (`Noun.route`); where it is given,
the services are dry on whatever route, so that one that was forgotten changes nothing either.
"""

from typing import Any

from flask import Flask, Response, g, json, request
from structlog.contextvars import bind_contextvars, unbind_contextvars

PARAMETER = "dry_run"
_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
#: They are about what a dry run has not made.
_HEADERS = ("Location", "ETag")


def register(app: Flask) -> None:
    app.before_request(_begin)
    app.after_request(_mark)
    app.teardown_request(_end)


def asked() -> bool:
    """Whether this request must change nothing. A value that is neither true nor false is refused later."""
    return bool(g.get(PARAMETER))


def ask() -> None:
    """For a request that says so in its body."""
    g.dry_run = True
    bind_contextvars(dry_run=True)


def _begin() -> None:
    if request.method not in _SAFE and request.args.get(PARAMETER, "false") != "false":
        ask()


def _mark(response: Response) -> Response:
    if not asked():
        return response
    for name in _HEADERS:
        response.headers.pop(name, None)
    if response.is_json and response.status_code < 400:
        view: dict[str, Any] = response.get_json()
        response.set_data(json.dumps(view | {PARAMETER: True}) + "\n")
    return response


def _end(_: BaseException | None) -> None:
    if asked():
        unbind_contextvars(PARAMETER)
