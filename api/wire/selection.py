"""What bulk edits and redrives share: a filter or all, one page in each call, and what was skipped."""

from typing import ClassVar

from marshmallow import ValidationError, fields, validates_schema

from scheduler_app.api.json_types import Loaded
from scheduler_app.api.wire.field_types import Cursor
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OutputSchema
from scheduler_app.json_boolean import JsonBoolean


class Selection(InputSchema):
    """Everything that matches a filter, or `all` without one."""

    body_optional = True

    #: The names of the filters in Python and on the wire.
    FILTERS: ClassVar[dict[str, str]]
    #: What is selected, in the singular, for error messages.
    THINGS: ClassVar[str]

    all = JsonBoolean(
        load_default=False,
        metadata={"description": "Everything there is, instead of a filter"},
    )
    cursor = Cursor(metadata={"description": "The `next_cursor` of the call before"})
    dry_run = JsonBoolean(
        load_default=False,
        metadata={"description": "Count what would be done, and do nothing"},
    )

    @validates_schema
    def check_filter(self, data: Loaded, **_: object) -> None:
        filtered = any(name in data for name in self.FILTERS)
        if not filtered and not data["all"]:
            *others, last = self.FILTERS.values()
            names = f"{', '.join(others)} or {last}"
            raise ValidationError(f"give {names}, or all: true for every {self.THINGS} there is", "all")
        if filtered and data["all"]:
            raise ValidationError("give all, or a filter, not both", "all")


class Skipped(OutputSchema):
    """A schedule or an event that was not changed."""

    id = fields.String(required=True, metadata={"description": "Its id"})
    reason = fields.String(required=True, metadata={"description": "Why it was not changed"})
