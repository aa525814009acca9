"""Values of JSON as the texts of a form's fields, and back."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from marshmallow import ValidationError, fields, validate

from scheduler_app.api.json_types import View
from scheduler_app.api.problems import Problem
from scheduler_app.api.wire.field_types import StatusCodes
from scheduler_app.api.wire.schedule_fields.field import AnyField
from scheduler_app.domain.retry import Codes

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


def errors_by_field(problem: Problem | None, names: Mapping[str, str]) -> dict[str, list[str]]:
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


def _number(text: str) -> object:
    if not _NUMBER.fullmatch(text) or len(text) > 20:
        return text
    return float(text) if "." in text else int(text)


def _plain(text: object) -> str:
    return "\n".join(str(text).split("\r\n")).strip()
