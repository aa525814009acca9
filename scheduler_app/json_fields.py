"""marshmallow's fields, each of which says what it means: `Integer("How many at most", required=True)`. The
specification shows the meaning and the example. marshmallow gives no types to what its fields read and take.
"""

from typing import Any

from marshmallow import Schema, fields


class DescribedField(fields.Field[Any]):
    """A field with its meaning."""

    def __init__(self, meaning: str = "", *of: Any, example: object = None, **options: Any) -> None:
        """`of` is what marshmallow's own field takes by place."""
        about: dict[str, object] = {"description": meaning} if meaning else {}
        if example is not None:
            about["example"] = example
        super().__init__(*of, metadata=about | options.pop("metadata", {}), **options)


class String(DescribedField, fields.String):
    """Text."""


class Integer(DescribedField, fields.Integer):
    """A whole number."""


class Float(DescribedField, fields.Float):
    """A number."""


class Boolean(DescribedField, fields.Boolean):
    """True or false, or what Python takes for them."""


class JsonBoolean(Boolean):
    """JSON's true and false. `0` and `1` are numbers there, though they equal Python's False and True."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> bool:
        if not isinstance(value, bool):
            raise self.make_error("invalid", input=value)
        return value


class JsonDate(DescribedField, fields.Date):
    """A day."""


class Raw(DescribedField, fields.Raw):
    """Any value."""


class Dict(DescribedField, fields.Dict):
    """An object with any names."""


class Nested(DescribedField, fields.Nested):
    """An object with a schema."""

    def __init__(self, schema: type[Schema], meaning: str = "", **options: Any) -> None:
        super().__init__(meaning, schema, **options)


class List(DescribedField, fields.List[Any]):
    """A list of objects with a schema, or of values of one field."""

    def __init__(self, of: type[Schema] | fields.Field[Any], meaning: str = "", **options: Any) -> None:
        super().__init__(meaning, of if isinstance(of, fields.Field) else Nested(of), **options)
