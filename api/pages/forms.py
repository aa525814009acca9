"""Reads a page's query or form by a schema, as the API reads bodies.

A browser sends a field that was left empty as empty text: it counts as not given.
"""

import hashlib
from collections.abc import Callable
from functools import wraps
from typing import Any

from flask import request
from marshmallow import Schema, ValidationError, fields, validate

from scheduler_app.api.declared_parameters import ViewFunction, declaring
from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages.access import TOKEN_FIELD
from scheduler_app.api.problems import Problem, of_field, of_validation
from scheduler_app.api.wire.field_types import Cursor
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.errors import InvalidField
from scheduler_app.store.paging import Position

#: Parameters that say what was done: they belong to the first page of a list alone.
OF_WHAT_WAS_DONE = ("done", "count", "undo", "changed")
#: Rows on a page of a list.
ROWS = 50
#: A page looks so long for what no index answers. It shows what it found; its link to the next page goes on.
LOOK_SECONDS = 0.1


class Nothing(InputSchema):
    """A form that has buttons only."""


class Done(InputSchema):
    """The action that led to a page, and how many things it was done to."""

    done = fields.String(
        validate=validate.OneOf(
            [
                "created",
                "saved",
                "paused",
                "resumed",
                "triggered",
                "tagged",
                "deleted",
                "sent again",
                "cancelled",
                "rescheduled",
                "reverted",
                "dismissed",
                "stopped",
                "released",
            ]
        )
    )
    count = fields.Integer(validate=validate.Range(0, 1_000_000))


def takes_query(
    schema: type[Schema], *, otherwise: Callable[[Problem], Any] | None = None
) -> Callable[[ViewFunction], ViewFunction]:
    """Gives a page its query as the first argument. Where a person has typed a filter that cannot be used,
    `otherwise` makes the page instead: a person mends a filter where it stands."""
    made = schema()
    typed = {field.data_key or name for name, field in made.load_fields.items()}

    def decorate(view: ViewFunction) -> ViewFunction:
        @wraps(view)
        def called(*args: Any, **options: Any) -> Any:
            try:
                query = _read(made, request.args)
            except Problem as problem:
                if otherwise is None or not typed.issuperset(request.args):
                    raise
                return otherwise(problem), problem.status
            return view(query, *args, **options)

        return declaring(called, "query", made)

    return decorate


def takes_form(schema: type[Schema] = Nothing) -> Callable[[ViewFunction], ViewFunction]:
    """Gives a page its form as the first argument."""
    made = schema()

    def decorate(view: ViewFunction) -> ViewFunction:
        @wraps(view)
        def called(*args: Any, **options: Any) -> Any:
            return view(_read(made, request.form), *args, **options)

        return declaring(called, "form", made)

    return decorate


def _read(schema: Schema, given: Any) -> Loaded:
    """Raises Problem."""
    several = {name for name, field in schema.load_fields.items() if isinstance(field, fields.List)}
    values = {
        name: given.getlist(name) if name in several else value
        for name, value in given.items()
        if value and name != TOKEN_FIELD
    }
    if "limit" in schema.load_fields:
        values.setdefault("limit", ROWS)  # the API's own default is for programs that count on it
    try:
        loaded: Loaded = schema.load(values)
    except ValidationError as error:
        raise of_validation(error) from None
    return loaded


def problem_of(error: InvalidField | ValidationError) -> Problem:
    """The problem that the API answers for the same error."""
    return of_validation(error) if isinstance(error, ValidationError) else of_field(error)


def seed_of(form: Loaded) -> str | None:
    """The seed of an id: a form that is sent twice makes one thing, a changed form another."""
    if "once" not in form:
        return None
    content = "\n".join(f"{name}={form[name]}" for name in sorted(form))
    return hashlib.sha256(content.encode()).hexdigest()[:24]


def cursor(position: Position | None) -> str | None:
    """The text of the place where the next page begins."""
    shown: str | None = Cursor()._serialize(position, None, None)
    return shown


def onward(position: Position | None) -> dict[str, str] | None:
    """The query of a list's next page; None at the end."""
    following = cursor(position)
    if following is None:
        return None
    kept = {name: value for name, value in request.args.items() if value and name not in OF_WHAT_WAS_DONE}
    return kept | {"cursor": following}
