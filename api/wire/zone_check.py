"""The check of zone data and holiday data: which schedules they would move."""

from marshmallow import fields, validate

from scheduler_app.api.json_types import View
from scheduler_app.api.wire.calendar import holiday_data_shown
from scheduler_app.api.wire.field_types import Cursor, Instant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema
from scheduler_app.usecases.zone_check import MovedSchedule, ZoneCheck, holiday_data_of

#: Schedules that one call looks at: each may cost a look at its events.
MAX_CHECKED = 200


class ZoneCheckQuery(InputSchema):
    """Which schedules to look at."""

    limit = fields.Integer(
        load_default=100,
        validate=validate.Range(1, MAX_CHECKED),
        metadata={"description": "How many active schedules to look at in this call"},
    )
    cursor = Cursor(
        metadata={"description": "The `next_cursor` of the previous answer: the check continues after it"}
    )


class MoveOutput(OmitNone):
    """One occurrence that would move."""

    before = Instant(metadata={"description": "As it is planned; absent for one that would be added"})
    after = Instant(metadata={"description": "As it would be; absent for one that would be dropped"})
    seconds = fields.Integer(
        metadata={"description": "How much later it would be; negative: earlier. Absent where one is absent"}
    )


class MovedScheduleOutput(OmitNone):
    """A schedule that would move."""

    id = fields.String(required=True, metadata={"description": "The schedule's id"})
    name = fields.String(required=True, metadata={"description": "Its name"})
    timezone = fields.String(required=True, metadata={"description": "The zone of its trigger"})
    zone_data = fields.String(
        metadata={
            "description": "The release of the zone data that it was computed with; absent in UTC",
            "example": "2026a",
        },
    )
    calendar = fields.String(metadata={"description": "The calendar that it observes"})
    holiday_data = fields.String(
        metadata={
            "description": "The release of `holidays` that the calendar's days were computed with",
            "example": "0.109",
        }
    )
    moves = fields.List(
        fields.Nested(MoveOutput),
        required=True,
        metadata={"description": "The first of its moves, 5 at most"},
    )
    error = fields.String(metadata={"description": "Why it cannot be told; absent where it can"})


class ZoneCheckOutput(OutputSchema):
    """What the installed zone data and holiday data would move."""

    zone_data = fields.String(
        required=True, metadata={"description": "The release of the installed zone data", "example": "2026b"}
    )
    holiday_data = fields.String(
        required=True,
        metadata={"description": "The release of the installed `holidays` package", "example": "0.110"},
    )
    checked = fields.Integer(
        required=True, metadata={"description": "Schedules of this page that were computed with older data"}
    )
    moved = fields.List(
        fields.Nested(MovedScheduleOutput), required=True, metadata={"description": "Those that would move"}
    )
    next_cursor = Cursor(
        required=True,
        allow_none=True,
        metadata={"description": "Give it as `cursor` for the next page; null at the end"},
    )


def zone_check_shown(check: ZoneCheck) -> View:
    """The fields of ZoneCheckOutput."""
    return {
        "zone_data": check.version,
        "holiday_data": check.holiday_data,
        "checked": check.checked,
        "moved": list(map(_moved_shown, check.moved)),
        "next_cursor": check.next,
    }


def _moved_shown(moved: MovedSchedule) -> View:
    schedule = moved.schedule
    return {
        "id": schedule.id,
        "name": schedule.name,
        "timezone": schedule.trigger.timezone,
        "zone_data": schedule.zone_data,
        "calendar": schedule.calendar.name if schedule.calendar else None,
        "holiday_data": holiday_data_shown(holiday_data_of(schedule)),
        "moves": [
            {
                "before": move.before,
                "after": move.after,
                "seconds": None if move.by is None else round(move.by.total_seconds()),
            }
            for move in moved.moves
        ],
        "error": moved.error,
    }
