"""Reads a page's query or form by a schema, and turns JSON values into a form's texts and back.

A browser sends a field that was left empty as empty text: it counts as not given.
"""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Any

from flask import request
from marshmallow import Schema, ValidationError, validate

from scheduler_app import json_fields as fields
from scheduler_app.api.blueprint import ViewFunction, declare_parameters
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages.access import TOKEN_FIELD
from scheduler_app.api.problems import HttpProblem, problem_of
from scheduler_app.api.wire.field_types import Cursor, StatusCodes
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.resource_fields import AnyField
from scheduler_app.domain.retry import Codes
from scheduler_app.store.paging import Position

#: Fields whose value is one line of text in a form.
ONE_LINE = (fields.String, fields.Integer, fields.Float, fields.Boolean, StatusCodes)
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def value_of(field: AnyField, text: str) -> object:
    """The JSON value that a text stands for; the text itself where it is none, for the schema to refuse."""
    readers: tuple[tuple[type[Any], Callable[[str], object]], ...] = (
        (fields.Boolean, lambda each: {"true": True, "false": False}.get(each, each)),
        (StatusCodes, lambda each: [_number(code) for code in listed(each)]),
        (fields.List, listed),
        (fields.Integer, _number),
        (fields.Float, _number),
    )
    for kind, read in readers:
        if isinstance(field, kind):
            return read(text)
    return text


def text_of(value: object) -> str:
    """The text that `value_of` reads as this value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, Codes):
        value = value.written
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def listed(text: str) -> list[str]:
    """Words that are separated by commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


def headers_of(text: str, field: str = "headers") -> dict[str, str]:
    """Names and values, one pair a line. Raises ValidationError of `field`."""
    found: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, colon, value = line.partition(":")
        if not colon or name.strip() in found:
            raise ValidationError({field: [f"write each name once, as Name: value; not {line[:80]!r}"]})
        found[name.strip()] = value.strip()
    return found


def headers_text(value: object) -> str:
    """The text that `headers_of` reads as these names and values."""
    pairs = value.items() if isinstance(value, Mapping) else ()
    return "\n".join(f"{name}: {each}" for name, each in pairs)


def changed_names(form: View, before: View, names: set[str]) -> set[str]:
    """The fields whose texts differ; a browser sends lines as it ends them."""
    return {name for name in names if _plain(form.get(name, "")) != _plain(before.get(name, ""))}


def choices(field: AnyField) -> list[str]:
    """The words that a field may have, where it is one of several."""
    if isinstance(field, fields.Boolean):
        return ["true", "false"]
    found = (each for each in field.validators if isinstance(each, validate.OneOf))
    return [str(each) for one_of in found for each in one_of.choices]


def setting(field: AnyField, default: str = "") -> View:
    """What a form shows of a field beside its value."""
    return {"choices": choices(field), "meaning": field.metadata.get("description", ""), "default": default}


def errors_by_field(problem: HttpProblem | None, names: Mapping[str, str]) -> dict[str, list[str]]:
    """The errors by the form's fields; "" for those of no field. `names` are the form's
    names of the API's fields that have another one there, by field (`body`) or by path (`auth/token`)."""
    errors: dict[str, list[str]] = {}
    for each in problem.errors if problem else ():
        path = each["pointer"].lstrip("/")
        name = path.partition("/")[0]
        errors.setdefault(names.get(path) or names.get(name, name), []).append(each["detail"])
    if problem and not problem.errors:
        errors[""] = [problem.detail]
    return errors


def other_errors(errors: Mapping[str, list[str]], shown: Collection[str]) -> list[str]:
    """Those of fields beside which the form shows none."""
    return [text for name in sorted(errors.keys() - shown) for text in errors[name]]


def text_fields(lengths: Mapping[str, int]) -> dict[str, AnyField]:
    """The fields of a form whose texts are checked as the API's: here they are only bounded."""
    return {name: fields.String(validate=validate.Length(max=most)) for name, most in lengths.items()}


def _number(text: str) -> object:
    if not _NUMBER.fullmatch(text) or len(text) > 20:
        return text
    return float(text) if "." in text else int(text)


def _plain(text: object) -> str:
    return "\n".join(str(text).split("\r\n")).strip()


#: Parameters that say what was done: they belong to the first page of a list alone.
ACTION_RESULT_FIELDS = ("done", "count", "undo", "changed")
#: Rows on a page of a list.
ROWS = 50
#: A page looks so long for what no index answers. It shows what it found; its link to the next page goes on.
LOOK_SECONDS = 0.1


class NoFields(InputSchema):
    """A form that has buttons only."""


class ActionResultQuery(InputSchema):
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
                "silenced",
                "tested",
                "begun",
                "signed out",
            ]
        )
    )
    count = fields.Integer(validate=validate.Range(0, 1_000_000))


def takes_query(
    schema: type[Schema], *, otherwise: Callable[[HttpProblem], Any] | None = None
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
            except HttpProblem as problem:
                if otherwise is None or not typed.issuperset(request.args):
                    raise
                return otherwise(problem), problem.status
            return view(query, *args, **options)

        return declare_parameters(called, "query", made)

    return decorate


def takes_form(schema: type[Schema] = NoFields) -> Callable[[ViewFunction], ViewFunction]:
    """Gives a page its form as the first argument."""
    made = schema()

    def decorate(view: ViewFunction) -> ViewFunction:
        @wraps(view)
        def called(*args: Any, **options: Any) -> Any:
            return view(_read(made, request.form), *args, **options)

        return declare_parameters(called, "form", made)

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
        raise problem_of(error) from None
    return loaded


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


def next_page_query(position: Position | None) -> dict[str, str] | None:
    """The query of a list's next page; None at the end."""
    following = cursor(position)
    if following is None:
        return None
    kept = {name: value for name, value in request.args.items() if value and name not in ACTION_RESULT_FIELDS}
    return kept | {"cursor": following}
