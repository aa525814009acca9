"""Edits: conditional requests (RFC 9110, 13: ETag, If-Match), what the audit tells of them, and reverts.

It tells of an edit in the words of the API: the schedule's fields before and after, masked as in answers.
"""

import re
import zlib
from dataclasses import replace
from datetime import datetime
from typing import Any

from flask import g, request
from marshmallow import ValidationError, fields

from scheduler_app.actions.registry import kind_of
from scheduler_app.api import request_limits
from scheduler_app.api.acts import for_reason
from scheduler_app.api.json_types import View
from scheduler_app.api.problems import problem_of
from scheduler_app.api.services import services
from scheduler_app.api.wire.field_types import Headers
from scheduler_app.api.wire.schedule import ScheduleInput, ScheduleOutput, schedule_shown
from scheduler_app.api.wire.schedule_fields import EDIT_FIELDS
from scheduler_app.domain.audit import AuditLine, Difference, difference_of
from scheduler_app.domain.errors import Conflict, NotFound, StaleVersion
from scheduler_app.domain.http_action import HttpAction
from scheduler_app.domain.ids import WholeId, name_of
from scheduler_app.domain.masking import split_query
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.triggers import BY_NAME
from scheduler_app.usecases.deeds.creation import Preconditions
from scheduler_app.usecases.questions.change_preview import edited_times

_VERSION = re.compile(r"(\d{1,15})(-[0-9a-f]{8})?\Z")


def etag(view: View) -> str:
    """The ETag of a schedule's view, `"3-9f1c2a40"`: the version, which edits raise, and a digest of what
    changes without an edit. So a client that polls with If-None-Match notices a finished schedule."""
    moving = repr(
        [view.get(name) for name in ("state", "next_run_at", "last_run", "reason", "revision", "warnings")]
    )
    return f'"{view["version"]}-{zlib.crc32(moving.encode()):08x}"'


def unchanged(tag: str) -> bool:
    """Whether If-None-Match names `tag`, by the weak comparison (RFC 9110, 8.8.3.2)."""
    return request.if_none_match.contains_weak(tag.strip('"'))


def put_conditions(schedule_id: WholeId) -> Preconditions:
    """What a PUT requires to find: no schedule (`If-None-Match: *` or `?if-absent`), any schedule
    (`If-Match: *`) or one version of it (If-Match). Raises StaleVersion."""
    asks_absence = request.if_none_match.star_tag or g.write_query.get("if_absent") is not None
    if asks_absence or g.get("makes_schedule"):
        return Preconditions(absent=True)
    try:
        if "If-None-Match" in request.headers:
            tag = etag(schedule_shown(services().manager.get(schedule_id), services().now()))
            if unchanged(tag):
                raise StaleVersion(f"If-None-Match names the schedule as it is, {tag}")
        version = version_wanted(schedule_id)
    except NotFound:
        if "If-Match" not in request.headers:
            return Preconditions()
        name = name_of(schedule_id)
        raise StaleVersion(f"If-Match asks for a schedule {name}, and there is none") from None
    return Preconditions(version=version, present=request.if_match.star_tag)


def named_versions() -> set[int]:
    """The versions in the ETags of If-Match. Nothing else of them counts: `"3"` is accepted beside the whole
    tag. Weak tags match nothing (RFC 9110, 13.1.1)."""
    # Werkzeug reads the empty tag, `""`, as None.
    matches = [_VERSION.match(tag or "") for tag in request.if_match.as_set(include_weak=False)]
    return {int(match[1]) for match in matches if match}


def version_wanted(schedule_id: WholeId) -> int | None:
    """The version that If-Match names; None without one. Raises NotFound, StaleVersion.

    A next occurrence that has moved on was not edited: this request overwrites nothing by it.
    """
    if "If-Match" not in request.headers or request.if_match.star_tag:
        return None
    versions = named_versions()
    if len(versions) == 1:
        return versions.pop()
    current = services().manager.get(schedule_id).version
    if current not in versions:
        raise StaleVersion(f"If-Match does not name the schedule's version, {current}: give its ETag")
    return current


def describe_edit(what: str, before: Schedule, after: Schedule, now: datetime) -> Difference:
    """What an edit of a schedule changes, in the words of the API."""
    found = difference_of(_fields(before, now), _fields(after, now))
    secrets = None
    if _secrets_changed(before, after, {*found.before, *found.after}):
        digest = services().secret_box.digest
        was, will = (
            digest(before.id, kind_of(each.action).to_document(each.action)) for each in (before, after)
        )
        secrets = (was, will)
    times = edited_times(before, after) if what == "edited" else None
    return replace(found, secrets=secrets, times=times)


def _fields(schedule: Schedule, now: datetime) -> View:
    """What an edit can change, as answers show it: in JSON's types, which are those that can be kept."""
    # The reason of a state follows from how it came about: no edit of a person gives it.
    shown: View = _OUTPUT.dump(schedule_shown(schedule, now))
    return {name: value for name, value in shown.items() if name in EDIT_FIELDS and name != "reason"}


def _secrets_changed(before: Schedule, after: Schedule, differ: set[str]) -> bool:
    """Whether the action differs in what answers mask."""
    if before.action == after.action:
        return False
    was, will = before.action, after.action
    if isinstance(was, HttpAction) and isinstance(will, HttpAction) and replace(was, url=will.url) == will:
        return split_query(was.url)[1] != split_query(will.url)[1]
    return not differ & {"method", "destination", "action"} or bool(differ & {"headers", "body", "json"})


_INPUT = ScheduleInput()
_OUTPUT = ScheduleOutput()


def revert(schedule_id: WholeId, edit_id: str, version: int | None = None) -> Schedule:
    """Raises NotFound, Conflict, InvalidField, StaleVersion, and Problem where a value is no longer valid."""
    assembly = services()
    edit = assembly.audit.get(edit_id, "schedule", schedule_id)
    if edit is None or edit.what == "created":
        raise NotFound(f"there is no edit {edit_id[:64]} of {name_of(schedule_id)}")
    if not edit.before and not edit.after:
        raise Conflict("there is nothing to take back: that edit changed no field that answers show")
    if edit.what == "deleted":
        raise Conflict("a deletion cannot be taken back: the schedule's secrets are gone")
    if edit.change.difference.is_cut:
        raise Conflict("that edit cannot be taken back: its values were too long to be kept")
    try:
        _, draft = _INPUT.load(revert_body(edit))
    except ValidationError as error:
        raise problem_of(error) from None
    with for_reason(f"Reverts the edit of {edit.at:%Y-%m-%d %H:%M:%S} UTC"):
        return assembly.manager.edit(
            schedule_id, draft, assembly.now(), version=version, hops=request_limits.request_hops()
        )


def revert_body(edit: AuditLine) -> View:
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
