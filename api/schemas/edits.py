"""All schedules that match a filter, edited in one request."""

from typing import Any

from marshmallow import ValidationError, fields, validate, validates_schema

from api.fields import Cursor
from api.schemas.common import MAX_LIMIT, Output
from api.schemas.schedule_output import ScheduleChoice


class EditFilter(ScheduleChoice):
    """Which schedules to edit, and how many in this call."""

    body_optional = True

    all = fields.Boolean(
        truthy={True},
        falsy={False},
        load_default=False,
        metadata={"description": "Every schedule there is, instead of a filter"},
    )
    limit = fields.Integer(
        strict=True,
        load_default=100,
        validate=validate.Range(1, MAX_LIMIT),
        metadata={"description": "How many at most in this call"},
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
        filtered = any(name in data for name in ("state", "name", "tag", "last_outcome"))
        if not filtered and not data["all"]:
            raise ValidationError(
                "give state, name, tag or last_outcome, or all: true for every schedule there is", "all"
            )
        if filtered and data["all"]:
            raise ValidationError("give all, or a filter, not both", "all")


class Skipped(Output):
    """A schedule that was left as it is."""

    id = fields.String(required=True)
    reason = fields.String(required=True)


class _EditedPage(Output):
    skipped = fields.List(
        fields.Nested(Skipped),
        required=True,
        metadata={"description": "The first 100 that were left as they are"},
    )
    skipped_omitted = fields.Integer(metadata={"description": "How many more were; absent for none"})
    next_cursor = Cursor(
        required=True,
        allow_none=True,
        metadata={
            "description": "Give it as `cursor`, with the same filter, for the next page; null at the end."
            " Before the end a page may be shorter than `limit`: one call lasts some 5 seconds."
        },
    )


class PausedPage(_EditedPage):
    paused = fields.Integer(required=True)


class ResumedPage(_EditedPage):
    resumed = fields.Integer(required=True)


class DeletedPage(_EditedPage):
    deleted = fields.Integer(required=True)
