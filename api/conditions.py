"""Conditional requests (RFC 9110, 13): ETag, If-Match, If-None-Match."""

import re
import zlib
from typing import Any

from flask import g, request

from api.services import services
from api.tenancy import tenant
from api.views import shown
from scheduler_app.domain.errors import NotFound, StaleVersion
from scheduler_app.usecases.upsert import Conditions

_VERSION = re.compile(r"(\d{1,15})(-[0-9a-f]{8})?\Z")


def etag(view: dict[str, Any]) -> str:
    """`"3-9f1c2a40"`: the version, which people's edits raise, and a digest of what moves on by itself, so
    that somebody who polls with If-None-Match does not miss that a schedule has finished."""
    moving = repr(
        [view.get(name) for name in ("state", "next_run_at", "last_run", "reason", "revision", "warnings")]
    )
    return f'"{view["version"]}-{zlib.crc32(moving.encode()):08x}"'


def unchanged(tag: str) -> bool:
    """Whether the client has this already. Weak comparison, as for any cache."""
    return request.if_none_match.contains_weak(tag.strip('"'))


def put_conditions(schedule_id: str) -> Conditions:
    """What a PUT must find: nothing, by `If-None-Match: *` or `?if-absent`; something, or one version of it,
    by If-Match. Raises StaleVersion."""
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
    """The version that If-Match asks for; None when it asks for nothing. Only the version counts: that the
    next occurrence has moved on is no edit that an edit could overwrite. Raises NotFound, StaleVersion.

    `"3"` is accepted beside the whole tag. Weak tags match nothing (RFC 9110, 13.1.1).
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
