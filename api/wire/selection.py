"""What edits and redrives of many have in common: a filter or all, a page at a time, and what was skipped."""

from typing import Any, ClassVar

from marshmallow import ValidationError, fields, validates_schema

from api.wire.field_types import Cursor
from api.wire.input_schema import InputSchema
from api.wire.output_schema import OutputSchema


class Selection(InputSchema):
    """All that match a filter, or `all` without one."""

    body_optional = True

    #: The fields that are filters, by their names on the wire, and what they choose from.
    FILTERS: ClassVar[dict[str, str]]
    THINGS: ClassVar[str]

    all = fields.Boolean(
        truthy={True},
        falsy={False},
        load_default=False,
        metadata={"description": "Everything there is, instead of a filter"},
    )
    cursor = Cursor(metadata={"description": "The `next_cursor` of the call before"})
    dry_run = fields.Boolean(
        truthy={True},
        falsy={False},
        load_default=False,
        metadata={"description": "Count what would be done, and do nothing"},
    )

    @validates_schema
    def check_filter(self, data: dict[str, Any], **_: Any) -> None:
        filtered = any(name in data for name in self.FILTERS)
        if not filtered and not data["all"]:
            *others, last = self.FILTERS.values()
            names = f"{', '.join(others)} or {last}"
            raise ValidationError(f"give {names}, or all: true for every {self.THINGS} there is", "all")
        if filtered and data["all"]:
            raise ValidationError("give all, or a filter, not both", "all")


class Skipped(OutputSchema):
    """One that was left as it is."""

    id = fields.String(required=True)
    reason = fields.String(required=True)
