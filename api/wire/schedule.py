"""A schedule as requests give it and as answers and exports show it, with its edits and its signing secret.

The schemas are made from the table in `wire/schedule_fields`.
"""

from collections.abc import Callable
from datetime import datetime
from typing import ClassVar

from flask import g
from marshmallow import ValidationError, post_load, validate, validates, validates_schema

from scheduler_app import json_fields as fields
from scheduler_app.actions.http import check_header
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import caller, services
from scheduler_app.api.wire.field_types import ID, SCHEDULE_WORDS, Instant
from scheduler_app.api.wire.input_schema import InputSchema, WriteQuery
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema, attributes, edit_result, without_none
from scheduler_app.api.wire.paging import Listed
from scheduler_app.api.wire.promise import PromiseOutput, promise_flag
from scheduler_app.api.wire.resource_fields import draft_values, view_of
from scheduler_app.api.wire.schedule_fields import (
    BODY_FIELDS,
    CREATION_FIELDS,
    EDIT_FIELDS,
    EXPORTED,
    LAST_OUTCOMES,
    OUTPUT_FIELDS,
    READERS,
    SHOWN,
    ShownSchedule,
)
from scheduler_app.domain.audit import AuditLine
from scheduler_app.domain.deliverable import DEFAULT_OVERLAP_SECONDS, MAX_OVERLAP_SECONDS
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.ids import WholeId, name_of
from scheduler_app.domain.recurrence.zones import local_in
from scheduler_app.domain.resources.schedule import SCHEDULE, SCHEDULE_FIELDS, STATES
from scheduler_app.domain.schedule import MAX_NAME, Schedule, ScheduleState
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.domain.triggers import FIELDS as TRIGGER_FIELDS
from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.events.events import EventRecord
from scheduler_app.store.schedules.documents import CorruptSchedule

MAX_HEADER_BYTES = 16 * 1024


class CallbackInput(InputSchema):
    """Checks a callback's fields where they depend on each other, or on this deployment."""

    #: One field for each way to give a body; at most one of them may be given.
    BODIES: ClassVar[tuple[str, ...]]
    #: Fields of names and values that become headers, and what is put before their names.
    HEADERS: ClassVar[dict[str, str]] = {"headers": ""}

    @validates_schema
    def check_callback(self, data: Loaded, **_: object) -> None:
        problems: dict[str, list[str]] = {}
        if "callback_url" in data:
            note_problem(problems, "callback_url", services().guard.check_url, data["callback_url"])
        self.check_headers_and_body(data, problems)
        self.check_receiver(data, problems)
        if problems:
            raise ValidationError(problems)

    def check_headers_and_body(self, data: Loaded, problems: dict[str, list[str]]) -> None:
        """Notes what is wrong with them in `problems`."""
        for field, prefix in self.HEADERS.items():
            if field not in data:
                continue
            for name, value in data[field]:
                note_problem(problems, field, check_header, prefix + name, value)
            if sum(len(name) + len(value) for name, value in data[field]) > MAX_HEADER_BYTES:
                problems.setdefault(field, []).append(
                    f"must not exceed {MAX_HEADER_BYTES} characters together"
                )
        given = [field for field in self.BODIES if field in data]
        if len(given) > 1:
            problems[given[1]] = [f"give one of {', '.join(self.BODIES)}, not {len(given)}"]

    def check_receiver(self, data: Loaded, problems: dict[str, list[str]]) -> None:
        """Notes a problem where it is not said whom to call; an edit need not say it."""


def note_problem(
    problems: dict[str, list[str]], field: str, checker: Callable[..., None], *args: object
) -> None:
    """Notes in `problems` why `checker` refuses a field."""
    try:
        checker(*args)
    except InvalidField as error:
        problems.setdefault(field, []).append(error.message)


def note_missing_receiver(data: Loaded, problems: dict[str, list[str]]) -> None:
    """Notes a problem where neither a URL nor a destination is given."""
    if "callback_url" not in data and data.get("destination") is None:
        problems["callback_url"] = ["is missing: give it, or the name of a destination"]


class PutQuery(WriteQuery):
    """The parameters of `PUT /api/v1/schedules/{id}`."""

    if_absent = fields.String(
        "Only create: where the schedule exists already, the answer is a 412",
        data_key="if-absent",
        validate=validate.OneOf(["", "true"]),
    )
    promise = promise_flag()


class ScheduleInput(CallbackInput):
    """What PUT takes: any of these fields."""

    BODIES = BODY_FIELDS

    class Meta(InputSchema.Meta):
        include = EDIT_FIELDS

    @validates_schema
    def check_tags_of_key(self, data: Loaded, **_: object) -> None:
        """What a key with tags makes has one of them, and keeps one. An edit that gives no tags takes none
        away."""
        tags, is_edit = caller().tags, not isinstance(self, NewSchedule) and not g.get("makes_schedule")
        if not tags or (is_edit and "tags" not in data):
            return
        if tags.isdisjoint(data.get("tags") or ()):
            raise ValidationError(
                f"must have {caller().tags_in_words}: your key is for such schedules alone", "tags"
            )

    @post_load
    def draft(self, data: Loaded, **_: object) -> tuple[WholeId | None, ScheduleDraft]:
        """The id that the body names, and everything else that it gives."""
        schedule_id = data.pop("id", None)
        trigger = {name: data.pop(name) for name in TRIGGER_FIELDS if name in data}
        values = draft_values(SCHEDULE_FIELDS, data, READERS)
        if trigger:
            values["trigger"] = trigger
        return schedule_id, ScheduleDraft(**values)


class NewSchedule(ScheduleInput):
    """What POST takes."""

    class Meta(InputSchema.Meta):
        include = CREATION_FIELDS

    def check_receiver(self, data: Loaded, problems: dict[str, list[str]]) -> None:
        note_missing_action(data, problems)

    @validates("id")
    def check_id(self, value: str, **_: object) -> None:
        name = name_of(value)
        if name in SCHEDULE_WORDS:
            raise ValidationError(f"{name} is a word of this API's paths; take another")


def note_missing_action(data: Loaded, problems: dict[str, list[str]]) -> None:
    """Notes a problem where nothing says what a new schedule does: no URL, no destination and no action."""
    if "action" not in data:
        note_missing_receiver(data, problems)


def check_same_id(body_id: WholeId | None, path_id: WholeId) -> None:
    """Raises InvalidField where a body names another schedule than its path, or a path what can be no id."""
    name = name_of(path_id)
    if body_id is not None and body_id != path_id:
        raise InvalidField(
            "id", f"is {name_of(body_id)}, but the path names {name[:64]}: leave it out, or make them agree"
        )
    if not ID.fullmatch(name):
        raise InvalidField("id", "the path must name the schedule by 1 to 64 letters, digits and hyphens")


class ScheduleOutput(OutputSchema):
    """A schedule. Header values, the values of the URL's query and the body are masked."""

    class Meta(OutputSchema.Meta):
        include = OUTPUT_FIELDS


class Created(ScheduleOutput):
    signing_secret = fields.String("Shown only in this answer, if this request generated it")
    promise = fields.Nested(PromiseOutput, "Where the request asks for it")


class Edited(Created):
    message = fields.String("The result in words", example="Schedule updated successfully.")
    result = edit_result()


class ScheduleChoice(InputSchema):
    """A filter of schedules: they must match every field given."""

    state = fields.String("The state they are in", validate=validate.OneOf(STATES))
    name = fields.String("The whole name", validate=validate.Length(1, MAX_NAME))
    text = fields.String(
        "A part of the name, whatever the case of its letters",
        data_key="name_contains",
        validate=validate.Length(1, MAX_NAME),
    )
    tag = fields.String("One of its tags", validate=validate.Length(1, 64))
    last_outcome = fields.String(
        "How their last run ended; `retrying`: another attempt of it follows",
        validate=validate.OneOf(LAST_OUTCOMES),
    )


def schedule_shown(schedule: Schedule | CorruptSchedule, now: datetime) -> View:
    """The fields of ScheduleOutput without those that have no value. For a document that cannot be read, its
    id and the reason."""
    if isinstance(schedule, CorruptSchedule):
        return {
            "id": name_of(schedule.schedule_id),
            "state": ScheduleState.ERROR.value,
            "reason": schedule.reason,
        }
    return view_of(SHOWN, ShownSchedule(schedule, now))


def schedule_exported(schedule: Schedule | CorruptSchedule, now: datetime, secret_box: SecretBox) -> View:
    """The body with which POST creates the schedule again, without fields that have no value or an empty one.

    Values are masked; `sealed` holds them, encrypted with the key of `secret_box`. For a document that cannot
    be read, its id and the reason: no API takes that for a schedule, and nothing is left out silently.
    """
    if isinstance(schedule, CorruptSchedule):
        return {"id": name_of(schedule.schedule_id), "reason": schedule.reason}
    source = ShownSchedule(schedule, now, secret_box)
    values = ((row.name, _exported(row.name, source)) for row in SCHEDULE if row.given)
    return {name: value for name, value in values if value not in (None, [], {})}


def _exported(name: str, source: ShownSchedule) -> object:
    """The value as JSON has it."""
    value = (EXPORTED.get(name) or SHOWN[name])(source)
    return (
        value
        if value is None or name not in OUTPUT_FIELDS
        else OUTPUT_FIELDS[name]._serialize(value, name, source)
    )


def time_shown(instant: datetime, timezone: str) -> View:
    """An instant as an occurrence is shown, with its local time in an IANA zone."""
    return {"run_time": instant, "local": local_in(instant, timezone).isoformat(), "dst": None}


def event_shown(event: EventRecord) -> View:
    """The fields of EventOutput without those that have no value."""
    view = event._asdict()
    view["_id"] = name_of(view.pop("id"))
    view["schedule_id"] = name_of(event.schedule_id) or None
    return without_none(view)


class EditedTimesOutput(OutputSchema):
    """The occurrences that an edit moved, after its instant."""

    added = fields.List(Instant(), "The first ones that it added", required=True)
    removed = fields.List(Instant(), "The first ones that it removed", required=True)
    added_count = fields.Integer("How many it added, up to `until`", required=True)
    removed_count = fields.Integer("How many it removed, up to `until`", required=True)
    until = Instant("How far both rules were compared; null: to their ends", required=True, allow_none=True)


class EditOutput(OmitNone):
    """One edit. Its fields are those that it changed, with masks in the place of secrets."""

    id = fields.String("The edit's id", required=True)
    at = Instant("When it was made")
    what = fields.String("What was done: `edited`, `paused`, `resumed`, `deleted`, `signed`, …")
    version = fields.Integer("The schedule's version after it")
    by = fields.String("The name of the API key, where it has one")
    note = fields.String("Why, in a person's words (`Scheduler-Reason`)")
    before = fields.Dict("The fields that it changed, as they were")
    after = fields.Dict("The same fields as it made them")
    secrets_changed = fields.Boolean("Whether values were changed that masks stand for; absent for no")
    times = fields.Nested(
        EditedTimesOutput, "The occurrences that it moved; absent where it left them as they were"
    )
    reason = fields.String("Why its stored document cannot be read")


class EditPage(Listed):
    edits = fields.List(EditOutput, "Newest first", required=True)


def edit_shown(edit: AuditLine) -> View:
    """The fields of EditOutput."""
    if edit.corrupt is not None:
        return {"id": edit.id, "reason": edit.corrupt}
    return {
        **attributes(edit, "id", "at", "what"),
        "version": edit.version or None,
        "by": edit.by or None,
        "note": edit.act.reason or None,
        "before": dict(edit.before),
        "after": dict(edit.after),
        "secrets_changed": edit.secrets_changed or None,
        "times": edit.times,
    }


class SigningInput(InputSchema):
    body_optional = True
    overlap_seconds = fields.Integer(
        "How long the replaced secret signs beside the new one",
        strict=True,
        load_default=DEFAULT_OVERLAP_SECONDS,
        validate=validate.Range(0, MAX_OVERLAP_SECONDS),
    )


class SigningOutput(OmitNone):
    signing_secret = fields.String(
        "`whsec_` and base64 (Standard Webhooks). Shown only in this answer: a repeated"
        " request with the same Idempotency-Key is answered with a mask in its place.",
        required=True,
        example="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    )
    signing_since = Instant("When the secret was generated", required=True)
    signing_overlap_until = Instant("Until when an older secret signs as well")
