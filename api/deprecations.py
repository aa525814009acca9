"""What of the API is deprecated: an answer says so (RFC 9745, RFC 8594), and so does the specification.

`docs/api-stability.md` promises how long it stays.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

from flask import Flask, Response, request
from werkzeug.http import http_date

Node = dict[str, Any]

PAGE = "/docs/api-stability.html"


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


def register(app: Flask) -> None:
    app.after_request(_announce)


def _announce(response: Response) -> Response:
    if DEPRECATED and (found := list(_used())):
        response.headers["Deprecation"] = f"@{min(_seconds(each.since) for each in found)}"
        response.headers["Sunset"] = http_date(min(_seconds(each.sunset) for each in found))
        response.headers.add("Link", f'<{PAGE}>; rel="deprecation"; type="text/html"')
    return response


def _used() -> Iterator[Deprecated]:
    """What is deprecated of that which this request uses."""
    operation = (request.endpoint or "").rpartition(".")[-1]
    body = request.get_json(silent=True) if request.is_json else None
    names = {*request.args, *(body if isinstance(body, dict) else ())}
    for key in (operation, *(f"{operation}.{name}" for name in names)):
        if key in DEPRECATED:
            yield DEPRECATED[key]


def _seconds(day: date) -> int:
    return int(datetime.combine(day, time(), UTC).timestamp())


def mark(operation: Node, schemas: Node) -> None:
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
