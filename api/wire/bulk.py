"""Many schedules in one request: creating, importing an iCalendar file, editing all that match a filter."""

import re
from typing import Any, ClassVar

from marshmallow import ValidationError, fields, validate

from scheduler_app.api.json_types import Loaded
from scheduler_app.api.wire.field_types import BoundedList, Cursor, Instant, check_visible
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OutputSchema, Problem
from scheduler_app.api.wire.paging import MAX_LIMIT, PageSelection, Skipped
from scheduler_app.api.wire.schedule import NewSchedule, ScheduleChoice, ScheduleInput, note_missing_action
from scheduler_app.api.wire.schedule_fields import CREATION_FIELDS
from scheduler_app.domain.resources.schedule import MAX_TIMEZONE
from scheduler_app.domain.schedule import MAX_NOTE
from scheduler_app.domain.triggers import FIELDS as TRIGGER_FIELDS
from scheduler_app.ics import MAX_ITEMS
from scheduler_app.ics.calendar_file import MAX_CHARACTERS
from scheduler_app.json_boolean import JsonBoolean

MAX_BULK = 1_000


class ListOfResults(BoundedList):
    """A list of results: for each item its value, or the ValidationError that its schema raised."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        self.check_length(value)
        return [self._one(item) for item in value]

    def _one(self, item: Any) -> Any:
        try:
            return self.inner.deserialize(item)
        except ValidationError as error:
            return error


class BulkInput(InputSchema):
    max_values = 1_000_000
    schedules = ListOfResults(
        fields.Nested(NewSchedule),
        required=True,
        validate=validate.Length(1, MAX_BULK),
        metadata={"description": "Each is accepted or refused by itself"},
    )


class BulkResult(OutputSchema):
    """The result of the item at the same place in the request."""

    status = fields.Integer(
        required=True,
        metadata={"description": "The status that a request of its own would have", "example": 201},
    )
    id = fields.String(metadata={"description": "The id of the new schedule"})
    next_run_at = Instant(metadata={"description": "Its next occurrence"})
    signing_secret = fields.String(
        metadata={"description": "Shown only in this answer, if `signing` was asked for"}
    )
    problem = fields.Nested(Problem, metadata={"description": "Why it was refused"})


class BulkOutput(OutputSchema):
    created = fields.Integer(required=True, metadata={"description": "How many schedules were created"})
    refused = fields.Integer(required=True, metadata={"description": "How many were refused"})
    results = fields.List(
        fields.Nested(BulkResult),
        required=True,
        metadata={"description": "One for each item, in the order of the request"},
    )


class EditFilter(ScheduleChoice, PageSelection):
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


#: What each event says itself.
_OF_THE_EVENT = {"id", "name", "timezone", *TRIGGER_FIELDS}
_PREFIX = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9-]{0,31}\Z")


class ImportedSchedule(ScheduleInput):
    """The fields that all schedules of an import share."""

    class Meta(ScheduleInput.Meta):
        include = {"callback_url": CREATION_FIELDS["callback_url"]}  # noqa: RUF012 (marshmallow's own name)
        exclude = tuple(sorted(_OF_THE_EVENT))

    def check_receiver(self, data: Loaded, problems: dict[str, list[str]]) -> None:
        note_missing_action(data, problems)


class ImportInput(InputSchema):
    ics = fields.String(
        required=True,
        validate=validate.Length(min=1, max=MAX_CHARACTERS),
        metadata={"description": f"An iCalendar file (RFC 5545) with up to {MAX_ITEMS:,} events and to-dos"},
    )
    schedule = fields.Nested(
        ImportedSchedule,
        required=True,
        metadata={
            "description": "What all of them call, and how: a schedule without id, name, trigger and timezone"
        },
    )
    timezone = fields.String(
        load_default="UTC",
        validate=validate.Length(min=1, max=MAX_TIMEZONE),
        metadata={
            "description": "The IANA zone of times that name none, where the calendar has no X-WR-TIMEZONE",
            "example": "Europe/Zurich",
        },
    )
    id_prefix = fields.String(
        load_default="ics",
        validate=validate.Regexp(
            _PREFIX, error="must be 1 to 32 letters, digits and hyphens, and begin with no hyphen"
        ),
        metadata={
            "description": "What the ids begin with; the rest is derived from each event's UID. Take another"
            " one to import the same events once more, for another receiver",
            "pattern": "^[a-zA-Z0-9][a-zA-Z0-9-]{0,31}$",
        },
    )
    update = JsonBoolean(
        load_default=False,
        metadata={
            "description": "Change the schedules that an earlier import has made of these events and that"
            " differ, and delete those of what an event says no more: it is cancelled or over, or is one"
            " series again. An event that is not in the file keeps its schedule"
        },
    )


class ImportedResult(BulkResult):
    """What became of one series of an event."""

    result = fields.String(
        validate=validate.OneOf(["created", "changed", "unchanged"]),
        metadata={"description": "What was done to its schedule; absent where it was refused"},
    )
    recurrence = fields.String(metadata={"description": "The series as an RFC 5545 recurrence"})
    timezone = fields.String(metadata={"description": "The zone of its DTSTART"})
    warnings = fields.List(
        fields.String(), metadata={"description": "What may surprise the person who wrote the event"}
    )


class ItemOutput(OutputSchema):
    """An event or a to-do with what overrides its occurrences, or another component of the file."""

    component = fields.String(required=True, metadata={"example": "VEVENT"})
    uid = fields.String(metadata={"description": "Its UID"})
    name = fields.String(metadata={"description": "Its SUMMARY, else its UID"})
    result = fields.String(
        required=True,
        validate=validate.OneOf(["created", "changed", "unchanged", "over", "ignored", "refused"]),
        metadata={
            "description": "`unchanged`: an earlier import has made the same of it; `over`: all of its"
            " occurrences have passed; `ignored`: it says nothing that could"
            " be called, or is cancelled or completed"
        },
    )
    reason = fields.String(metadata={"description": "Why nothing was created"})
    schedules = fields.List(
        fields.Nested(ImportedResult),
        required=True,
        metadata={
            "description": "One for each series: more than one where the event was changed from some"
            " occurrence on (RANGE=THISANDFUTURE)"
        },
    )
    removed = fields.List(
        fields.String(),
        metadata={"description": "Ids of schedules that `update` deleted; absent where there are none"},
    )
    ignored = fields.List(
        fields.String(),
        required=True,
        metadata={"description": "Properties and components of it that a callback has no use for"},
    )
    notes = fields.List(
        fields.String(),
        required=True,
        metadata={
            "description": "How it was read where that is not plain, such as the zone of a Windows name"
        },
    )


class ImportOutput(OutputSchema):
    created = fields.Integer(required=True, metadata={"description": "How many schedules were created"})
    changed = fields.Integer(required=True, metadata={"description": "How many were changed"})
    unchanged = fields.Integer(required=True, metadata={"description": "How many were the same already"})
    removed = fields.Integer(required=True, metadata={"description": "How many were deleted"})
    refused = fields.Integer(required=True, metadata={"description": "How many items or series were refused"})
    over = fields.Integer(required=True, metadata={"description": "How many items are over"})
    ignored = fields.Integer(required=True, metadata={"description": "How many items were ignored"})
    items = fields.List(
        fields.Nested(ItemOutput),
        required=True,
        metadata={"description": "Every item of the file, in its order"},
    )
