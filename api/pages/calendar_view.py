"""The calendar: what ran, by outcome, and what comes, in one; by schedule, tag or destination."""

import calendar
from datetime import date, datetime, timedelta

from flask import Blueprint, render_template, request, url_for
from marshmallow import ValidationError, fields, validate, validates

from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages.forms import takes_query
from scheduler_app.api.pages.names import names_of_ids
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire.field_types import DestinationName, ScheduleId
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.http_action import DESTINATION_PREFIX
from scheduler_app.domain.local_time import instant_at, local_in, timezone_named
from scheduler_app.domain.tenants import whole_id
from scheduler_app.usecases.calendar_view import calendar_view
from scheduler_app.usecases.heat_map import heat_map
from scheduler_app.usecases.viewed import Viewed

VIEWS = ("month", "week", "agenda", "hours")
#: Rows of a day in the agenda, of what ran and of what comes.
AGENDA_ROWS = 50
#: How many shades tell busy hours from quiet ones.
SHADES = 5


class CalendarQuery(InputSchema):
    view = fields.String(validate=validate.OneOf(VIEWS), load_default="month")
    on = fields.Date(metadata={"description": "Any day of the month or week"})
    timezone = fields.String(validate=validate.Length(max=200), load_default="UTC")
    schedule_id = ScheduleId()
    tag = fields.String(validate=validate.Length(min=1, max=64))
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


def register(blueprint: Blueprint) -> None:
    blueprint.add_url_rule("/calendar", view_func=calendar_page, endpoint="calendar_view", methods=["GET"])


@takes_query(CalendarQuery)
def calendar_page(query: Loaded) -> str:
    made, zone, view = services(), query["timezone"], query["view"]
    now = made.now()
    today = local_in(now, zone).date()
    on: date = query.get("on") or today
    first, last = _span(view, on)
    destination = query.get("destination")
    viewed = Viewed(
        since=_midnight(first, zone),
        until=_midnight(last, zone),
        zone=zone,
        tenant=tenant(),
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
            heat=heat_map(made.store, viewed, now),
            shades=SHADES,
        )
    found = calendar_view(made.store, viewed, now)
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
    view, destination = query["view"], query.get("destination")
    of_week = f"{first:%d %B} to {last - timedelta(days=1):%d %B %Y}"
    return {
        "view": view,
        "views": VIEWS,
        "on": on,
        "zone": query["timezone"],
        "query": query,
        "which": {
            "timezone": query["timezone"],
            "schedule_id": query.get("schedule_id"),
            "tag": query.get("tag"),
            "origin": DESTINATION_PREFIX + whole_id(tenant(), destination) if destination else None,
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
