"""The fields of the trigger kinds on the wire, as their registry describes them."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from marshmallow import fields, validate

from api.fields import Instant
from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.triggers import FIELDS, FieldType, TriggerField, Value

AnyField = fields.Field[Any]


class Time(Instant):
    """An instant, or a local time where there is no offset: naive in Python, and cut to milliseconds too."""

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        return None if value is None else shown_value(value)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if isinstance(value, str) and 10 < len(value) <= 40:
            try:
                moment = datetime.fromisoformat(value)
            except ValueError:
                moment = None
            if moment is not None and moment.tzinfo is None:
                return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
        return super()._deserialize(value, attr, data, **kwargs)


def shown_value(value: Value) -> Value:
    """A written value as JSON has it."""
    if not isinstance(value, datetime):
        return value
    return shown_instant(value) if value.tzinfo is not None else value.isoformat()


def _text(field: TriggerField) -> AnyField:
    check = validate.OneOf(field.choices) if field.choices else validate.Length(min=1, max=field.max_length)
    return fields.String(validate=check, allow_none=True)


def _whole(field: TriggerField) -> AnyField:
    return fields.Integer(strict=True, validate=validate.Range(field.minimum, field.maximum), allow_none=True)


_INPUTS: dict[FieldType, Callable[[TriggerField], AnyField]] = {
    FieldType.TEXT: _text,
    FieldType.WHOLE: _whole,
    FieldType.TRUE: lambda field: fields.Boolean(
        truthy={True}, falsy=set(), validate=validate.Equal(True), allow_none=True
    ),
    FieldType.TIME: lambda field: Time(allow_none=True),
}
_OUTPUTS: dict[FieldType, Callable[[], AnyField]] = {
    FieldType.TEXT: fields.String,
    FieldType.WHOLE: fields.Integer,
    FieldType.TRUE: fields.Boolean,
    FieldType.TIME: Time,
}


def inputs() -> dict[str, AnyField]:
    """A field for each one of the registry, as requests give it; null takes it away."""
    return _described(_INPUTS[field.type](field) for field in FIELDS.values())


def outputs() -> dict[str, AnyField]:
    """A field for each one of the registry, as answers show it: as it was written."""
    return _described(_OUTPUTS[field.type]() for field in FIELDS.values())


def _described(made: Iterable[AnyField]) -> dict[str, AnyField]:
    found = dict(zip(FIELDS, made, strict=True))
    for name, field in found.items():
        field.metadata = {"description": FIELDS[name].description, "example": FIELDS[name].example}
    return found
