"""`?dry_run=true`: a write answers what it would do, and changes nothing.

One mechanism serves all routes: the services of a dry run use a store that checks every write and performs
none, generate no secrets and dispatch nothing. Every route that writes declares the parameter
(`ApiBlueprint.route`). The services are dry on any route that is given it, so that a route which forgot to
declare the parameter changes nothing either.
"""

from flask import Flask, Response, g, json, request

from scheduler_app.api.json_types import View
from scheduler_app.telemetry import bind_log_fields, unbind_log_fields

PARAMETER = "dry_run"
_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
#: Headers that would describe what a dry run has not created.
_HEADERS = ("Location", "ETag")


def register(app: Flask) -> None:
    """Must follow everything that may refuse a request without reading its parameters."""
    app.before_request(_begin)
    app.after_request(_mark)
    app.teardown_request(_end)


def asked() -> bool:
    """Whether this request must change nothing. A value that is neither true nor false is refused later."""
    return bool(g.get(PARAMETER))


def ask() -> None:
    """Makes this request a dry run; for a request that asks for it in its body."""
    g.dry_run = True
    bind_log_fields(dry_run=True)


def _begin() -> None:
    if request.method not in _SAFE and request.args.get(PARAMETER, "false") != "false":
        ask()


def _mark(response: Response) -> Response:
    if not asked():
        return response
    for name in _HEADERS:
        response.headers.pop(name, None)
    if response.is_json and response.status_code < 400:
        view: View = response.get_json()
        response.set_data(json.dumps(view | {PARAMETER: True}) + "\n")
    return response


def _end(_: BaseException | None) -> None:
    if asked():
        unbind_log_fields(PARAMETER)
