"""JSON's true and false, and nothing that Python takes for them."""

from typing import Any

from marshmallow import fields


class JsonBoolean(fields.Boolean):
    """`0` and `1` are numbers in JSON, though they equal Python's False and True."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> bool:
        if not isinstance(value, bool):
            raise self.make_error("invalid", input=value)
        return value
