"""The blueprint that every noun's routes hang on, and how it reads a request."""

import json
import math
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from flask import Request, g
from flask_smorest import Blueprint
from marshmallow import RAISE, Schema, missing
from webargs.flaskparser import FlaskParser

from api.errors import Problem
from api.schemas.common import WriteQuery


class Parser(FlaskParser):
    """Reads JSON as RFC 8259 has it: UTF-8, no NaN, no half of a surrogate pair, however deep or long."""

    # A filter with a slip in its name must not list everything.
    DEFAULT_UNKNOWN_BY_LOCATION = FlaskParser.DEFAULT_UNKNOWN_BY_LOCATION | {"query": RAISE}

    def load_json(self, req: Request, schema: Any) -> Any:
        raw = req.get_data(cache=True)
        if not raw:
            if schema.body_optional:
                return missing
            raise Problem(400, "the body is missing: send a JSON object")
        if not req.is_json:
            raise Problem(415, "send JSON: Content-Type: application/json")
        if _values(raw, schema.max_values) > schema.max_values:
            raise Problem(413, f"the body holds more than {schema.max_values:,} values; send less at once")
        try:
            value = json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant)
            if b"\\u" in raw:
                json.dumps(value, ensure_ascii=False).encode()
        except RecursionError:
            raise Problem(400, "the body is nested too deeply") from None
        except UnicodeEncodeError:
            raise Problem(400, "the body holds half of a surrogate pair, which is no character") from None
        except ValueError as error:
            raise Problem(400, f"the body is not well-formed JSON: {error}"[:300]) from None
        if not all(math.isfinite(number) for number in _floats(value)):
            raise Problem(400, "the body holds a number beyond what a double can hold")
        return value


def _values(raw: bytes, enough: int) -> int:
    """How many values the JSON holds, or a few more; counted before they are made. What stands in strings is
    looked at only where there might be more than `enough`."""
    count = _separators(raw)
    if count <= enough:
        return count
    plain = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    # A member of an object has two strings at most, of two quotes each.
    by_quotes = plain.count(b'"') // 4
    return by_quotes if by_quotes > enough else _separators(b"".join(plain.split(b'"')[::2]))


def _separators(raw: bytes) -> int:
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{") + 1


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def _floats(value: Any) -> Iterator[float]:
    """Without recursion: what `json` has read may be nested deeper than Python calls."""
    open_ = [value]
    while open_:
        item = open_.pop()
        if isinstance(item, float):
            yield item
        elif isinstance(item, dict):
            open_.extend(item.values())
        elif isinstance(item, list):
            open_.extend(item)


class Noun(Blueprint):  # type: ignore[misc]
    """Operation ids are the functions' names: client generators make methods of them."""

    ARGUMENTS_PARSER = Parser()

    def arguments(self, schema: type[Schema], **options: Any) -> Callable[..., Any]:
        # One for all requests: making one copies every field, which takes longer than reading a request.
        return super().arguments(schema(), **options)  # type: ignore[no-any-return]

    def route(
        self, rule: str, *, query: type[Schema] | None = WriteQuery, **options: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """`query`: what a route that writes takes beside its body; None for a POST that only looks."""

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            view = function
            if query is not None and options["methods"] != ["GET"]:
                view = self.arguments(query, location="query")(_keeping(function))
            documented = self.doc(operationId=function.__name__)(view)
            return super(Noun, self).route(rule, **options)(documented)  # type: ignore[no-any-return]

        return decorate


def _keeping(function: Callable[..., Any]) -> Callable[..., Any]:
    """Keeps what the query said for those who ask the request, and not the route."""

    @wraps(function)
    def kept(query: dict[str, Any], *args: Any, **options: Any) -> Any:
        g.write_query = query
        return function(*args, **options)

    return kept
