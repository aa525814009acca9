"""Editing all schedules that match a filter."""

from typing import ClassVar

from marshmallow import fields, validate

from scheduler_app.api.wire.field_types import Cursor, Instant, check_visible
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OutputSchema
from scheduler_app.api.wire.paging import MAX_LIMIT
from scheduler_app.api.wire.schedule_output import ScheduleChoice
from scheduler_app.api.wire.selection import Selection, Skipped
from scheduler_app.domain.pause import MAX_NOTE


class EditFilter(ScheduleChoice, Selection):
    """Which schedules to edit, and how many in one call."""

    FILTERS: ClassVar = {name: field.data_key or name for name, field in ScheduleChoice().fields.items()}
    THINGS = "schedule"

    limit = fields.Integer(
        strict=True,
        load_default=100,
        validate=validate.Range(1, MAX_LIMIT),
        metadata={"description": "How many at most in this call"},
    )


class PauseInput(InputSchema):
    """How long to pause, and why. Nothing has to be given."""

    body_optional = True

    until = Instant(
        metadata={
            "description": "When the pause ends by itself, within two seconds; occurrences before it are not"
            " made up for. Default: it lasts until a resume"
        }
    )
    note = fields.String(
        validate=[validate.Length(1, MAX_NOTE), check_visible],
        metadata={"description": f"Why, in up to {MAX_NOTE} characters; answers show it"},
    )


class PauseFilter(EditFilter, PauseInput):
    """Which schedules to pause, how many in one call, how long and why. One that is paused already is left
    as it is."""


class _EditedPage(OutputSchema):
    skipped = fields.List(
        fields.Nested(Skipped),
        required=True,
        metadata={"description": "The first 100 schedules that were not edited"},
    )
    skipped_omitted = fields.Integer(metadata={"description": "How many more there are; absent if none"})
    next_cursor = Cursor(
        required=True,
        allow_none=True,
        metadata={
            "description": "Give it as `cursor`, with the same filter, for the next page; null at the end."
            " Before the end a page may be shorter than `limit`: one call lasts some 5 seconds."
        },
    )


class PausedPage(_EditedPage):
    paused = fields.Integer(required=True, metadata={"description": "How many were paused"})


class ResumedPage(_EditedPage):
    resumed = fields.Integer(required=True, metadata={"description": "How many were resumed"})


class DeletedPage(_EditedPage):
    deleted = fields.Integer(required=True, metadata={"description": "How many were deleted"})
