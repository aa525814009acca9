"""Takes an edit of a schedule back: its fields become again what they were before it."""

from typing import Any

from flask import g
from marshmallow import ValidationError, fields

from scheduler_app.api import hop_limit
from scheduler_app.api.json_types import View
from scheduler_app.api.problems import of_validation
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire.field_types import Headers
from scheduler_app.api.wire.schedule_fields import EDIT_FIELDS
from scheduler_app.api.wire.schedule_input import ScheduleInput
from scheduler_app.domain.edit_record import EditRecord
from scheduler_app.domain.errors import Conflict, NotFound
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.triggers import BY_NAME

_INPUT = ScheduleInput()


def revert(schedule_id: str, edit_id: str, version: int | None = None) -> Schedule:
    """Raises NotFound, Conflict, InvalidField, StaleVersion, and Problem where a value is no longer valid."""
    made = services()
    edit = made.store.edits.get(edit_id, schedule_id, tenant=tenant())
    if edit is None:
        raise NotFound(f"there is no edit {edit_id[:64]} of {schedule_id}")
    if not edit.before and not edit.after:
        raise Conflict("there is nothing to take back: that edit changed no field that answers show")
    if edit.what == "deleted":
        raise Conflict("a deletion cannot be taken back: the schedule's secrets are gone")
    try:
        _, draft = _INPUT.load(body_of(edit))
    except ValidationError as error:
        raise of_validation(error) from None
    g.edit_note = g.get("edit_note") or f"Reverts the edit of {edit.at:%Y-%m-%d %H:%M:%S} UTC"
    return made.manager.edit(
        schedule_id, draft, made.now(), tenant=tenant(), version=version, hops=hop_limit.request_hops()
    )


def body_of(edit: EditRecord) -> View:
    """The body of the PUT that takes the edit back."""
    body: dict[str, Any] = dict(edit.before)
    for name in edit.after.keys() - edit.before.keys():
        field = EDIT_FIELDS.get(name)
        if field is None:
            continue
        if isinstance(field, fields.List):
            body[name] = []
        elif isinstance(field, Headers):
            body[name] = {}
        elif field.allow_none and not (name in BY_NAME and BY_NAME.keys() & edit.before.keys()):
            body[name] = None
    return body
