"""The blueprint of every group of routes, and how it reads a request."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from flask import Request, g
from flask_smorest import Blueprint
from marshmallow import Schema, missing
from webargs.flaskparser import FlaskParser

from scheduler_app.api.declared_parameters import Location, ViewFunction, declaring
from scheduler_app.api.json_body import read_json
from scheduler_app.api.json_types import Loaded
from scheduler_app.api.problems import Problem
from scheduler_app.api.wire.input_schema import WriteQuery


class Parser(FlaskParser):
    """Reads a body by `read_json`. `declared_parameters` has refused unknown query parameters before."""

    def load_json(self, req: Request, schema: Any) -> Any:
        raw = req.get_data(cache=True)
        if not raw:
            if schema.body_optional:
                return missing
            raise Problem(400, "the body is missing: send a JSON object")
        return read_json(raw, schema.max_values)


class ApiBlueprint(Blueprint):  # type: ignore[misc]
    """A blueprint whose operation ids are its functions' names: client generators name their methods so."""

    ARGUMENTS_PARSER = Parser()

    def arguments(
        self, schema: type[Schema], *, location: Location = "json", **options: Any
    ) -> Callable[[ViewFunction], ViewFunction]:
        # One schema serves all requests: creating one copies every field, which takes longer than a request.
        made = schema()
        decorate = super().arguments(made, location=location, **options)
        return lambda function: declaring(decorate(function), location, made)

    def route(
        self, rule: str, *, query: type[Schema] | None = WriteQuery, **options: Any
    ) -> Callable[[ViewFunction], ViewFunction]:
        """`query`: the parameters of a route that writes; None for a POST that changes nothing."""

        def decorate(function: ViewFunction) -> ViewFunction:
            view = function
            if query is not None and options["methods"] != ["GET"]:
                view = self.arguments(query, location="query")(_keeping(function))
            documented = self.doc(operationId=function.__name__)(view)
            return super(ApiBlueprint, self).route(rule, **options)(documented)  # type: ignore[no-any-return]

        return decorate


def _keeping(function: ViewFunction) -> ViewFunction:
    """Keeps the query of a request that writes in `g.write_query`, and calls the route without it."""

    @wraps(function)
    def kept(query: Loaded, *args: Any, **options: Any) -> Any:
        g.write_query = query
        return function(*args, **options)

    return kept
