"""/api/v1/audit: who did what to what, when, and why."""

import json
from itertools import chain
from typing import Final

from flask import Response

from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.audit import (
    AuditExportQuery,
    AuditLineOutput,
    AuditPage,
    AuditQuery,
    AuditVerification,
    AuditVerificationQuery,
    audit_filter,
    audit_verification_shown,
    line_shown,
)
from scheduler_app.api.wire.paging import listed, window
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.audit import AuditLine
from scheduler_app.store.paging import PageRequest

audit_blueprint = ApiBlueprint("audit", "/api/v1/audit", "Who did what, when and why")
_LINE = AuditLineOutput()
NDJSON: Final = "application/x-ndjson"
LINES: Final = {
    "type": "string",
    "description": "A JSON object a line, newest first, each as the items of `lines` of `GET /api/v1/audit`",
}


@audit_blueprint.route("", methods=["GET"], scope=KeyScope.ADMIN)
@audit_blueprint.arguments(AuditQuery, location="query")
@audit_blueprint.response(200, AuditPage)
def list_audit(query: Loaded) -> View:
    """List who did what to what, when and why, newest first

    Each act that changes something has a line, which is written with the change. Messages and triggers have
    theirs in their own events.
    """
    asked, which = window(query), audit_filter(query)
    found = services().audit_questions.page(tenant(), asked, which)
    lines = [line_shown(each, to_installation=which.of_installation) for each in found.rows]
    return listed("lines", lines, asked, found)


@audit_blueprint.route("/export", methods=["GET"], scope=KeyScope.ADMIN)
@audit_blueprint.arguments(AuditExportQuery, location="query")
@audit_blueprint.response(200, LINES, content_type=NDJSON)
def export_audit(query: Loaded) -> Response:
    """Export the lines, newest first: one JSON object in each line of the answer"""
    return audit_export(query)


def audit_export(query: Loaded) -> Response:
    """The lines that a query asks for, as a file."""
    asked = PageRequest(limit=1, since=query.get("since"), until=query.get("until"))
    which = audit_filter(query)
    pages = services().audit_questions.pages(tenant(), asked, which)
    # The first page is read here: if MongoDB does not answer, the status can still say so.
    begun = chain([next(pages)], pages)

    def written(lines: list[AuditLine]) -> str:
        shown = (_LINE.dump(line_shown(each, to_installation=which.of_installation)) for each in lines)
        return "".join(json.dumps(each, ensure_ascii=False, separators=(",", ":")) + "\n" for each in shown)

    return Response(map(written, begun), mimetype=NDJSON)


@audit_blueprint.route("/verification", methods=["GET"], scope=KeyScope.ADMIN)
@audit_blueprint.arguments(AuditVerificationQuery, location="query")
@audit_blueprint.response(200, AuditVerification)
def verify_audit(query: Loaded) -> View:
    """Read the audit from its beginning, and tell whether each line is as it was written"""
    return audit_verification_shown(*services().audit_questions.verify(tenant(), query["after"]))
