"""What can be asked of a route of the API, the Python clients can ask, too: each parameter of a query and
each field of a body is sent by a method, or stands here with the reason why none does."""

import inspect
import re
from collections.abc import Callable, Generator, Iterator
from datetime import timedelta
from functools import cache
from inspect import Parameter, getattr_static
from typing import Any, Final

from scheduler_app.api.factory import specification
from scheduler_app.client.audit import AuditOperations
from scheduler_app.client.calendars import CalendarOperations
from scheduler_app.client.calls import Listing
from scheduler_app.client.destinations import DestinationOperations
from scheduler_app.client.ledger import LedgerOperations
from scheduler_app.client.messages import MessageOperations
from scheduler_app.client.methods import listing, operation
from scheduler_app.client.operations import SchedulerOperations
from scheduler_app.client.record import Record
from scheduler_app.config import Settings

Node = dict[str, Any]
Route = tuple[str, str]

OPERATIONS: Final = (
    SchedulerOperations,
    AuditOperations,
    CalendarOperations,
    DestinationOperations,
    LedgerOperations,
    MessageOperations,
)
#: Of every route.
NOT_SENT: Final = {
    "page": "listings follow cursors, which miss nothing while rows come and go",
    "dry_run": "methods that plan or count have it; what a single deed would do is asked by curl",
}
#: Of single routes, also of those that no method asks for.
LEFT_OUT: Final[dict[Route, dict[str, str]]] = {
    ("GET", "/api/v1/schedules"): {"outcomes": "for lists that people look at: `history` tells each run"},
    ("GET", "/api/v1/destinations"): {"health": "for lists that people look at: `get` tells how one is"},
    ("PUT", "/api/v1/schedules/{schedule_id}"): {"if-absent": "for curl: `schedule` with an id makes one"},
    ("PUT", "/api/v1/destinations/{name}"): {
        "if-absent": "for curl: `find` tells whether there is one",
        "promise": "for people who make the first one: `test` calls it",
    },
    ("GET", "/api/v1/calendar.ics"): dict.fromkeys(("tag", "token"), "for programs of calendars, by a URL"),
    ("GET", "/api/v1/figures"): dict.fromkeys(
        ("bucket", "destination", "from", "schedule_id", "tag", "to"), "for charts; Prometheus has the same"
    ),
    ("GET", "/api/v1/ledger"): {"format": "CSV is for spreadsheets, by curl"},
    ("GET", "/api/v1/audit/export"): dict.fromkeys(
        ("from", "resource", "to", "what", "who"), "for files, by curl: `audit.lines` tells the same"
    ),
    ("GET", "/api/v1/schedules/{schedule_id}/edits"): dict.fromkeys(
        ("cursor", "limit"), "`all_edits` tells the edits of one schedule, too"
    ),
}
#: Arguments of methods of which one alone may be given, or none of any type will do.
OTHER_ARGUMENTS: Final[dict[str, list[Node]]] = {
    "kill_switch_on": [{"everything": True, "note": "n"}, {"tag": "t"}, {"destination": "d"}],
    "kill_switch_off": [{"everything": True}, {"tag": "t"}, {"destination": "d"}],
    "reschedule": [{"at": timedelta(1)}, {"at": "2030-01-01T00:00:00Z"}],
}


@cache
def document() -> Node:
    return specification(Settings())


def routes() -> Iterator[tuple[Route, Node]]:
    """Those of the API, without the facade of another scheduler, which has clients of its own."""
    for path, node in document()["paths"].items():
        for method in node.keys() & {"get", "post", "put", "patch", "delete"}:
            if path.startswith("/api/"):
                yield (method.upper(), path), node[method]


def resolved(node: Node) -> Node:
    found: Node = document()
    if "$ref" not in node:
        return node
    for name in node["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return found


def query_of(route: Route, of: Node) -> set[str]:
    """The parameters of its query."""
    found = map(resolved, of.get("parameters", []) + document()["paths"][route[1]].get("parameters", []))
    return {each["name"] for each in found if each["in"] == "query"}


def body_of(of: Node) -> set[str]:
    """The fields of its body."""
    content = of.get("requestBody", {}).get("content", {}).get("application/json", {})
    return set(resolved(content.get("schema", {})).get("properties", ()))


def methods() -> Iterator[tuple[str, Callable[..., Any]]]:
    for kind in OPERATIONS:
        for name in dir(kind):
            described = getattr_static(kind, name)
            if isinstance(described, operation | listing):
                yield name, described._request


def argument(parameter: Parameter) -> Any:
    """A value of the parameter's type."""
    kind = str(parameter.annotation)
    one: Any = {} if "Mapping" in kind else "2030-01-01T00:00:00Z"
    if "Sequence" in kind:
        return [one]
    words = {"bool": True, "timedelta": timedelta(seconds=1), "int": 7, "float": 7}
    return next((value for word, value in words.items() if word in kind), one)


def requests_of(name: str, request: Callable[..., Any]) -> Iterator[Any]:
    """The method's requests, with each of its parameters given: of several in turn the first one, where that
    knows them all."""
    parameters = list(inspect.signature(request).parameters.values())[1:]
    named = [each for each in parameters if each.kind is not Parameter.VAR_KEYWORD]
    for given in OTHER_ARGUMENTS.get(name, [{}]):
        required = [each for each in named if each.default is Parameter.empty and each.name not in given]
        mine = required if given else named
        by_position = [argument(each) for each in mine if each.kind is not Parameter.KEYWORD_ONLY]
        by_name = {each.name: argument(each) for each in mine if each.kind is Parameter.KEYWORD_ONLY}
        made = request(None, *by_position, **by_name | given)
        if isinstance(made, Generator):
            yield next(made)
            if name == "verify":
                yield made.send(Record.of({"lines": 1, "next": "n"}))
        else:
            yield made.page("c") if isinstance(made, Listing) else made


def takes_any(request: Callable[..., Any]) -> bool:
    """Whether it passes on fields as the API has them."""
    parameters = inspect.signature(request).parameters.values()
    return any(each.kind is Parameter.VAR_KEYWORD or "Mapping" in str(each.annotation) for each in parameters)


def sent() -> dict[Route, set[str]]:
    """By route what methods send; `*` where a method passes on any field of a body."""
    known = sorted((route for route, _ in routes()), key=lambda route: route[1].count("{"))
    found: dict[Route, set[str]] = {}
    for name, request in methods():
        for call in requests_of(name, request):
            route = next(
                each
                for each in known
                if each[0] == call.method and re.fullmatch(re.sub(r"\{[^}]*\}", "[^/]+", each[1]), call.path)
            )
            said = found.setdefault(route, set())
            said |= {*call.query, *(call.body or ())}
            if takes_any(request):
                # What is passed on in a query stands in the method's text.
                said |= {"*"} if call.body is not None else set(re.findall(r"`(\w+)`", request.__doc__ or ""))
    return found


def test_methods_send_what_routes_take() -> None:
    missing: dict[Route, set[str]] = {}
    by_route = sent()
    for route, of in routes():
        said = by_route.get(route, set())
        taken = query_of(route, of) | (body_of(of) if said and "*" not in said else set())
        missing[route] = taken - said - NOT_SENT.keys()
    assert {route: names for route, names in missing.items() if names} == {
        route: set(names) for route, names in LEFT_OUT.items()
    }
