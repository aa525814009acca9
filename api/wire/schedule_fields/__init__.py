"""The table of a schedule's fields on the wire. A new field of a schedule is one row of it.

Schemas, answers, exports, the advice for misspelt names, the client, the command line and the manual are
made from these rows.
"""

from collections.abc import Iterable

from scheduler_app.api.wire.input_schema import add_suggestions
from scheduler_app.api.wire.schedule_fields.action import ACTION, BODY_FIELDS, REQUEST
from scheduler_app.api.wire.schedule_fields.delivery import DELIVERY
from scheduler_app.api.wire.schedule_fields.field import (
    AnyField,
    RecurrenceFacts,
    ScheduleField,
    ShownSchedule,
    warnings_of,
)
from scheduler_app.api.wire.schedule_fields.identity import LAST_OUTCOMES, LIFECYCLE, NAMING, STATES
from scheduler_app.api.wire.schedule_fields.policies import OVERLAP, POLICIES
from scheduler_app.api.wire.schedule_fields.trigger import JITTER, TRIGGER
from scheduler_app.domain.triggers import FIELDS as TRIGGER_FIELDS

__all__ = [
    "BODY_FIELDS",
    "CREATION_FIELDS",
    "EDIT_FIELDS",
    "FIELDS",
    "LAST_OUTCOMES",
    "OUTPUT_FIELDS",
    "PREVIEW_FIELDS",
    "SCHEDULE_FIELDS",
    "STATES",
    "TRIGGER_OUTPUT_FIELDS",
    "RecurrenceFacts",
    "ScheduleField",
    "ShownSchedule",
    "warnings_of",
]

#: Every field, in the order of specifications, answers and the manual.
SCHEDULE_FIELDS: tuple[ScheduleField, ...] = (
    *NAMING,
    *TRIGGER,
    *REQUEST,
    *ACTION,
    *DELIVERY,
    *POLICIES,
    *OVERLAP,
    *JITTER,
    *LIFECYCLE,
)

#: Every field by its name.
FIELDS = {row.name: row for row in SCHEDULE_FIELDS}
add_suggestions(
    {alias: row.name for row in SCHEDULE_FIELDS if row.input for alias in row.aliases.split()},
    (row.name for row in SCHEDULE_FIELDS if not row.input),
)


def _described(pairs: Iterable[tuple[ScheduleField, AnyField | None, str]]) -> dict[str, AnyField]:
    return {row.name: row.described(field, meaning) for row, field, meaning in pairs if field is not None}


#: What PUT takes.
EDIT_FIELDS = _described((row, row.input, row.meaning) for row in SCHEDULE_FIELDS)
#: What POST and each item of a bulk take.
CREATION_FIELDS = _described((row, row.creation or row.input, row.meaning) for row in SCHEDULE_FIELDS)
#: What a preview takes.
PREVIEW_FIELDS = _described((row, row.preview, row.meaning) for row in SCHEDULE_FIELDS)
#: What answers show.
OUTPUT_FIELDS = _described((row, row.output, row.shown_meaning or row.meaning) for row in SCHEDULE_FIELDS)
#: What answers show of the fields of trigger kinds.
TRIGGER_OUTPUT_FIELDS = {name: OUTPUT_FIELDS[name] for name in TRIGGER_FIELDS}
