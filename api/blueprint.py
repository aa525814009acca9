"""How a route reads a request: the blueprint of every group of routes, strict JSON, declared parameters.

A JSON body is read strictly (RFC 8259), within bounds however deep or long it is. It must be UTF-8, without
NaN and unpaired surrogates. A name that stands twice in an object is refused: parsers disagree about which of
the two counts.

Query parameters and bodies that a route does not declare are refused. An API that ignores a misspelt
parameter, such as `dryrun` for `dry_run`, does what the caller did not want. A route declares what it takes
by its schemas, in `ApiBlueprint.arguments`.
"""

import json
import math
import sys
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Callable
from functools import wraps
from json import JSONDecodeError
from typing import Any, Literal

from flask import Flask, Request, current_app, g, request
from flask_smorest import Blueprint
from marshmallow import Schema, ValidationError, missing
from webargs.flaskparser import FlaskParser
from webargs.multidictproxy import MultiDictProxy

from scheduler_app.api.json_types import Loaded
from scheduler_app.api.problems import MAX_POINTER, HttpProblem, problem_of
from scheduler_app.api.scopes import SAFE_METHODS, SCOPE
from scheduler_app.api.wire.input_schema import WriteQuery
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.masking import visible

_SLIPS = "JSON has names in double quotes, no comma before a closing bracket, and no comments"


class _NoConstant(ValueError):
    """NaN or an infinity, which Python's parser would accept."""


class _Repeated(Exception):
    """A name stands twice in an object."""


class _Members(list[tuple[str, object]]):
    """An object's members as they were written."""


def read_json(raw: bytes, max_values: int) -> object:
    """The value of `raw`. `max_values` bounds the number of values at all depths, because each takes far more
    memory than its bytes. Raises Problem (400, 413)."""
    if _values(raw, max_values) > max_values:
        raise HttpProblem(413, f"the body holds more than {max_values:,} values; send less at once")
    if raw.startswith(BOM_UTF8):
        raise HttpProblem(400, "the body begins with a byte order mark; send it without")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise HttpProblem(
            400, f"the body is not in UTF-8, from its byte {error.start} on; send it in UTF-8"
        ) from None
    try:
        value = json.loads(
            text, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_once_each
        )
        if b"\\u" in raw:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise HttpProblem(400, "the body is nested too deeply") from None
    except UnicodeEncodeError:
        raise HttpProblem(400, "the body holds half of a surrogate pair, which is no character") from None
    except _Repeated:
        pointer = _first_repeated(text)[:MAX_POINTER]
        detail = "is given more than once in its object; give it once"
        raise HttpProblem(
            400, f"{pointer.lstrip('/')}: {detail}", [{"pointer": pointer, "detail": detail}]
        ) from None
    except JSONDecodeError as error:
        hint = f"; {_SLIPS}" if "property name" in error.msg else ""
        raise HttpProblem(400, f"the body is not well-formed JSON: {error}{hint}"[:300]) from None
    except _NoConstant as error:
        raise HttpProblem(400, f"the body is not well-formed JSON: {error}") from None
    except ValueError:
        # Python's own bound: the time to read a number grows with the square of its length.
        most = sys.get_int_max_str_digits()
        raise HttpProblem(
            400, f"the body holds a number of more than {most:,} digits; send it as text"
        ) from None
    return value


def _once_each(members: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(members)
    if len(found) < len(members):
        raise _Repeated
    return found


def _first_repeated(text: str) -> str:
    """The JSON pointer of the first repeated name, in a text that has one."""
    open_: deque[tuple[str, object]] = deque([("", json.loads(text, object_pairs_hook=_Members))])
    while open_:
        path, value = open_.popleft()
        if isinstance(value, _Members):
            names: set[str] = set()
            for name, member in value:
                if name in names:
                    return visible(f"{path}/{name}")
                names.add(name)
                open_.append((f"{path}/{name}"[:MAX_POINTER], member))
        elif isinstance(value, list):
            open_.extend((f"{path}/{index}"[:MAX_POINTER], each) for index, each in enumerate(value))
    raise AssertionError("unreachable")


def _values(raw: bytes, enough: int) -> int:
    """An upper bound of the number of values in the JSON, found without parsing it. Strings are excluded only
    where the count might exceed `enough`."""
    count = _separators(raw)
    if count <= enough:
        return count
    plain = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    # A member of an object has at most two strings, each with two quotes.
    by_quotes = plain.count(b'"') // 4
    return by_quotes if by_quotes > enough else _separators(b"".join(plain.split(b'"')[::2]))


def _separators(raw: bytes) -> int:
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{") + 1


def _refuse_constant(name: str) -> None:
    raise _NoConstant(f"{name} is no JSON value")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise HttpProblem(400, "the body holds a number beyond what a double can hold")
    return number


#: A view function: flask-smorest's decorators have no types.
ViewFunction = Callable[..., Any]
Location = Literal["query", "json", "form"]
_DECLARED = "declared_arguments"
_ANYTHING = "accepts_anything"
FORM = "application/x-www-form-urlencoded"
_SHOWN = 64
#: Bound for a body that a route does not take: it is read only to say what is wrong with it.
_FEW_VALUES = 1_000


def declare_parameters(view: ViewFunction, location: Location, schema: Schema) -> ViewFunction:
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


def register_declared_parameters(app: Flask) -> None:
    """Must follow authentication and precede everything that reads a body."""
    app.before_request(_check_declared)


def _check_declared() -> None:
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
        raise problem_of(ValidationError(wrong))


def _check_body(view: ViewFunction) -> None:
    body = request.get_data(cache=True)
    if not body:
        return
    if any(location == "form" for location, _ in _declared(view)):
        if request.mimetype != FORM:
            raise HttpProblem(415, f"send the form as a browser does: Content-Type: {FORM}")
        return  # its schema refuses unknown fields
    if not request.is_json:
        raise HttpProblem(415, "send JSON: Content-Type: application/json")
    if any(location == "json" for location, _ in _declared(view)):
        return  # its schema refuses unknown fields
    given = read_json(body, _FEW_VALUES)
    if given and isinstance(given, dict):
        unknown = ["Unknown field: this path takes no body"]
        raise problem_of(ValidationError({visible(name[:_SHOWN]): unknown for name in given}))
    if given not in ({}, None):
        raise HttpProblem(422, "this path takes no body: send none, or an empty JSON object")


def _declared(view: ViewFunction) -> tuple[tuple[Location, Schema], ...]:
    found: tuple[tuple[Location, Schema], ...] = getattr(view, _DECLARED, ())
    return found


class Parser(FlaskParser):
    """Reads a body by `read_json`. `_check_declared` has refused unknown query parameters before."""

    def load_json(self, req: Request, schema: Any) -> Any:
        raw = req.get_data(cache=True)
        if not raw:
            if schema.body_optional:
                return missing
            raise HttpProblem(400, "the body is missing: send a JSON object")
        return read_json(raw, schema.max_values)


class ApiBlueprint(Blueprint):  # type: ignore[misc]
    """A blueprint whose operation ids are its functions' names: client generators name their methods so."""

    ARGUMENTS_PARSER = Parser()

    def __init__(self, name: str, path: str, description: str) -> None:
        """`path` is where the paths of its routes begin."""
        super().__init__(name, __name__, url_prefix=path, description=description)

    def arguments(
        self, schema: type[Schema], *, location: Location = "json", **options: Any
    ) -> Callable[[ViewFunction], ViewFunction]:
        # One schema serves all requests: creating one copies every field, which takes longer than a request.
        made = schema()
        decorate = super().arguments(made, location=location, **options)
        return lambda function: declare_parameters(decorate(function), location, made)

    def route(
        self,
        rule: str,
        *,
        scope: KeyScope | Literal["none"] | None = None,
        query: type[Schema] | None = WriteQuery,
        **options: Any,
    ) -> Callable[[ViewFunction], ViewFunction]:
        """`scope`: what a key needs for it, `read` for a GET that names none, `NO_SCOPE` where no key is
        needed. `query`: the parameters of a route that writes; None for a POST that changes nothing. Raises
        TypeError where a scope is missing."""
        if scope is None and options["methods"] != ["GET"]:
            raise TypeError(f"{self.url_prefix}{rule}: a route that is no GET names its scope")
        needed = scope or KeyScope.READ

        def decorate(function: ViewFunction) -> ViewFunction:
            view = function
            if query is not None and options["methods"] != ["GET"]:
                view = self.arguments(query, location="query")(_keep_write_query(function))
            documented = self.doc(operationId=function.__name__, **{"x-scope": str(needed)})(view)
            setattr(documented, SCOPE, needed)
            return super(ApiBlueprint, self).route(rule, **options)(documented)  # type: ignore[no-any-return]

        return decorate


def _keep_write_query(function: ViewFunction) -> ViewFunction:
    """Keeps the query of a request that writes in `g.write_query`, and calls the route without it."""

    @wraps(function)
    def kept(query: Loaded, *args: Any, **options: Any) -> Any:
        g.write_query = query
        return function(*args, **options)

    return kept
