"""/api/v1/calendars: holidays and weekends under a name, for schedules to observe."""

import re
import zlib

from flask import Response, request

from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.preconditions import unchanged
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire import (
    CalendarEdited,
    CalendarInput,
    CalendarOutput,
    CalendarPage,
    DaysOutput,
    DaysQuery,
    Message,
    Paging,
    examples,
    listed,
    window,
)
from scheduler_app.api.wire.calendar import calendar_shown
from scheduler_app.api.wire.field_types import CALENDAR_NAME, CALENDAR_NAME_ERROR
from scheduler_app.domain.calendars import Calendar, NamedCalendar
from scheduler_app.domain.errors import InvalidField, StaleVersion

blueprint = ApiBlueprint(
    "calendars",
    __name__,
    url_prefix="/api/v1/calendars",
    description="Holidays and weekend days under a name",
)

_VERSION = re.compile(r"(\d{1,15})(-[0-9a-f]{8})?\Z")

Headers = dict[str, str]
Tagged = tuple[View, Headers]


@blueprint.route("", methods=["GET"])
@blueprint.arguments(Paging, location="query")
@blueprint.response(200, CalendarPage)
def list_calendars(query: Loaded) -> View:
    """List calendars, newest first"""
    asked = window(query)
    found = services().store.calendars.page(asked, tenant=tenant())
    rows = [calendar_shown(each) for each in found.rows]
    return listed("calendars", rows, asked, found)


@blueprint.route("/<name:name>", methods=["GET"])
@blueprint.response(200, CalendarOutput)
def get_calendar(name: str) -> Tagged | Response:
    """Get a calendar, and how many schedules its last change has moved"""
    view, headers = _tagged(services().calendars.get(_checked(name), tenant=tenant()))
    return Response(status=304, headers=headers) if unchanged(headers["ETag"]) else (view, headers)


@blueprint.route("/<name:name>", methods=["PUT"])
@blueprint.arguments(CalendarInput, example=examples.CALENDAR)
@blueprint.response(200, CalendarEdited)
@blueprint.alt_response(201, schema=CalendarEdited, description="There was none: it is created")
def put_calendar(calendar: Calendar, name: str) -> tuple[View, int, Headers]:
    """Create a calendar, or replace the whole of one

    Beats compute the occurrences of the schedules that observe it again: `remade` of the GET counts them.
    `If-None-Match: *` only creates and `If-Match` only changes; otherwise the answer is a 412.
    """
    named, created = services().calendars.put(
        _checked(name),
        calendar,
        now := services().now(),
        tenant=tenant(),
        version=_version_wanted(name),
        absent=request.if_none_match.star_tag,
    )
    view, headers = _tagged(named)
    if created:
        return view | {"result": "created"}, 201, headers | {"Location": f"/api/v1/calendars/{name}"}
    return view | {"result": "changed" if named.updated_at == now else "unchanged"}, 200, headers


@blueprint.route("/<name:name>", methods=["DELETE"])
@blueprint.response(200, Message)
def delete_calendar(name: str) -> View:
    """Delete a calendar that no schedule observes"""
    services().calendars.delete(
        _checked(name), services().now(), tenant=tenant(), version=_version_wanted(name)
    )
    return {"message": "Calendar deleted."}


@blueprint.route("/<name:name>/days", methods=["GET"])
@blueprint.arguments(DaysQuery, location="query")
@blueprint.response(200, DaysOutput)
def list_calendar_days(query: Loaded, name: str) -> View:
    """List the closed days of a calendar"""
    named = services().calendars.get(_checked(name), tenant=tenant())
    first, last = query["from_"], query["to"]
    days = named.days.days(first, last)
    return {
        "days": [{"date": day.date, "name": day.name, "kind": day.kind.value} for day in days],
        "warnings": list(named.calendar.unknown_years(first.year, last.year)),
    }


def _checked(name: str) -> str:
    if not CALENDAR_NAME.match(name):
        raise InvalidField("name", f"the path's {CALENDAR_NAME_ERROR}")
    return name


def _tagged(named: NamedCalendar) -> Tagged:
    calendars = services().store.calendars
    view = calendar_shown(named) | {
        "warnings": list(named.warnings(services().now())),
        "used_by": calendars.users(named.name, tenant=tenant()),
        "remade": {
            "moved": named.remade.moved,
            "unchanged": named.remade.unchanged,
            "left": calendars.left(named),
        },
    }
    moving = zlib.crc32(repr((view["used_by"], view["remade"], view.get("holiday_data"))).encode())
    return view, {"ETag": f'"{named.version}-{moving:08x}"'}


def _version_wanted(name: str) -> int | None:
    """The version that If-Match asks for; None when it asks for nothing. Raises StaleVersion."""
    if "If-Match" not in request.headers:
        return None
    there = services().store.calendars.get(name, tenant=tenant())
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
