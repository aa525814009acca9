"""What a schedule is called."""

from marshmallow import fields, validate

from scheduler_app.api.wire.field_types import ScheduleId, check_visible
from scheduler_app.api.wire.schedule_fields.field import ScheduleField
from scheduler_app.domain.schedule import MAX_NAME, MAX_PURPOSE

NAMING = (
    ScheduleField(
        name="id",
        meaning="An id of your own: 1 to 64 letters, digits and hyphens. The id of a deleted schedule may be"
        " used again",
        default="generated",
        input=ScheduleId(metadata={"description": "The id in the path, once more"}),
        creation=ScheduleId(),
        preview=ScheduleId(
            metadata={"description": "The id that the schedule will have: it decides the jitter"}
        ),
        output=fields.String(required=True),
        shown_meaning="The schedule's id",
        shown=lambda it: it.schedule.id,
    ),
    ScheduleField(
        name="name",
        meaning=f"What people call it, up to {MAX_NAME} characters",
        default="required",
        input=fields.String(
            validate=[validate.Length(max=MAX_NAME), check_visible], metadata={"example": "Daily Backup"}
        ),
        creation=fields.String(
            required=True,
            validate=[validate.Length(min=1, max=MAX_NAME), check_visible],
            metadata={"example": "Daily Backup"},
        ),
        output=fields.String(),
        shown=lambda it: it.schedule.name,
        aliases="title",
    ),
    ScheduleField(
        name="purpose",
        meaning=f"What it is for, in words for people, up to {MAX_PURPOSE} characters",
        default="empty",
        input=fields.String(validate=[validate.Length(max=MAX_PURPOSE), check_visible]),
        output=fields.String(),
        shown=lambda it: it.schedule.purpose or None,
        aliases="notes comment about",
    ),
)
