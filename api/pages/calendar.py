"""The calendar of what ran and what comes: a month, a week or a day."""

import calendar
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

from flask import render_template, request, url_for
from marshmallow import ValidationError, validate, validates

from scheduler_app import json_fields as fields
from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages.calendar_cells import HOUR, LOOKS, grid_of
from scheduler_app.api.pages.forms import takes_query
from scheduler_app.api.pages.frame import blueprint
from scheduler_app.api.pages.times import viewer_zone
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.field_types import DestinationName, ScheduleId
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.forecast import ForecastChoice
from scheduler_app.domain.http_action import destination_key
from scheduler_app.domain.ids import name_of, whole_id
from scheduler_app.domain.recurrence.zones import instant_at, local_in, timezone_named
from scheduler_app.domain.run_calendar import RunOutcome
from scheduler_app.usecases.questions.run_calendar import CalendarPeriod

VIEWS = ("month", "week", "day")
#: What older links call them.
_FORMER = {"agenda": "day", "hours": "week"}
#: Names in a day of the month; the others are on the page of the day.
MOST_NAMED_IN_MONTH = 4
#: States of events by what the calendar says of them, for the links to the list of runs.
_STATES = {RunOutcome.DONE: "completed", RunOutcome.FAILED: "error"}


class CalendarViewQuery(InputSchema):
    view = fields.String(validate=validate.OneOf([*VIEWS, *_FORMER]), load_default="month")
    on = fields.JsonDate("Any day of the month or week")
    timezone = fields.String(validate=validate.Length(max=200), load_default=viewer_zone)
    schedule_id = ScheduleId()
    tag = fields.String(validate=validate.Length(1, 64))
    destination = DestinationName()
    whole = fields.String(validate=validate.Equal("yes"))
    """However long it takes to count what is to come; without it a first answer says that it is one."""

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
    assembly, zone = services(), query["timezone"]
    view = str(_FORMER.get(query["view"], query["view"]))
    query["view"] = view
    now = assembly.now()
    here = local_in(now, zone)
    on: date = query.get("on") or here.date()
    first, last = _span(view, on)
    destination = query.get("destination")
    period = CalendarPeriod(start=_midnight(first, zone), end=_midnight(last, zone), width=HOUR, zone=zone)
    choice = ForecastChoice(
        query.get("schedule_id"), query.get("tag"), whole_id(tenant(), destination) if destination else None
    )
    found = assembly.run_calendars.read(tenant(), period, choice, now, first="whole" not in query)
    days = [first + timedelta(days=number) for number in range((last - first).days)]
    return render_template(
        "calendar_view.html",
        **_frame(query, on, first, last),
        today=here.date(),
        this_hour=here.hour,
        weeks=[days[start : start + 7] for start in range(0, len(days), 7)],
        grid=grid_of(found, zone),
        looks=LOOKS,
        most_named=MOST_NAMED_IN_MONTH,
        notes=[*found.notes, *_omitted(found.rare_omitted)],
        next_day=timedelta(days=1),
        to_whole=_turned(query.get("on"), whole="yes") if found.is_first_answer else None,
    )


def _omitted(count: int) -> list[str]:
    return [f"{count:,} more schedules that run rarely are counted, and not named"] if count else []


def _frame(query: Loaded, on: date, first: date, last: date) -> View:
    """What all views show: which days, and the ways to others."""
    view, destination, schedule_id = query["view"], query.get("destination"), query.get("schedule_id")
    schedule_name = None if schedule_id is None else name_of(schedule_id)
    titles = {
        "month": f"{on:%B %Y}",
        "week": f"{first:%a %-d %B} – {last - timedelta(days=1):%a %-d %B %Y}",
        "day": f"{on:%A %-d %B %Y}",
    }
    chosen = [
        ("tag", "Tag", query.get("tag")),
        ("destination", "Destination", destination),
        ("schedule_id", "Schedule", schedule_name),
    ]
    return {
        "view": view,
        "views": VIEWS,
        "on": on,
        "zone": query["timezone"],
        "query": query,
        "schedule_name": schedule_name,
        "chosen": [
            (name, label, value, _turned(on, **{name: None})) for name, label, value in chosen if value
        ],
        "runs_of": partial(_runs_of, query),
        "title": titles[view],
        "before": _turned((on.replace(day=1) if view == "month" else first) - timedelta(days=1)),
        "after": _turned(_after(view, on)),
        "to_today": _turned(None),
        "of_view": {each: _turned(on, view=each) for each in VIEWS},
        "of_day": lambda day: _turned(day, view="day"),
    }


def _runs_of(query: Loaded, since: str, until: str, outcome: RunOutcome | None = None) -> str:
    """The list of the runs from one local time to another, of those that the calendar is of."""
    destination, schedule_id = query.get("destination"), query.get("schedule_id")
    which: dict[str, Any] = {
        "from": since,
        "to": until,
        "timezone": query["timezone"],
        "state": None if outcome is None else _STATES.get(outcome),
        "schedule_id": None if schedule_id is None else name_of(schedule_id),
        "tag": query.get("tag"),
        "origin": destination_key(destination) if destination else None,
    }
    return url_for(f"{PAGES}.events", **which)


def _span(view: str, on: date) -> tuple[date, date]:
    """The first day, and the day after the last one."""
    if view == "day":
        return on, on + timedelta(days=1)
    if view == "month":
        begin = on.replace(day=1)
        end = begin + timedelta(days=calendar.monthrange(on.year, on.month)[1])
        return begin - timedelta(days=begin.weekday()), end + timedelta(days=-end.weekday() % 7)
    begin = on - timedelta(days=on.weekday())
    return begin, begin + timedelta(days=7)


def _after(view: str, on: date) -> date:
    if view == "month":
        return (on.replace(day=28) + timedelta(days=4)).replace(day=1)
    return on + timedelta(days=7 if view == "week" else 1)


def _turned(on: date | None, **changes: object) -> str:
    """The same page of another day, with other parameters."""
    kept: Loaded = {name: value for name, value in request.args.items() if value}
    kept.pop("whole", None)
    kept["on"] = on.isoformat() if on else None
    return url_for(f"{PAGES}.calendar_view", **(kept | changes))


def _midnight(day: date, zone: str) -> datetime:
    return instant_at(datetime(day.year, day.month, day.day), zone)  # noqa: DTZ001 (a local time)
