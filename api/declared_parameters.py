"""Refuses query parameters and bodies that a route does not declare.

An API that ignores a misspelt parameter, such as `dryrun` for `dry_run`, does what the caller did not want. A
route declares what it takes by its schemas, in `ApiBlueprint.arguments`.
"""

from collections.abc import Callable
from typing import Any, Literal

from flask import Flask, current_app, request
from marshmallow import Schema, ValidationError
from webargs.multidictproxy import MultiDictProxy

from scheduler_app.api.cross_site import SAFE_METHODS
from scheduler_app.api.json_body import read_json
from scheduler_app.api.problems import Problem, of_validation
from scheduler_app.domain.text import visible

#: A view function: flask-smorest's decorators have no types.
ViewFunction = Callable[..., Any]
Location = Literal["query", "json", "form"]
_DECLARED = "declared_arguments"
_ANYTHING = "accepts_anything"
FORM = "application/x-www-form-urlencoded"
_SHOWN = 64
#: Bound for a body that a route does not take: it is read only to say what is wrong with it.
_FEW_VALUES = 1_000


def declaring(view: ViewFunction, location: Location, schema: Schema) -> ViewFunction:
    """`view`, marked as taking what `schema` reads from `location` ("query", "json" or "form")."""
    setattr(view, _DECLARED, (*_declared(view), (location, schema)))
    return view


def accepting_anything(view: ViewFunction) -> ViewFunction:
    """`view`, marked as taking any query and any body: others write what calls it."""
    setattr(view, _ANYTHING, True)
    return view


def query_parameters(view: ViewFunction) -> dict[str, bool]:
    """The parameters that a view takes, by name; whether each may be given several times."""
    known: dict[str, bool] = {}
    for location, schema in _declared(view):
        if location == "query":
            several = MultiDictProxy({}, schema).multiple_keys
            names = [field.data_key or name for name, field in schema.load_fields.items()]
            known |= {name: name in several for name in names}
    return known


def register(app: Flask) -> None:
    """Must follow authentication and precede everything that reads a body."""
    app.before_request(_check)


def _check() -> None:
    if request.routing_exception is not None or request.endpoint is None:
        return
    view = current_app.view_functions[request.endpoint]
    if getattr(view, _ANYTHING, False):
        return
    if request.query_string:
        _check_query(query_parameters(view))
    if request.method not in SAFE_METHODS:
        _check_body(view)


def _check_query(known: dict[str, bool]) -> None:
    wrong: dict[str, list[str]] = {}
    for name, values in request.args.lists():
        if name not in known:
            takes = ", ".join(known) or "no parameters"
            wrong[visible(name[:_SHOWN])] = [f"Unknown parameter: this path takes {takes}"]
        elif len(values) > 1 and not known[name]:
            wrong[name] = ["is given more than once; give it once"]
    if wrong:
        raise of_validation(ValidationError(wrong))


def _check_body(view: ViewFunction) -> None:
    body = request.get_data(cache=True)
    if not body:
        return
    if any(location == "form" for location, _ in _declared(view)):
        if request.mimetype != FORM:
            raise Problem(415, f"send the form as a browser does: Content-Type: {FORM}")
        return  # its schema refuses unknown fields
    if not request.is_json:
        raise Problem(415, "send JSON: Content-Type: application/json")
    if any(location == "json" for location, _ in _declared(view)):
        return  # its schema refuses unknown fields
    given = read_json(body, _FEW_VALUES)
    if given and isinstance(given, dict):
        unknown = ["Unknown field: this path takes no body"]
        raise of_validation(ValidationError({visible(name[:_SHOWN]): unknown for name in given}))
    if given not in ({}, None):
        raise Problem(422, "this path takes no body: send none, or an empty JSON object")


def _declared(view: ViewFunction) -> tuple[tuple[Location, Schema], ...]:
    found: tuple[tuple[Location, Schema], ...] = getattr(view, _DECLARED, ())
    return found
