"""The names of the API, and what of it is deprecated; `docs/api-stability.md` promises how long that stays.

A request to `/api/…` is handled as one to `/api/v1/…`. This happens before the application sees the request,
so that whatever compares paths knows the name `/api/v1` alone. Addresses in answers follow the name that the
client used. An answer says what is deprecated (RFC 9745, RFC 8594), and so does the specification.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any
from urllib.parse import urlsplit
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from flask import Flask, Response, request
from werkzeug.http import http_date

from scheduler_app.webserver.limits import aliased, canonical

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


def under_requested_name(path: str) -> str:
    """A path of the API under the name that the client used."""
    return aliased(path) if _IS_ALIASED in request.environ else path


def _aliased(address: str) -> str:
    """A redirect's address is a whole URL, a new resource's is a path."""
    parts = urlsplit(address)
    return parts._replace(path=aliased(parts.path)).geturl()


Node = dict[str, Any]

STABILITY_PAGE = "/docs/api-stability.html"


@dataclass(frozen=True)
class Deprecated:
    since: date
    sunset: date
    """From this day on it may be gone."""
    instead: str
    """What to use in its place, as a sentence."""


#: By the operation's id, `get_schedule`; or by that and a parameter or field that it takes,
#: `create_schedule.jitter_seconds`. A field of several operations has an entry for each.
DEPRECATED: dict[str, Deprecated] = {}


def register_deprecations(app: Flask) -> None:
    app.after_request(_announce)


def _announce(response: Response) -> Response:
    if DEPRECATED and (found := list(_used_deprecations())):
        response.headers["Deprecation"] = f"@{min(_seconds(each.since) for each in found)}"
        response.headers["Sunset"] = http_date(min(_seconds(each.sunset) for each in found))
        response.headers.add("Link", f'<{STABILITY_PAGE}>; rel="deprecation"; type="text/html"')
    return response


def _used_deprecations() -> Iterator[Deprecated]:
    """What is deprecated of that which this request uses."""
    operation = (request.endpoint or "").rpartition(".")[-1]
    body = request.get_json(silent=True) if request.is_json else None
    names = {*request.args, *(body if isinstance(body, dict) else ())}
    for key in (operation, *(f"{operation}.{name}" for name in names)):
        if key in DEPRECATED:
            yield DEPRECATED[key]


def _seconds(day: date) -> int:
    return int(datetime.combine(day, time(), UTC).timestamp())


def mark_deprecated(operation: Node, schemas: Node) -> None:
    """Marks in the specification what is deprecated of an operation."""
    name = operation["operationId"]
    content = operation.get("requestBody", {}).get("content", {})
    references = [each["schema"].get("$ref", "").rpartition("/")[-1] for each in content.values()]
    fields = {
        field: said for each in references if each for field, said in schemas[each]["properties"].items()
    }
    fields |= {each["name"]: each for each in operation["parameters"] if "name" in each}
    for key, deprecated in DEPRECATED.items():
        if key == name or key.rpartition(".")[0] == name:
            said = operation if key == name else fields[key.rpartition(".")[-1]]
            said["deprecated"], said["x-sunset"] = True, deprecated.sunset.isoformat()
            said["description"] = " ".join(filter(None, (said.get("description"), deprecated.instead)))
