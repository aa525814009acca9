"""A schedule as it is asked for: its fields checked one by one, and where they depend on each other."""

from marshmallow import ValidationError, fields, post_load, validate, validates

from scheduler_app.api.converters import SCHEDULE_WORDS
from scheduler_app.api.json_types import Loaded
from scheduler_app.api.wire.callback_input import CallbackInput, note_missing_receiver
from scheduler_app.api.wire.field_types import ID
from scheduler_app.api.wire.input_schema import InputSchema, WriteQuery
from scheduler_app.api.wire.schedule_fields import BODY_FIELDS, CREATION_FIELDS, EDIT_FIELDS, FIELDS
from scheduler_app.domain.draft import Draft
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.triggers import FIELDS as TRIGGER_FIELDS


class PutQuery(WriteQuery):
    """The parameters of `PUT /api/v1/schedules/{id}`."""

    if_absent = fields.String(
        data_key="if-absent",
        validate=validate.OneOf(["", "true"]),
        metadata={"description": "Only create: where the schedule exists already, the answer is a 412"},
    )


class ScheduleInput(CallbackInput):
    """What PUT takes: any of these fields."""

    BODIES = BODY_FIELDS

    class Meta(InputSchema.Meta):
        include = EDIT_FIELDS

    @post_load
    def draft(self, data: Loaded, **_: object) -> tuple[str | None, Draft]:
        """The id that the body names, and everything else that it gives."""
        schedule_id = data.pop("id", None)
        return schedule_id, Draft(**_draft_values(data))


class NewSchedule(ScheduleInput):
    """What POST takes."""

    class Meta(InputSchema.Meta):
        include = CREATION_FIELDS

    def check_receiver(self, data: Loaded, problems: dict[str, list[str]]) -> None:
        note_missing_action(data, problems)

    @validates("id")
    def check_id(self, value: str, **_: object) -> None:
        if value in SCHEDULE_WORDS:
            raise ValidationError(f"{value} is a word of this API's paths; take another")


def note_missing_action(data: Loaded, problems: dict[str, list[str]]) -> None:
    """Notes a problem where nothing says what a new schedule does: no URL, no destination and no action."""
    if "action" not in data:
        note_missing_receiver(data, problems)


def _draft_values(data: Loaded) -> Loaded:
    """The fields of a Draft, which has those of the trigger together. Raises ValidationError."""
    values: Loaded = {}
    for name, value in data.items():
        row = FIELDS[name]
        if name in TRIGGER_FIELDS:
            values.setdefault(row.draft_name, {})[name] = value
        else:
            values[row.draft_name] = row.read(value) if row.read else value
    return values


def check_same_id(body_id: str | None, path_id: str) -> None:
    """Raises InvalidField where a body names another schedule than its path, or a path what can be no id."""
    if body_id not in (None, path_id):
        raise InvalidField(
            "id", f"is {body_id}, but the path names {path_id[:64]}: leave it out, or make them agree"
        )
    if not ID.fullmatch(path_id):
        raise InvalidField("id", "the path must name the schedule by 1 to 64 letters, digits and hyphens")
