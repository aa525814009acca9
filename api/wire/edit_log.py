"""The edits of all schedules in one list."""

from marshmallow import validate

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import View
from scheduler_app.api.wire.field_types import Instant
from scheduler_app.api.wire.paging import Listed, Paging
from scheduler_app.api.wire.schedule import EditOutput, edit_shown
from scheduler_app.domain.audit import AuditLine


class EditLogQuery(Paging):
    """Which edits."""

    since = Instant("Made at this instant or later", data_key="from")
    until = Instant("Made before this instant", data_key="to")
    by = fields.String("Made by the API key of this name", validate=validate.Length(1, 64))


class LoggedEdit(EditOutput):
    """An edit of one of all schedules."""

    schedule_id = fields.String("The schedule's id", required=True)


class EditLogPage(Listed):
    edits = fields.List(LoggedEdit, "Newest first", required=True)


def logged_edit_shown(edit: AuditLine) -> View:
    """The fields of LoggedEdit."""
    return edit_shown(edit) | {"schedule_id": edit.resource_name}
