"""The audit as a page: who changed what, newest first."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from flask import Response, render_template, url_for
from marshmallow import validate

from scheduler_app import json_fields as fields
from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.frame import blueprint
from scheduler_app.api.routes.audit import audit_export
from scheduler_app.api.services import caller, services, tenant
from scheduler_app.api.wire.audit import RESOURCE, AuditExportQuery, audit_filter, line_shown
from scheduler_app.api.wire.field_types import Cursor
from scheduler_app.domain.act import ActorKind
from scheduler_app.domain.audit import AuditLine
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store.paging import PageRequest

ROWS: Final = 50
#: The kinds of resources that have pages of their own, and how these name them.
_PAGES: Final = {"schedule": ("schedule", "schedule_id"), "destination": ("edit_destination", "name")}
#: Where people know a resource by something else than its id: the field in which a line may have that.
_NAMED_BY: Final = {"schedule": "name", "deletion": "tag", "key": "name"}
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
    return render_template(
        "changes.html",
        rows=changes_shown(found.rows),
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


def changes_shown(lines: Sequence[AuditLine]) -> list[dict[str, Any]]:
    """The lines as pages show them; one question finds the names of all their schedules."""
    of_schedules = {each.change.resource for each in lines if each.change.kind == "schedule"}
    known = services().schedules.even_deleted(of_schedules)
    return [_row(each, known) for each in lines]


def _row(line: AuditLine, known: Mapping[str, Schedule]) -> dict[str, Any]:
    """A line with what its resource is called, a link to it, and whether it can be taken back."""
    shown: dict[str, Any] = {**line_shown(line, to_installation=caller().tenant is None)}
    if "wrong" in shown:
        return shown
    kind, resource = line.change.kind, line.change.resource
    is_of_schedule = kind == "schedule"
    changed = sorted(line.before.keys() | line.after.keys())
    is_undoable = is_of_schedule and line.what not in _FINAL and not line.change.difference.is_cut
    return {
        **shown,
        "kind": kind,
        "own_id": line.resource_name,
        "name": _name(line, known.get(resource) if is_of_schedule else None),
        "whole": resource,
        "link": _link(kind, resource, known),
        "undo": is_undoable and bool(line.before or line.after) and line.act.by.kind != ActorKind.SCHEDULER,
        "names": [] if changed == ["name"] and line.what in _FINAL else changed,
    }


def _name(line: AuditLine, schedule: Schedule | None) -> str:
    """What a schedule is called now, or was where it is gone; of others what tells people more than the id.
    Empty where nothing says so."""
    # Another one may have the id of a deleted one.
    if schedule is not None and line.what != "deleted":
        return schedule.name
    field = _NAMED_BY.get(line.change.kind, "")
    named = line.after.get(field, line.before.get(field))
    return named if isinstance(named, str) else schedule.name if schedule is not None else ""


def _link(kind: str, resource: str, known: Mapping[str, Schedule]) -> str | None:
    """The URL of the resource's page; None for a kind without pages, and for a deleted schedule."""
    if kind not in _PAGES:
        return None
    if kind == "schedule":
        schedule = known.get(resource)
        if schedule is None or schedule.state is ScheduleState.DELETED:
            return None
    endpoint, named = _PAGES[kind]
    named_by: dict[str, Any] = {named: resource}
    return url_for(f"{PAGES}.{endpoint}", **named_by)
