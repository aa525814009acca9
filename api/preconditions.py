"""Conditional requests (RFC 9110, 13): ETag, If-Match, If-None-Match."""

import re
import zlib

from flask import g, request

from scheduler_app.api.json_types import View
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire.presenters import shown
from scheduler_app.domain.errors import NotFound, StaleVersion
from scheduler_app.usecases.upsert import Conditions

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


def put_conditions(schedule_id: str) -> Conditions:
    """What a PUT requires to find: no schedule (`If-None-Match: *` or `?if-absent`), any schedule
    (`If-Match: *`) or one version of it (If-Match). Raises StaleVersion."""
    if request.if_none_match.star_tag or g.write_query.get("if_absent") is not None:
        return Conditions(absent=True)
    try:
        if "If-None-Match" in request.headers:
            tag = etag(shown(services().manager.get(schedule_id, tenant=tenant()), services().now()))
            if unchanged(tag):
                raise StaleVersion(f"If-None-Match names the schedule as it is, {tag}")
        version = version_wanted(schedule_id)
    except NotFound:
        if "If-Match" not in request.headers:
            return Conditions()
        raise StaleVersion(f"If-Match asks for a schedule {schedule_id}, and there is none") from None
    return Conditions(version=version, present=request.if_match.star_tag)


def version_wanted(schedule_id: str) -> int | None:
    """The version that If-Match names; None without one. Raises NotFound, StaleVersion.

    Of an ETag only the version counts: a next occurrence that has moved on is no edit that this request could
    overwrite. `"3"` is accepted beside the whole tag. Weak tags match nothing (RFC 9110, 13.1.1).
    """
    given = request.if_match
    if "If-Match" not in request.headers or given.star_tag:
        return None
    # Werkzeug reads the empty tag, `""`, as None.
    matches = [_VERSION.match(tag or "") for tag in given.as_set(include_weak=False)]
    versions = {int(match[1]) for match in matches if match}
    if len(versions) == 1:
        return versions.pop()
    current = services().manager.get(schedule_id, tenant=tenant()).version
    if current not in versions:
        raise StaleVersion(f"If-Match does not name the schedule's version, {current}: give its ETag")
    return current
