"""/api/v1/calendars, their days; iCalendar feeds; /api/v1/tzdata: what new zone or holiday data moves."""

import zlib
from hashlib import blake2b

from flask import Response, request

from scheduler_app.api import idempotency
from scheduler_app.api.auth import FEED_PATH
from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.edits import named_versions, unchanged
from scheduler_app.api.json_types import Headers, Loaded, Tagged, View
from scheduler_app.api.problems import HttpProblem
from scheduler_app.api.services import services, tenant
from scheduler_app.api.versions import under_requested_name
from scheduler_app.api.wire import calendar as wire
from scheduler_app.api.wire import examples
from scheduler_app.api.wire.field_types import CALENDAR_NAME, CALENDAR_NAME_ERROR
from scheduler_app.api.wire.output_schema import MessageSchema, attributes, without_none
from scheduler_app.api.wire.paging import Paging, listed, window
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.calendar_feed import CalendarFeed
from scheduler_app.domain.calendars import Calendar, NamedCalendar
from scheduler_app.domain.errors import InvalidField, StaleVersion
from scheduler_app.domain.ids import WholeId, name_of
from scheduler_app.store.access_tokens import CorruptFeed
from scheduler_app.usecases.questions.change_preview import check_zones

calendars_blueprint = ApiBlueprint("calendars", "/api/v1/calendars", "Holidays and weekend days under a name")


@calendars_blueprint.route("", methods=["GET"])
@calendars_blueprint.arguments(Paging, location="query")
@calendars_blueprint.response(200, wire.CalendarPage)
def list_calendars(query: Loaded) -> View:
    """List calendars, newest first"""
    asked = window(query)
    found = services().calendars.page(tenant(), asked)
    rows = [wire.calendar_shown(each) for each in found.rows]
    return listed("calendars", rows, asked, found)


@calendars_blueprint.route("/<name:name>", methods=["GET"])
@calendars_blueprint.response(200, wire.CalendarOutput)
def get_calendar(name: WholeId) -> Tagged | Response:
    """Get a calendar, and how many schedules its last change has moved"""
    view, headers = _tagged(services().calendars.get(_checked(name)))
    return Response(status=304, headers=headers) if unchanged(headers["ETag"]) else (view, headers)


@calendars_blueprint.route("/<name:name>", methods=["PUT"], scope=KeyScope.WRITE)
@calendars_blueprint.arguments(wire.CalendarInput, example=examples.CALENDAR)
@calendars_blueprint.response(200, wire.CalendarEdited)
@calendars_blueprint.alt_response(
    201, schema=wire.CalendarEdited, description="There was none: it is created"
)
def put_calendar(calendar: Calendar, name: WholeId) -> tuple[View, int, Headers]:
    """Create a calendar, or replace the whole of one

    Beats compute the occurrences of the schedules that observe it again: `remade` of the GET counts them.
    `If-None-Match: *` only creates and `If-Match` only changes; otherwise the answer is a 412.
    """
    named, created = services().calendars.put(
        _checked(name),
        calendar,
        now := services().now(),
        version=_version_wanted(name),
        absent=request.if_none_match.star_tag,
    )
    view, headers = _tagged(named)
    if created:
        return view | {"result": "created"}, 201, headers | {"Location": f"/api/v1/calendars/{named.name}"}
    return view | {"result": "changed" if named.updated_at == now else "unchanged"}, 200, headers


@calendars_blueprint.route("/<name:name>", methods=["DELETE"], scope=KeyScope.WRITE)
@calendars_blueprint.response(200, MessageSchema)
def delete_calendar(name: WholeId) -> View:
    """Delete a calendar that no schedule observes"""
    services().calendars.delete(_checked(name), services().now(), version=_version_wanted(name))
    return {"message": "Calendar deleted."}


@calendars_blueprint.route("/<name:name>/days", methods=["GET"])
@calendars_blueprint.arguments(wire.DaysQuery, location="query")
@calendars_blueprint.response(200, wire.DaysOutput)
def list_calendar_days(query: Loaded, name: WholeId) -> View:
    """List the closed days of a calendar"""
    named = services().calendars.get(_checked(name))
    first, last = query["from_"], query["to"]
    days = named.days.days(first, last)
    return {
        "days": [{"date": day.date, "name": day.name, "kind": day.kind.value} for day in days],
        "warnings": list(named.calendar.unknown_years(first.year, last.year)),
    }


def _checked(name: WholeId) -> WholeId:
    if not CALENDAR_NAME.match(name_of(name)):
        raise InvalidField("name", f"the path's {CALENDAR_NAME_ERROR}")
    return name


def _tagged(named: NamedCalendar) -> Tagged:
    calendars = services().calendars
    view = wire.calendar_shown(named) | {
        "warnings": list(named.warnings(services().now())),
        "used_by": calendars.users(named.id),
        "remade": {
            "moved": named.remade.moved,
            "unchanged": named.remade.unchanged,
            "left": calendars.schedules_to_recompute(named),
        },
    }
    moving = zlib.crc32(repr((view["used_by"], view["remade"], view.get("holiday_data"))).encode())
    return view, {"ETag": f'"{named.version}-{moving:08x}"'}


def _version_wanted(name: WholeId) -> int | None:
    """The version that If-Match asks for; None when it asks for nothing. Raises StaleVersion."""
    if "If-Match" not in request.headers:
        return None
    existing = services().calendars.find(name)
    if request.if_match.star_tag:
        if existing is None:
            raise StaleVersion(f"If-Match asks for a calendar {name_of(name)}, and there is none")
        return None
    if isinstance(existing, NamedCalendar) and existing.version in named_versions():
        return existing.version
    raise StaleVersion("If-Match does not name the calendar's version: read it again, and give its ETag")


CALENDAR = "text/calendar"
FILE = {"type": "string", "description": "An iCalendar file (RFC 5545)"}

calendar_feeds_blueprint = ApiBlueprint(
    "calendars_of_schedules", "/api/v1", "Schedules in calendar programs: what is coming, and what has been"
)


@calendar_feeds_blueprint.route("/calendar.ics", methods=["GET"])
@calendar_feeds_blueprint.arguments(wire.CalendarQuery, location="query")
@calendar_feeds_blueprint.response(200, FILE, content_type=CALENDAR)
def get_calendar_file(query: Loaded) -> Response:
    """Get the calendar of all active schedules, or of those with a tag

    It takes an API key, or the token of a feed in the URL. What is coming is a rule where that is exact,
    else the instants of the next year; past events have their outcome. The bounds are in the manual.
    """
    owner, tag = tenant(), query.get("tag")
    if "token" in query:
        feed = services().calendar_feeds.opened(query["token"])
        if feed is None:
            raise HttpProblem(
                401,
                "this token opens no calendar: it is mistyped, or its feed was deleted; create"
                " another feed at /api/v1/calendar-feeds",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if feed.tag is not None and tag not in (None, feed.tag):
            raise HttpProblem(403, "this feed shows the schedules with another tag: leave out `tag`")
        owner, tag = feed.tenant, feed.tag or tag
    return _file(services().calendar_feeds.of_schedules(owner, services().now(), tag=tag))


@calendar_feeds_blueprint.route("/schedules/<id:schedule_id>.ics", methods=["GET"])
@calendar_feeds_blueprint.response(200, FILE, content_type=CALENDAR)
def get_schedule_calendar_file(schedule_id: WholeId) -> Response:
    """Get a schedule's calendar: what is coming, and its newest past events"""
    schedule = services().manager.get(schedule_id)
    return _file(services().calendar_feeds.of_schedule(schedule, services().now()))


@calendar_feeds_blueprint.route("/calendar-feeds", methods=["POST"], scope=KeyScope.WRITE)
@calendar_feeds_blueprint.arguments(
    wire.FeedInput, example={"name": "Operations' calendar", "tag": "nightly"}
)
@calendar_feeds_blueprint.response(201, wire.CreatedFeed)
def create_calendar_feed(given: Loaded) -> View:
    """Create a feed: a URL by which a calendar program reads the schedules' calendar

    Its token is the only key that may stand in a URL: it opens that calendar and nothing else, until the feed
    is deleted.
    """
    feed, token = services().calendar_feeds.create(
        tenant(), given["name"], given.get("tag"), services().now()
    )
    shown = idempotency.shown_once(token)
    return _shown(feed) | {"token": shown, "path": f"{under_requested_name(FEED_PATH)}?token={shown}"}


@calendar_feeds_blueprint.route("/calendar-feeds", methods=["GET"])
@calendar_feeds_blueprint.response(200, wire.FeedList)
def list_calendar_feeds() -> View:
    """List the feeds, without their tokens"""
    return {"feeds": [_shown(each) for each in services().calendar_feeds.all(tenant())]}


@calendar_feeds_blueprint.route("/calendar-feeds/<id:feed_id>", methods=["DELETE"], scope=KeyScope.WRITE)
@calendar_feeds_blueprint.response(200, MessageSchema)
def delete_calendar_feed(feed_id: WholeId) -> View:
    """Delete a feed: its token opens nothing any more"""
    services().calendar_feeds.delete(feed_id)
    return {"message": "The feed was deleted; its token opens nothing any more."}


def _file(content: bytes) -> Response:
    # The URL may hold a token, and a proxy must not keep what it opened.
    headers = {"Cache-Control": "private, no-cache", "Referrer-Policy": "no-referrer"}
    headers["ETag"] = f'"{blake2b(content, digest_size=12).hexdigest()}"'
    if unchanged(headers["ETag"]):
        return Response(status=304, headers=headers)
    return Response(content, content_type=f"{CALENDAR}; charset=utf-8", headers=headers)


def _shown(feed: CalendarFeed | CorruptFeed) -> View:
    if isinstance(feed, CorruptFeed):
        return {"id": name_of(feed.id), "reason": feed.reason}
    return without_none({"id": name_of(feed.id), **attributes(feed, "name", "tag", "created_at")})


zone_check_blueprint = ApiBlueprint(
    "tzdata", "/api/v1/tzdata", "Zone and holiday data, and what a new release moves"
)


@zone_check_blueprint.route("/check", methods=["GET"])
@zone_check_blueprint.arguments(wire.ZoneCheckQuery, location="query")
@zone_check_blueprint.response(200, wire.ZoneCheckOutput)
def check_tzdata(query: Loaded) -> View:
    """Show which schedules the installed zone and holiday data would move, a page a call

    Nothing is changed.
    """
    assembly = services()
    return wire.zone_check_shown(check_zones(assembly.store, tenant(), window(query), assembly.now()))
