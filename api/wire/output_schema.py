"""What all answers have in common."""

from collections.abc import Mapping

from marshmallow import INCLUDE, Schema, fields, post_dump

from scheduler_app.api.json_types import View


class OutputSchema(Schema):
    """An answer. Clients must ignore fields that they do not know: answers grow."""

    class Meta:
        unknown = INCLUDE

    def _serialize(self, obj: object, *, many: bool = False) -> object:
        """As marshmallow's own, but of a mapping only the keys that it has are read, and directly:
        marshmallow's accessors take most of the time of a long list."""
        if many or not isinstance(obj, Mapping):
            return super()._serialize(obj, many=many)
        return {
            field.data_key or name: field._serialize(obj[field.attribute or name], name, obj)
            for name, field in self.dump_fields.items()
            if (field.attribute or name) in obj
        }


class OmitNone(OutputSchema):
    """Omits fields whose value is None."""

    @post_dump
    def without_nothing(self, data: View, **_: object) -> View:
        return {name: value for name, value in data.items() if value is not None}


class Message(OutputSchema):
    """An answer that only says that it is done."""

    message = fields.String(required=True, metadata={"description": "The result in words"})
