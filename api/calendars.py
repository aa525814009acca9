"""/api/calendars: holidays and weekends under a name, for schedules to observe."""

import re
import zlib
from typing import Any

from flask import Response, request

from api.noun import Noun
from api.schemas.calendar import (
    CalendarEdited,
    CalendarInput,
    CalendarOutput,
    CalendarPage,
    DaysOutput,
    DaysQuery,
)
from api.schemas.common import CALENDAR_NAME, CALENDAR_NAME_ERROR, Message, Paging, window
from api.services import services
from scheduler_app.domain.calendars import WEEKDAYS, Calendar, NamedCalendar, days_of
from scheduler_app.domain.errors import InvalidField, StaleVersion
from scheduler_app.domain.schedule import TENANT
from scheduler_app.store.calendars import CorruptCalendar

blueprint = Noun("calendars", __name__, url_prefix="/api/calendars", description="Holidays and weekends")

EXAMPLE = {
    "country": "CH",
    "subdivision": "ZH",
    "dates": [{"date": "2027-01-02", "name": "Berchtoldstag"}],
    "weekend": ["SA", "SU"],
}
_VERSION = re.compile(r"(\d{1,15})(-[0-9a-f]{8})?\Z")

Headers = dict[str, str]
Tagged = tuple[dict[str, Any], Headers]


@blueprint.route("", methods=["GET"])
@blueprint.arguments(Paging, location="query")
@blueprint.response(200, CalendarPage)
def list_calendars(query: dict[str, Any]) -> dict[str, Any]:
    """List calendars, newest first"""
    limit, page = query["limit"], query["page"]
    found = services().store.calendars.page(window(query), tenant=TENANT)
    rows = [_shown(each) for each in found.rows]
    return {"calendars": rows, "page": page, "limit": limit, "next_cursor": found.following}


@blueprint.route("/<name>", methods=["GET"])
@blueprint.response(200, CalendarOutput)
def get_calendar(name: str) -> Tagged | Response:
    """Get a calendar, and how far its last change has got among the schedules"""
    view, headers = _tagged(services().calendars.get(TENANT, _checked(name)))
    unchanged = request.if_none_match.contains_weak(headers["ETag"].strip('"'))
    return Response(status=304, headers=headers) if unchanged else (view, headers)


@blueprint.route("/<name>", methods=["PUT"])
@blueprint.arguments(CalendarInput, example=EXAMPLE)
@blueprint.response(200, CalendarEdited)
@blueprint.alt_response(201, schema=CalendarEdited, description="There was none: it is created")
def put_calendar(calendar: Calendar, name: str) -> tuple[dict[str, Any], int, Headers]:
    """Make a calendar, or replace the whole of one

    The futures of the schedules that this moves are made anew within moments: `remade` of the GET counts
    them. `If-None-Match: *` only creates, `If-Match` only changes: a 412 says that this was not so.
    """
    named, created = services().calendars.put(
        TENANT,
        _checked(name),
        calendar,
        now := services().now(),
        version=_version_wanted(name),
        absent=request.if_none_match.star_tag,
    )
    view, headers = _tagged(named)
    if created:
        return view | {"result": "created"}, 201, headers | {"Location": f"/api/calendars/{name}"}
    return view | {"result": "changed" if named.updated_at == now else "unchanged"}, 200, headers


@blueprint.route("/<name>", methods=["DELETE"])
@blueprint.response(200, Message)
def delete_calendar(name: str) -> dict[str, Any]:
    """Delete a calendar that no schedule observes"""
    services().calendars.delete(TENANT, _checked(name), version=_version_wanted(name))
    return {"message": "Calendar deleted."}


@blueprint.route("/<name>/days", methods=["GET"])
@blueprint.arguments(DaysQuery, location="query")
@blueprint.response(200, DaysOutput)
def list_calendar_days(query: dict[str, Any], name: str) -> dict[str, Any]:
    """List the closed days of a calendar"""
    named = services().calendars.get(TENANT, _checked(name))
    days = days_of(named.calendar).days(query["from_"], query["to"])
    return {"days": [{"date": day.date, "name": day.name, "kind": day.kind.value} for day in days]}


def _checked(name: str) -> str:
    if not CALENDAR_NAME.match(name):
        raise InvalidField("name", f"the path's {CALENDAR_NAME_ERROR}")
    return name


def _tagged(named: NamedCalendar) -> Tagged:
    calendars = services().store.calendars
    view = _shown(named) | {
        "used_by": calendars.users(TENANT, named.name),
        "remade": {
            "moved": named.remade.moved,
            "unchanged": named.remade.unchanged,
            "left": calendars.left(named),
        },
    }
    moving = zlib.crc32(repr((view["used_by"], view["remade"], view.get("holiday_data"))).encode())
    return view, {"ETag": f'"{named.version}-{moving:08x}"'}


def _shown(named: NamedCalendar | CorruptCalendar) -> dict[str, Any]:
    if isinstance(named, CorruptCalendar):
        return {"name": named.name, "reason": named.reason}
    calendar = named.calendar
    view: dict[str, Any] = {
        "name": named.name,
        "dates": [{"date": each.date, "name": each.name} for each in calendar.dates],
        "country": calendar.country,
        "subdivision": calendar.subdivision,
        "exchange": calendar.exchange,
        "weekend": [WEEKDAYS[day] for day in calendar.weekend],
        "version": named.version,
        "holiday_data": holiday_data_shown(named.holiday_data),
        "created_at": named.created_at,
        "updated_at": named.updated_at,
    }
    return {key: value for key, value in view.items() if value is not None}


def holiday_data_shown(key: str | None) -> str | None:
    """A release as people know it, 0.109, of the key that sorts, 0000.0109."""
    return None if key is None else ".".join(part.lstrip("0") or "0" for part in key.split("."))


def _version_wanted(name: str) -> int | None:
    """The version that If-Match asks for; None when it asks for nothing. Raises StaleVersion."""
    if "If-Match" not in request.headers:
        return None
    there = services().store.calendars.get(TENANT, name)
    if request.if_match.star_tag:
        if there is None:
            raise StaleVersion(f"If-Match asks for a calendar {name}, and there is none")
        return None
    # Werkzeug reads the empty tag, `""`, as None.
    matches = [_VERSION.match(tag or "") for tag in request.if_match.as_set(include_weak=False)]
    versions = {int(match[1]) for match in matches if match}
    if isinstance(there, NamedCalendar) and there.version in versions:
        return there.version
    raise StaleVersion("If-Match does not name the calendar's version: read it again, and give its ETag")
