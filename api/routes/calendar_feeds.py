"""/api/v1/calendar.ics and /api/v1/schedules/{id}.ics; /api/v1/calendar-feeds: who may read them by a URL."""

from hashlib import blake2b

from flask import Response

from scheduler_app.api import idempotency
from scheduler_app.api.auth import FEED_PATH
from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.preconditions import unchanged
from scheduler_app.api.problems import Problem
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.versions import as_asked
from scheduler_app.api.wire import CalendarQuery, CreatedFeed, FeedInput, FeedList, Message
from scheduler_app.domain.calendar_feed import CalendarFeed
from scheduler_app.store.calendar_feeds import CorruptFeed

CALENDAR = "text/calendar"
FILE = {"type": "string", "description": "An iCalendar file (RFC 5545)"}

blueprint = ApiBlueprint(
    "calendars_of_schedules",
    __name__,
    url_prefix="/api/v1",
    description="Schedules in calendar programs: what is coming, and what has been",
)


@blueprint.route("/calendar.ics", methods=["GET"])
@blueprint.arguments(CalendarQuery, location="query")
@blueprint.response(200, FILE, content_type=CALENDAR)
def get_calendar_file(query: Loaded) -> Response:
    """Get the calendar of all active schedules, or of those with a tag

    It takes an API key, or the token of a feed in the URL. What is coming is a rule where that is exact,
    else the instants of the next year; past events have their outcome. The bounds are in the manual.
    """
    owner, tag = tenant(), query.get("tag")
    if "token" in query:
        feed = services().calendar_feeds.opened(query["token"])
        if feed is None:
            raise Problem(
                401,
                "this token opens no calendar: it is mistyped, or its feed was deleted; create"
                " another feed at /api/v1/calendar-feeds",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if feed.tag is not None and tag not in (None, feed.tag):
            raise Problem(403, "this feed shows the schedules with another tag: leave out `tag`")
        owner, tag = feed.tenant, feed.tag or tag
    return _file(services().calendar_feeds.of_schedules(services().now(), tenant=owner, tag=tag))


@blueprint.route("/schedules/<schedule_id>.ics", methods=["GET"])
@blueprint.response(200, FILE, content_type=CALENDAR)
def get_schedule_calendar_file(schedule_id: str) -> Response:
    """Get a schedule's calendar: what is coming, and its newest past events"""
    schedule = services().manager.get(schedule_id, tenant=tenant())
    return _file(services().calendar_feeds.of_schedule(schedule, services().now()))


@blueprint.route("/calendar-feeds", methods=["POST"])
@blueprint.arguments(FeedInput, example={"name": "Operations' calendar", "tag": "nightly"})
@blueprint.response(201, CreatedFeed)
def create_calendar_feed(given: Loaded) -> View:
    """Create a feed: a URL by which a calendar program reads the schedules' calendar

    Its token is the only key that may stand in a URL: it opens that calendar and nothing else, until the feed
    is deleted.
    """
    feed, token = services().calendar_feeds.create(
        given["name"], given.get("tag"), services().now(), tenant=tenant()
    )
    shown = idempotency.shown_once(token)
    return _shown(feed) | {"token": shown, "path": f"{as_asked(FEED_PATH)}?token={shown}"}


@blueprint.route("/calendar-feeds", methods=["GET"])
@blueprint.response(200, FeedList)
def list_calendar_feeds() -> View:
    """List the feeds, without their tokens"""
    return {"feeds": [_shown(each) for each in services().calendar_feeds.all(tenant=tenant())]}


@blueprint.route("/calendar-feeds/<feed_id>", methods=["DELETE"])
@blueprint.response(200, Message)
def delete_calendar_feed(feed_id: str) -> View:
    """Delete a feed: its token opens nothing any more"""
    services().calendar_feeds.delete(feed_id, tenant=tenant())
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
        return {"id": feed.id, "reason": feed.reason}
    view = {"id": feed.id, "name": feed.name, "tag": feed.tag, "created_at": feed.created_at}
    return {name: value for name, value in view.items() if value is not None}
