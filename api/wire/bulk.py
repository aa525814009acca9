"""Many schedules in one request: creating, importing an iCalendar file, editing all that match a filter."""

import re
from typing import Any, ClassVar

from marshmallow import ValidationError, validate

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded
from scheduler_app.api.wire.field_types import BoundedList, Cursor, Instant, check_visible
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OutputSchema, Problem, edit_result
from scheduler_app.api.wire.paging import MAX_LIMIT, PageSelection, Skipped, call_limit
from scheduler_app.api.wire.schedule import NewSchedule, ScheduleChoice, ScheduleInput, note_missing_action
from scheduler_app.api.wire.schedule_fields import CREATION_FIELDS
from scheduler_app.domain.resources.schedule import MAX_TIMEZONE
from scheduler_app.domain.schedule import MAX_NOTE
from scheduler_app.domain.triggers import FIELDS as TRIGGER_FIELDS
from scheduler_app.ics import MAX_ITEMS
from scheduler_app.ics.calendar_file import MAX_CHARACTERS

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
        NewSchedule,
        "Each is accepted or refused by itself",
        required=True,
        validate=validate.Length(1, MAX_BULK),
    )


class BulkResult(OutputSchema):
    """The result of the item at the same place in the request."""

    status = fields.Integer("The status that a request of its own would have", required=True, example=201)
    id = fields.String("The id of the new schedule")
    next_run_at = Instant("Its next occurrence")
    signing_secret = fields.String("Shown only in this answer, if `signing` was asked for")
    problem = fields.Nested(Problem, "Why it was refused")


class BulkOutput(OutputSchema):
    created = fields.Integer("How many schedules were created", required=True)
    refused = fields.Integer("How many were refused", required=True)
    results = fields.List(BulkResult, "One for each item, in the order of the request", required=True)


class EditFilter(ScheduleChoice, PageSelection):
    """Which schedules to edit, and how many in one call."""

    FILTERS: ClassVar = {name: field.data_key or name for name, field in ScheduleChoice().fields.items()}
    THINGS = "schedule"

    limit = call_limit(100, MAX_LIMIT)


class PauseInput(InputSchema):
    """How long to pause, and why. Nothing has to be given."""

    body_optional = True

    until = Instant(
        "When the pause ends by itself, within two seconds; occurrences before it are not"
        " made up for. Default: it lasts until a resume"
    )
    note = fields.String(
        f"Why, in up to {MAX_NOTE} characters; answers show it",
        validate=[validate.Length(1, MAX_NOTE), check_visible],
    )


class PauseFilter(EditFilter, PauseInput):
    """Which schedules to pause, how many in one call, how long and why. One that is paused already is left
    as it is."""


class _EditedPage(OutputSchema):
    skipped = fields.List(Skipped, "The first 100 schedules that were not edited", required=True)
    skipped_omitted = fields.Integer("How many more there are; absent if none")
    next_cursor = Cursor(
        "Give it as `cursor`, with the same filter, for the next page; null at the end."
        " Before the end a page may be shorter than `limit`: one call lasts some 5 seconds.",
        required=True,
        allow_none=True,
    )


class PausedPage(_EditedPage):
    paused = fields.Integer("How many were paused", required=True)


class ResumedPage(_EditedPage):
    resumed = fields.Integer("How many were resumed", required=True)


class DeletedPage(_EditedPage):
    deleted = fields.Integer("How many were deleted", required=True)


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
        f"An iCalendar file (RFC 5545) with up to {MAX_ITEMS:,} events and to-dos",
        required=True,
        validate=validate.Length(1, MAX_CHARACTERS),
    )
    schedule = fields.Nested(
        ImportedSchedule,
        "What all of them call, and how: a schedule without id, name, trigger and timezone",
        required=True,
    )
    timezone = fields.String(
        "The IANA zone of times that name none, where the calendar has no X-WR-TIMEZONE",
        load_default="UTC",
        validate=validate.Length(1, MAX_TIMEZONE),
        example="Europe/Zurich",
    )
    id_prefix = fields.String(
        "What the ids begin with; the rest is derived from each event's UID. Take another"
        " one to import the same events once more, for another receiver",
        load_default="ics",
        validate=validate.Regexp(
            _PREFIX, error="must be 1 to 32 letters, digits and hyphens, and begin with no hyphen"
        ),
        metadata={"pattern": "^[a-zA-Z0-9][a-zA-Z0-9-]{0,31}$"},
    )
    update = fields.JsonBoolean(
        "Change the schedules that an earlier import has made of these events and that"
        " differ, and delete those of what an event says no more: it is cancelled or over, or is one"
        " series again. An event that is not in the file keeps its schedule",
        load_default=False,
    )


class ImportedResult(BulkResult):
    """What became of one series of an event."""

    result = edit_result("What was done to its schedule; absent where it was refused")
    recurrence = fields.String("The series as an RFC 5545 recurrence")
    timezone = fields.String("The zone of its DTSTART")
    warnings = fields.List(fields.String(), "What may surprise the person who wrote the event")


class ItemOutput(OutputSchema):
    """An event or a to-do with what overrides its occurrences, or another component of the file."""

    component = fields.String(required=True, example="VEVENT")
    uid = fields.String("Its UID")
    name = fields.String("Its SUMMARY, else its UID")
    result = fields.String(
        "`unchanged`: an earlier import has made the same of it; `over`: all of its"
        " occurrences have passed; `ignored`: it says nothing that could"
        " be called, or is cancelled or completed",
        required=True,
        validate=validate.OneOf(["created", "changed", "unchanged", "over", "ignored", "refused"]),
    )
    reason = fields.String("Why nothing was created")
    schedules = fields.List(
        ImportedResult,
        "One for each series: more than one where the event was changed from some"
        " occurrence on (RANGE=THISANDFUTURE)",
        required=True,
    )
    removed = fields.List(
        fields.String(), "Ids of schedules that `update` deleted; absent where there are none"
    )
    ignored = fields.List(
        fields.String(), "Properties and components of it that a callback has no use for", required=True
    )
    notes = fields.List(
        fields.String(),
        "How it was read where that is not plain, such as the zone of a Windows name",
        required=True,
    )


class ImportOutput(OutputSchema):
    created = fields.Integer("How many schedules were created", required=True)
    changed = fields.Integer("How many were changed", required=True)
    unchanged = fields.Integer("How many were the same already", required=True)
    removed = fields.Integer("How many were deleted", required=True)
    refused = fields.Integer("How many items or series were refused", required=True)
    over = fields.Integer("How many items are over", required=True)
    ignored = fields.Integer("How many items were ignored", required=True)
    items = fields.List(ItemOutput, "Every item of the file, in its order", required=True)
