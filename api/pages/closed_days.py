"""Closed days: the calendars that schedules observe, and the form that makes, edits and deletes one.

The form says what a calendar is made of; its next days stand beside it before anything is saved.
"""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from flask import render_template
from marshmallow import Schema, ValidationError, validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.formatting import counted
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.pages.times import viewer_zone
from scheduler_app.api.problems import HttpProblem, problem_of
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.calendar import CalendarInput
from scheduler_app.api.wire.field_types import BoundedList, CalendarName, Cursor
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.calendars import WEEKDAYS, Calendar, DayKind, NamedCalendar, days_of
from scheduler_app.domain.errors import Conflict, InvalidField, StaleVersion
from scheduler_app.domain.ids import WholeId, name_of, whole_id
from scheduler_app.domain.recurrence.description import vocabulary as say
from scheduler_app.domain.recurrence.zones import local_in
from scheduler_app.store.calendars import CorruptCalendar
from scheduler_app.store.paging import PageRequest

#: On a page: the next closed day of each is computed.
ROWS = 25
#: Closed days in the preview, and how far ahead they are looked for.
DAYS_SHOWN, AHEAD = 12, timedelta(days=366)
#: Own days that end sooner than this are soon to be continued.
SOON = timedelta(days=180)
_TEXTS = ("country", "subdivision", "exchange")
_LENGTHS = {"name": 200, **dict.fromkeys(_TEXTS, 100), "categories": 1_000, "dates": 500_000, "ics": 500_000}
_NAME = CalendarName(required=True)
_REFUSALS = (ValidationError, InvalidField, Conflict)

CalendarForm: type[Schema] = InputSchema.from_dict(
    forms.text_fields(_LENGTHS)
    | {
        "weekend": BoundedList(
            fields.String(validate=validate.OneOf(WEEKDAYS)),
            load_default=[],
            validate=validate.Length(max=len(WEEKDAYS)),
        ),
        "working_weekends": fields.String(validate=validate.Equal("yes")),
        "version": fields.Integer(validate=validate.Range(1)),
        "look": fields.String(validate=validate.Equal("yes")),
    },
    name="CalendarForm",
)


class CalendarsQuery(forms.ActionResultQuery):
    cursor = Cursor()


class CalendarDeletionForm(InputSchema):
    confirmed = fields.String(validate=validate.Equal("yes"))


@dataclass(frozen=True, slots=True)
class ListedDay:
    """A closed day, and what it is called."""

    date: date
    name: str

    @property
    def words(self) -> str:
        return f"{self.date:%a} {self.date.day} {self.date:%b %Y}"


@blueprint.get("/calendars")
@forms.takes_query(CalendarsQuery)
def calendars(query: Loaded) -> str:
    asked, now = services().calendars, services().now()
    found = asked.page(tenant(), PageRequest(limit=ROWS, after=query.get("cursor")))
    return render_template(
        "calendars.html",
        rows=[_row(each, asked.users(whole_id(tenant(), each.name)), now) for each in found.rows],
        onward=forms.next_page_query(found.next),
        done=query.get("done"),
    )


def _row(named: NamedCalendar | CorruptCalendar, users: int, now: datetime) -> View:
    view: View = {"name": named.name, "users": counted(users, "schedule")}
    if isinstance(named, CorruptCalendar):
        return view | {"reason": named.reason}
    return view | {
        "source": _source(named.calendar),
        "next": next(iter(_holidays(named.calendar, now, most=1)), None),
        "weekend": weekend_words(named.calendar),
        "ends": _end(named, now),
    }


def _source(calendar: Calendar) -> str:
    of = [", ".join(filter(None, (calendar.country, calendar.subdivision))), calendar.exchange]
    public = [f"holidays of {each}" for each in of if each]
    own = [counted(len(calendar.dates), "own day")] if calendar.dates else []
    words = ", ".join([*public, *own]) or "weekends alone"
    return f"{words[0].upper()}{words[1:]}"


def weekend_words(calendar: Calendar) -> str:
    return ", ".join(say.WEEKDAYS[day] for day in calendar.weekend) or "none"


def _end(named: NamedCalendar, now: datetime) -> str:
    """From when on its holidays are not known, where that comes soon."""
    if warnings := named.warnings(now):
        return warnings[0]
    calendar = named.calendar
    if calendar.dates and not calendar.uses_holiday_data:
        last = calendar.dates[-1].date
        if last < (now + SOON).date():
            return f"Its own days end {last:%b %Y}"
    return ""


def _holidays(calendar: Calendar, now: datetime, *, most: int) -> list[ListedDay]:
    """Its next closed days that are no mere weekend, in the viewer's zone."""
    today, found = local_in(now, viewer_zone()).date(), list[ListedDay]()
    for day in days_of(calendar).days(today, today + AHEAD):
        if day.kind is DayKind.HOLIDAY:
            found.append(ListedDay(day.date, day.name))
            if len(found) == most:
                break
    return found


@blueprint.get("/new-calendar")
@forms.takes_query(forms.NoFields)
def new_calendar(_: Loaded) -> str:
    return _form({"weekend": ["SA", "SU"]})


@blueprint.post("/new-calendar")
@forms.takes_form(CalendarForm)
def save_calendar(form: Loaded) -> Response | str | tuple[str, int]:
    try:
        calendar = _calendar(form)
        if "look" in form:
            return _form(form, calendar=calendar)
        services().calendars.put(_named(form), calendar, services().now(), absent=True)
    except StaleVersion as error:
        return _form(form, problem_of(InvalidField("name", str(error)))), 409
    except _REFUSALS as error:
        problem = problem_of(error)
        return _form(form, problem), problem.status
    return to_page("calendars", done="created")


@blueprint.get("/calendars/<name:name>/edit")
@forms.takes_query(forms.NoFields)
def edit_calendar(_: Loaded, name: WholeId) -> str:
    found = services().calendars.get(name)
    return _form(texts_of(found.calendar) | {"version": found.version}, editing=name, calendar=found.calendar)


@blueprint.post("/calendars/<name:name>/edit")
@forms.takes_form(CalendarForm)
def save_calendar_edit(form: Loaded, name: WholeId) -> Response | str | tuple[str, int]:
    asked = services().calendars
    before = asked.get(name)
    try:
        calendar = _calendar(form)
        if "look" in form:
            return _form(form, editing=name, calendar=calendar)
        asked.put(name, calendar, services().now(), version=form.get("version", before.version))
    except StaleVersion:
        stale = "This list was changed after the page was loaded: load it again, and edit it there"
        return _form(form, HttpProblem(409, stale), editing=name), 409
    except _REFUSALS as error:
        problem = problem_of(error)
        return _form(form, problem, editing=name), problem.status
    return to_page("calendars", done="saved")


@blueprint.post("/calendars/<name:name>/delete")
@forms.takes_form(CalendarDeletionForm)
def delete_calendar(form: Loaded, name: WholeId) -> Response | str | tuple[str, int]:
    """Asks first; says who still observes one that is in use."""
    if "confirmed" not in form:
        return render_template("delete_calendar.html", name=name_of(name))
    try:
        services().calendars.delete(name, services().now())
    except Conflict as error:
        return render_template("delete_calendar.html", name=name_of(name), refusal=str(error)), 409
    return to_page("calendars", done="deleted")


def texts_of(calendar: Calendar) -> Loaded:
    """What the form says of a calendar."""
    return {
        **{name: getattr(calendar, name) or "" for name in _TEXTS},
        "categories": forms.text_of(calendar.categories),
        "dates": "\n".join(f"{each.date} {each.name}".strip() for each in calendar.dates),
        "weekend": [WEEKDAYS[day] for day in calendar.weekend],
        "working_weekends": "yes" if calendar.working_weekends else "",
    }


def _calendar(form: Loaded) -> Calendar:
    """Raises ValidationError, InvalidField."""
    given: dict[str, Any] = {name: form[name].strip() for name in _TEXTS if form.get(name, "").strip()}
    given["weekend"] = form["weekend"]
    if dates := _dates(form.get("dates", "")):
        given["dates"] = dates
    if categories := forms.listed(form.get("categories", "")):
        given["categories"] = categories
    if "working_weekends" in form:
        given["working_weekends"] = True
    if ics := form.get("ics", "").strip():
        given["ics"] = ics
    made: Calendar = CalendarInput().load(given)
    return made


def _dates(text: str) -> list[View]:
    """One day a line: a date, and what it is called. Raises ValidationError."""
    found: list[View] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        day, _, name = line.strip().partition(" ")
        try:
            found.append({"date": date.fromisoformat(day).isoformat(), "name": name.strip()})
        except ValueError:
            said = (
                f"line {number}: write a date and a name, as in 2026-12-24 Christmas Eve; not {line[:60]!r}"
            )
            raise ValidationError({"dates": [said]}) from None
    return found


def _named(form: Loaded) -> WholeId:
    try:
        return whole_id(tenant(), _NAME.deserialize(form.get("name", "").strip()))
    except ValidationError as error:
        raise ValidationError({"name": error.messages}) from None


def _form(
    values: Loaded,
    problem: HttpProblem | None = None,
    *,
    editing: WholeId | None = None,
    calendar: Calendar | None = None,
) -> str:
    """The form, with the next days of the calendar beside it, where it is one."""
    errors, now = forms.errors_by_field(problem, {}), services().now()
    year = now.year
    return render_template(
        "edit_calendar.html",
        values=values,
        errors=errors,
        others=forms.other_errors(errors, _LENGTHS),
        editing=name_of(editing) if editing else None,
        users=services().calendars.users(editing) if editing else 0,
        weekdays=[(short, say.WEEKDAYS[number]) for number, short in enumerate(WEEKDAYS)],
        calendar=calendar,
        days=_holidays(calendar, now, most=DAYS_SHOWN) if calendar else [],
        weekend_words=weekend_words(calendar) if calendar else "",
        warnings=calendar.unknown_years(year, year + 2) if calendar else (),
        most=DAYS_SHOWN,
    )
