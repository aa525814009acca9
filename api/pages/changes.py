"""The audit as a page: who changed what, newest first."""

from typing import Any, Final

from flask import Response, render_template, url_for
from marshmallow import validate

from scheduler_app import json_fields as fields
from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.frame import blueprint
from scheduler_app.api.routes.audit import audit_export
from scheduler_app.api.services import caller, services, tenant
from scheduler_app.api.wire.audit import RESOURCE, AuditExportQuery, audit_filter, line_shown
from scheduler_app.api.wire.field_types import Cursor
from scheduler_app.domain.ids import whole_id
from scheduler_app.store.paging import PageRequest

ROWS: Final = 50
#: The kinds of resources that have pages of their own, and how these name them.
_PAGES: Final = {"schedule": ("schedule", "schedule_id"), "destination": ("edit_destination", "name")}
#: What can be taken back: edits of schedules, with what they were before.
_FINAL: Final = ("created", "deleted", "finished", "set aside")


class ChangesQuery(forms.ActionResultQuery):
    who = fields.String(validate=validate.Length(max=200))
    resource = fields.String(
        validate=validate.Regexp(rf"({RESOURCE})?\Z", error="must be a kind, or a kind, a slash and a name")
    )
    cursor = Cursor()


@blueprint.get("/changes")
@forms.takes_query(ChangesQuery)
def changes(query: Loaded) -> str:
    given = {name: query[name] for name in ("who", "resource") if query.get(name)}
    window = PageRequest(limit=ROWS, after=query.get("cursor"))
    found = services().audit_questions.page(tenant(), window, audit_filter(given))
    rows = [_row(line_shown(each, to_installation=caller().tenant is None)) for each in found.rows]
    return render_template(
        "changes.html",
        rows=rows,
        given=given,
        onward=forms.next_page_query(found.next),
        done=query.get("done"),
    )


@blueprint.get("/changes/export")
@forms.takes_query(AuditExportQuery)
def export_changes(query: Loaded) -> Response:
    answer = audit_export(query)
    answer.headers["Content-Disposition"] = 'attachment; filename="changes.ndjson"'
    return answer


def _row(shown: View) -> dict[str, Any]:
    """A line as the page shows it: a link to its resource, and whether it can be taken back."""
    line: dict[str, Any] = {**shown}
    if "wrong" in line:
        return line
    kind, _, name = str(line["resource"]).partition("/")
    endpoint, named = _PAGES.get(kind, ("", ""))
    link = None
    if endpoint:
        named_by: dict[str, Any] = {named: whole_id(tenant(), name)}
        link = url_for(f"{PAGES}.{endpoint}", **named_by)
    is_undoable = kind == "schedule" and line["what"] not in _FINAL and not line["cut"]
    return {
        **line,
        "kind": kind,
        "name": name,
        "whole": whole_id(tenant(), name),
        "link": link,
        "undo": is_undoable and bool(line["before"] or line["after"]) and line["who"]["kind"] != "scheduler",
        "names": sorted(line["before"].keys() | line["after"].keys()),
    }
