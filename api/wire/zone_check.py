"""The check of zone data: which schedules it would move."""

from marshmallow import fields, validate

from api.json_types import View
from api.wire.field_types import Cursor, Instant
from api.wire.input_schema import InputSchema
from api.wire.output_schema import OmitNone, OutputSchema
from scheduler_app.usecases.zone_check import MovedSchedule, ZoneCheck

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
        required=True,
        metadata={
            "description": "The release of the zone data that it was computed with",
            "example": "2026a",
        },
    )
    moves = fields.List(
        fields.Nested(MoveOutput),
        required=True,
        metadata={"description": "The first of its moves, 5 at most"},
    )
    error = fields.String(metadata={"description": "Why it cannot be told; absent where it can"})


class ZoneCheckOutput(OutputSchema):
    """What the installed zone data would move."""

    zone_data = fields.String(
        required=True, metadata={"description": "The release of the installed zone data", "example": "2026b"}
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
