"""The calendar of what ran and what comes, and the forecast of how many callbacks fall due."""

import calendar
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from threading import Lock

from flask import current_app, render_template, request, url_for
from marshmallow import ValidationError, validate, validates

from scheduler_app import json_fields as fields
from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages.formatting import names_of_ids, stacked_bars
from scheduler_app.api.pages.forms import NoFields, takes_query
from scheduler_app.api.pages.frame import blueprint
from scheduler_app.api.pages.times import instant, viewer_zone
from scheduler_app.api.problems import RETRY_AFTER_SECONDS, HttpProblem
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.field_types import DestinationName, ScheduleId
from scheduler_app.api.wire.forecast import buckets_of, forecast_shown
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.clock import monotonic
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.http_action import destination_key
from scheduler_app.domain.ids import name_of, whole_id
from scheduler_app.domain.recurrence.zones import instant_at, local_in, timezone_named
from scheduler_app.usecases.questions.calendar_view import ViewedPeriod, calendar_view, heat_map

VIEWS = ("month", "week", "agenda", "hours")
#: Rows of a day in the agenda, of what ran and of what comes.
AGENDA_ROWS = 50
#: How many shades tell busy hours from quiet ones.
SHADES = 5


class CalendarViewQuery(InputSchema):
    view = fields.String(validate=validate.OneOf(VIEWS), load_default="month")
    on = fields.JsonDate("Any day of the month or week")
    timezone = fields.String(validate=validate.Length(max=200), load_default=viewer_zone)
    schedule_id = ScheduleId()
    tag = fields.String(validate=validate.Length(1, 64))
    destination = DestinationName()

    @validates("timezone")
    def check_zone(self, value: str, **_: object) -> None:
        try:
            timezone_named(value)
        except InvalidField as error:
            raise ValidationError(error.message) from None

    @validates("on")
    def check_on(self, value: date, **_: object) -> None:
        if not 1970 < value.year < 9000:
            raise ValidationError("must lie in the years 1971 to 8999")


@blueprint.get("/calendar", endpoint="calendar_view")
@takes_query(CalendarViewQuery)
def calendar_page(query: Loaded) -> str:
    assembly, zone, view = services(), query["timezone"], query["view"]
    now = assembly.now()
    today = local_in(now, zone).date()
    on: date = query.get("on") or today
    first, last = _span(view, on)
    destination = query.get("destination")
    viewed = ViewedPeriod(
        tenant=tenant(),
        since=_midnight(first, zone),
        until=_midnight(last, zone),
        zone=zone,
        schedule_id=query.get("schedule_id"),
        tag=query.get("tag"),
        destination=whole_id(tenant(), destination) if destination else None,
    )
    frame = _frame(query, on, first, last)
    if view == "hours":
        return render_template(
            "heat_map.html",
            **frame,
            days=[first + timedelta(days=number) for number in range(7)],
            next_day=timedelta(days=1),
            heat=heat_map(assembly.store, viewed, now),
            shades=SHADES,
        )
    found = calendar_view(assembly.store, viewed, now)
    days = [first + timedelta(days=number) for number in range((last - first).days)]
    shown = {outcome.schedule_id for day in found.days.values() for outcome in day.past[:AGENDA_ROWS]}
    return render_template(
        "calendar_view.html",
        **frame,
        today=today,
        weeks=[days[start : start + 7] for start in range(0, len(days), 7)],
        days=found.days,
        left_out=found.left_out[:10],
        next_day=timedelta(days=1),
        rows=AGENDA_ROWS,
        names=names_of_ids(shown) if view == "agenda" else {},
    )


def _frame(query: Loaded, on: date, first: date, last: date) -> View:
    """What all views show: which days, and the ways to others."""
    view, destination, schedule_id = query["view"], query.get("destination"), query.get("schedule_id")
    schedule_name = None if schedule_id is None else name_of(schedule_id)
    of_week = f"{first:%d %B} to {last - timedelta(days=1):%d %B %Y}"
    return {
        "view": view,
        "views": VIEWS,
        "on": on,
        "zone": query["timezone"],
        "query": query,
        "schedule_name": schedule_name,
        "which": {
            "timezone": query["timezone"],
            "schedule_id": schedule_name,
            "tag": query.get("tag"),
            "origin": destination_key(destination) if destination else None,
        },
        "title": f"{on:%B %Y}" if view == "month" else of_week,
        "before": _turned(_before(view, on)),
        "after": _turned(_after(view, on)),
        "of_view": {each: _turned(on, each) for each in VIEWS},
    }


def _span(view: str, on: date) -> tuple[date, date]:
    """The first day, and the day after the last one."""
    if view == "month":
        begin = on.replace(day=1)
        end = begin + timedelta(days=calendar.monthrange(on.year, on.month)[1])
        return begin - timedelta(days=begin.weekday()), end + timedelta(days=-end.weekday() % 7)
    begin = on - timedelta(days=on.weekday())
    return begin, begin + timedelta(days=7)


def _before(view: str, on: date) -> date:
    return on.replace(day=1) - timedelta(days=1) if view == "month" else on - timedelta(days=7)


def _after(view: str, on: date) -> date:
    return (
        (on.replace(day=28) + timedelta(days=4)).replace(day=1) if view == "month" else on + timedelta(days=7)
    )


def _turned(on: date, view: str | None = None) -> str:
    """The same page of another day, or in another view."""
    kept: Loaded = {name: value for name, value in request.args.items() if value}
    kept["on"] = on.isoformat()
    return url_for(f"{PAGES}.calendar_view", **(kept | ({"view": view} if view else {})))


def _midnight(day: date, zone: str) -> datetime:
    return instant_at(datetime(day.year, day.month, day.day), zone)  # noqa: DTZ001 (a local time)


HOURS = {"6": "6 hours", "24": "a day", "168": "a week"}
CHART = (600.0, 120.0)
#: A forecast is shown for `KEPT_TIMES` as long as it took to make, but for a minute at most. So making
#: forecasts takes a small part of a thread's time, however many pages are open, and one of few schedules is
#: nearly live: a schedule that was just made is in it.
KEPT_TIMES = 20
KEPT_SECONDS = 60.0
#: Parts of the day on the overview, 48 of half an hour.
NEXT_DAY = "24"


class ForecastPageQuery(InputSchema):
    hours = fields.String(validate=validate.OneOf(list(HOURS)), load_default=NEXT_DAY)


@dataclass
class _Kept:
    """The newest forecast of each length with the moment up to which it is shown; one is made at a time."""

    lock: Lock = field(default_factory=Lock)
    forecasts: dict[tuple[str, str], tuple[float, View]] = field(default_factory=dict)


@blueprint.get("/forecast")
@takes_query(ForecastPageQuery)
def forecast(query: Loaded) -> str:
    found = _forecast(query["hours"])
    return render_template("forecast.html", hours=query["hours"], choices=HOURS, **_drawn(found))


@blueprint.get("/forecast/next-day")
@takes_query(NoFields)
def next_day(_: Loaded) -> str:
    """The part of the overview that is loaded after the rest of it."""
    return render_template("next_day.html", **_drawn(_forecast(NEXT_DAY)))


def _forecast(hours: str) -> View:
    """A forecast, from the cache while that is fresh. Raises Problem while another request computes the first
    one: a request that waited for it would block a thread of the server."""
    key, kept = (tenant(), hours), _kept()
    until, found = kept.forecasts.get(key, (0.0, {}))
    if found and monotonic() < until:
        return found
    if not kept.lock.acquire(blocking=False):
        if found:
            return found
        raise HttpProblem(
            503,
            "another forecast is being made; load the page again in a few seconds",
            headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
        )
    try:
        assembly, now, began = services(), services().now(), monotonic()
        buckets = buckets_of({"start": now, "end": now + timedelta(hours=int(hours))}, now)
        found = forecast_shown(assembly.forecasts.forecast(tenant(), buckets, now))
        ended = monotonic()
        kept.forecasts[key] = (ended + min(KEPT_TIMES * (ended - began), KEPT_SECONDS), found)
    finally:
        kept.lock.release()
    return found


def _kept() -> _Kept:
    """The cache of the current application."""
    found: _Kept = current_app.extensions.setdefault("forecasts_of_pages", _Kept())
    return found


def _drawn(found: View) -> View:
    buckets = found["buckets"]
    assert isinstance(buckets, list)  # noqa: S101 (as ForecastOutput says)
    columns = [(instant(each["start"]), {"to_come": each["count"]}) for each in buckets]
    return {"found": found, "bars": stacked_bars(columns, ["to_come"], *CHART), "chart": CHART}
