"""Makes the fields of schemas, drafts' values and answers of the tables in `domain/resources`."""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any

from marshmallow import validate
from marshmallow.fields import Field

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.field_types import (
    BoundedList,
    CalendarName,
    DestinationName,
    Headers,
    Instant,
    LocalOrInstant,
    MessageId,
    QueueName,
    ScheduleId,
    StatusCodes,
    check_path,
    check_visible,
)
from scheduler_app.domain import resource_fields as types
from scheduler_app.domain.resource_fields import FieldType, Null, ResourceField

AnyField = Field[Any]
#: What makes the fields of the objects that tables name.
Objects = Mapping[str, Callable[[], AnyField]]
_NONE: Objects = MappingProxyType({})
_NAMES: Mapping[str, Callable[..., AnyField]] = {
    "schedule": ScheduleId,
    "message": MessageId,
    "destination": DestinationName,
    "calendar": CalendarName,
    "queue": QueueName,
}


def edit_fields(rows: Iterable[ResourceField], objects: Objects = _NONE) -> dict[str, AnyField]:
    """How an edit takes the fields."""
    return {
        row.name: _described(
            _input(row.type, objects), row, row.edit_meaning, null=row.null is not Null.NEVER
        )
        for row in rows
        if row.given
    }


def new_fields(rows: Iterable[ResourceField], objects: Objects = _NONE) -> dict[str, AnyField]:
    """How something new takes the fields."""
    found = {
        row.name: _described(_input(row.new_type or row.type, objects), row, null=row.null is Null.ALWAYS)
        for row in rows
        if row.given
    }
    for row in rows:
        if row.required:
            found[row.name].required = True
    return found


def preview_fields(rows: Iterable[ResourceField]) -> dict[str, AnyField]:
    """How a preview takes the fields."""
    return {
        row.name: _described(_input(row.type, _NONE), row, row.preview_meaning, null=row.null is Null.ALWAYS)
        for row in rows
        if row.previewed
    }


def output_fields(rows: Iterable[ResourceField], objects: Objects = _NONE) -> dict[str, AnyField]:
    """How answers show the fields."""
    found = {}
    for row in rows:
        if row.shown:
            field = found[row.name] = _output(row.type, objects)
            field.required = row.always_shown
            field.metadata = {"description": row.shown_meaning or row.meaning}
            if row.shown_words:
                field.validators = [validate.OneOf(row.shown_words)]
    return found


def _described(field: AnyField, row: ResourceField, meaning: str | None = None, *, null: bool) -> AnyField:
    field.metadata = {"description": meaning or row.meaning, **field.metadata}
    if row.example is not None:
        field.metadata["example"] = row.example
    field.allow_none = null
    return field


def _input(kind: FieldType, objects: Objects) -> AnyField:
    match kind:
        case types.Text():
            checks: list[Any] = []
            if kind.least is not None or kind.most is not None:
                checks.append(validate.Length(kind.least, kind.most))
            if kind.visible:
                checks.append(check_visible)
            return fields.String(
                validate=checks, error_messages={"invalid": kind.invalid} if kind.invalid else None
            )
        case types.Word():
            return fields.String(validate=validate.OneOf(kind.words, error=kind.error))
        case types.Name():
            return _NAMES[kind.of]()
        case types.Url():
            return fields.String(metadata={"format": "uri", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://"})
        case types.UrlPath():
            return fields.String(validate=check_path)
        case types.Number():
            return fields.Float(validate=validate.Range(kind.least, kind.most))
        case types.Whole():
            return fields.Integer(strict=True, validate=validate.Range(kind.least, kind.most))
        case types.Flag():
            return fields.JsonBoolean()
        case types.Moment():
            return LocalOrInstant() if kind.local else Instant()
        case types.Statuses():
            return StatusCodes()
        case types.Pairs():
            return Headers(validate=validate.Length(max=kind.most))
        case types.ListOf():
            return BoundedList(_input(kind.item, objects), validate=validate.Length(kind.least, kind.most))
        case types.Json():
            return fields.Raw()
        case types.Object():
            return objects[kind.name]()


def _output(kind: FieldType, objects: Objects) -> AnyField:
    match kind:
        case types.Number():
            return fields.Float()
        case types.Whole():
            return fields.Integer()
        case types.Flag():
            return fields.Boolean()
        case types.Moment():
            return LocalOrInstant() if kind.local else Instant()
        case types.Statuses():
            return StatusCodes()
        case types.Pairs():
            return fields.Dict(keys=fields.String(), values=fields.String())
        case types.ListOf():
            return fields.List(_output(kind.item, objects))
        case types.Json():
            return fields.Raw()
        case types.Object():
            return objects[kind.name]()
        case _:
            return fields.String()


def _drafted(kind: FieldType, value: Any) -> Any:
    """What a draft holds of a value that a request gave."""
    if isinstance(kind, types.Word) and kind.kind is not None:
        return kind.kind(value)
    return tuple(dict.fromkeys(value)) if isinstance(kind, types.ListOf) else value


def draft_values(
    table: Mapping[str, ResourceField],
    data: Loaded,
    readers: Mapping[str, Callable[[Any], object]] = MappingProxyType({}),
) -> Loaded:
    """The fields of a draft, of those that a request gave. `readers` make the value of fields whose type says
    not how; they may raise ValidationError."""
    return {
        table[name].draft_name: readers[name](value) if name in readers else _drafted(table[name].type, value)
        for name, value in data.items()
    }


Show = Callable[[Any], object]


def shows(rows: Iterable[ResourceField], otherwise: Mapping[str, Show], prefix: str = "") -> dict[str, Show]:
    """What returns the value of each field that answers show. It is the one that the resource has, at the
    field's path after `prefix`, but for the fields that `otherwise` shows."""
    return {
        row.name: otherwise[row.name] if row.name in otherwise else _shown_at(prefix + row.path)
        for row in rows
        if row.shown and (row.name in otherwise or not row.computed)
    }


def _shown_at(path: str) -> Show:
    names = path.split(".")

    def show(it: Any) -> object:
        value = it
        for name in names:
            if value is None:  # a schedule without a calendar, a pause or a signature
                return None
            value = getattr(value, name)
        if isinstance(value, tuple):
            return list(value)
        return value.value if isinstance(value, Enum) else value

    return show


def view_of(shown: Mapping[str, Show], it: Any) -> View:
    """What answers show of a resource, without what has no value."""
    return {name: value for name, show in shown.items() if (value := show(it)) is not None}
