"""The log of a schedule's edits."""

from marshmallow import fields

from scheduler_app.api.json_types import View
from scheduler_app.api.wire.field_types import Instant
from scheduler_app.api.wire.output_schema import OmitNone
from scheduler_app.api.wire.paging import Listed
from scheduler_app.domain.edit_record import EditRecord


class EditOutput(OmitNone):
    """One edit. Its fields are those that it changed, with masks in the place of secrets."""

    id = fields.String(required=True, metadata={"description": "The edit's id"})
    at = Instant(metadata={"description": "When it was made"})
    what = fields.String(
        metadata={"description": "What was done: `edited`, `paused`, `resumed`, `deleted`, `signed`, …"}
    )
    version = fields.Integer(metadata={"description": "The schedule's version after it"})
    by = fields.String(metadata={"description": "The name of the API key, where it has one"})
    note = fields.String(metadata={"description": "Why, in a person's words (`X-Scheduler-Note`)"})
    before = fields.Dict(metadata={"description": "The fields that it changed, as they were"})
    after = fields.Dict(metadata={"description": "The same fields as it made them"})
    secrets_changed = fields.Boolean(
        metadata={"description": "Whether values were changed that masks stand for; absent for no"}
    )
    reason = fields.String(metadata={"description": "Why its stored document cannot be read"})


class EditPage(Listed):
    edits = fields.List(
        fields.Nested(EditOutput), required=True, metadata={"description": "Newest first; 200 are kept"}
    )


def edit_shown(edit: EditRecord) -> View:
    """The fields of EditOutput."""
    if edit.corrupt is not None:
        return {"id": edit.id, "reason": edit.corrupt}
    return {
        "id": edit.id,
        "at": edit.at,
        "what": edit.what,
        "version": edit.version or None,
        "by": edit.by or None,
        "note": edit.note or None,
        "before": dict(edit.before),
        "after": dict(edit.after),
        "secrets_changed": edit.secrets_changed or None,
    }
