"""Calendars, calendar feeds, and the check of zone data and holiday data: which schedules they would move."""

from datetime import timedelta

from marshmallow import ValidationError, post_load, validate, validates_schema

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import services
from scheduler_app.api.wire.field_types import BoundedList, Cursor, Instant, check_visible
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema, attributes, edit_result, without_none
from scheduler_app.api.wire.paging import Listed
from scheduler_app.domain.calendars import (
    FIRST_YEAR,
    LAST_YEAR,
    MAX_DATES,
    WEEKDAYS,
    Calendar,
    DayKind,
    NamedCalendar,
    NamedDate,
)
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.schedule import MAX_NAME
from scheduler_app.ics import closed_days
from scheduler_app.ics.calendar_file import MAX_CHARACTERS
from scheduler_app.ics.reading import YEARS_AHEAD
from scheduler_app.store.calendars import CorruptCalendar
from scheduler_app.usecases.deeds import ics_import
from scheduler_app.usecases.questions.change_preview import MovedSchedule, ZoneCheck, holiday_data_of

#: The longest stretch of days in one answer.
MAX_DAYS = 3_660
MAX_DATE_NAME = 200


class NamedDateField(InputSchema):
    """A holiday by its date."""

    date = fields.JsonDate("The day", required=True, example="2027-01-02")
    name = fields.String(
        f"What it is called, up to {MAX_DATE_NAME} characters",
        load_default="",
        validate=[validate.Length(max=MAX_DATE_NAME), check_visible],
        example="Berchtoldstag",
    )

    @post_load
    def named(self, data: Loaded, **_: object) -> NamedDate:
        return NamedDate(data["date"], data["name"])


class CalendarInput(InputSchema):
    """The whole calendar: the union of what is given. What is left out is not closed, but for the weekend."""

    dates = BoundedList(
        NamedDateField, f"Holidays of your own, up to {MAX_DATES:,}", validate=validate.Length(max=MAX_DATES)
    )
    country = fields.String(
        "A country whose public holidays are closed (ISO 3166)", validate=validate.Length(1, 60), example="CH"
    )
    subdivision = fields.String(
        "A part of that country, whose own holidays are closed too (ISO 3166-2)",
        validate=validate.Length(1, 60),
        example="ZH",
    )
    exchange = fields.String(
        "An exchange, on whose holidays the calendar is closed",
        validate=validate.Length(1, 20),
        example="NYSE",
    )
    categories = BoundedList(
        fields.String(validate=validate.Length(1, 40)),
        "Which of the country's holidays are closed: `public` by default; `bank`,"
        " `government`, `half_day`, `school` and others, where a country has them",
        validate=validate.Length(max=20),
        example=["public", "bank"],
    )
    working_weekends = fields.Boolean(
        "Whether the weekend days are open on which the country works in return for a"
        " bridge day, as China does; false by default"
    )
    weekend = BoundedList(
        fields.String(validate=validate.OneOf(WEEKDAYS)),
        "Days of the week that are closed; SA and SU by default",
        validate=validate.Length(max=7),
    )

    ics = fields.String(
        "An iCalendar file whose events without a time become `dates`, recurring ones for"
        f" {YEARS_AHEAD} years",
        validate=validate.Length(1, MAX_CHARACTERS),
    )

    @post_load
    def calendar(self, data: Loaded, **_: object) -> Calendar:
        dates = list(data.get("dates", ()))
        if text := data.pop("ics", None):
            found = closed_days(
                text, services().now(), most=MAX_DATES, is_out_of_time=ics_import.reading_deadline()
            )
            dates += [NamedDate(day, name) for day, name in found]
        if dates:
            data["dates"] = tuple(dates)
        if "categories" in data:
            data["categories"] = tuple(data["categories"])
        if "weekend" in data:
            data["weekend"] = tuple(WEEKDAYS.index(day) for day in data["weekend"])
        return Calendar.of(**data)


class RemadeOutput(OutputSchema):
    """What the last change of its days did to the schedules that observe it."""

    moved = fields.Integer("Schedules whose occurrences were computed again", required=True)
    unchanged = fields.Integer("Schedules that have the same occurrences as before", required=True)
    left = fields.Integer("Schedules that beats have not compared yet", required=True)


class CalendarOutput(OutputSchema):
    """A calendar as it is shown."""

    name = fields.String("The name in the path", required=True)
    dates = fields.List(NamedDateField, "Its own holidays")
    country = fields.String("The country whose public holidays are closed")
    subdivision = fields.String("The part of that country")
    exchange = fields.String("The exchange on whose holidays it is closed")
    categories = fields.List(fields.String(), "Which of the country's holidays are closed")
    working_weekends = fields.Boolean("Whether weekend days are open on which the country works")
    weekend = fields.List(fields.String(), "The days of the week that are closed")
    version = fields.Integer("How often it was written")
    holiday_data = fields.String("The release of the holidays library that its days were computed with")
    used_by = fields.Integer("Schedules that observe it, 100,000 at most")
    remade = fields.Nested(RemadeOutput)
    reason = fields.String("Why it cannot be read, where that is so")
    warnings = fields.List(
        fields.String(), "From which year on its holidays are not known, where that comes soon"
    )
    created_at = Instant("When it was created")
    updated_at = Instant("When it was changed last")


class CalendarEdited(CalendarOutput):
    result = edit_result()


class CalendarPage(Listed):
    calendars = fields.List(CalendarOutput, "The newest first", required=True)


class DaysQuery(InputSchema):
    """Which days: both ends are included."""

    from_ = fields.JsonDate("The first day", data_key="from", required=True, example="2027-01-01")
    to = fields.JsonDate("The last day", required=True, example="2027-12-31")

    @validates_schema
    def check_range(self, data: Loaded, **_: object) -> None:
        if data["to"] < data["from_"]:
            raise ValidationError("must not be before from", "to")
        if data["to"] - data["from_"] >= timedelta(days=MAX_DAYS):
            raise ValidationError(f"must be within {MAX_DAYS} days after from; ask for less at once", "to")
        if not FIRST_YEAR <= data["from_"].year <= data["to"].year <= LAST_YEAR:
            raise ValidationError(f"holidays are known from {FIRST_YEAR} to {LAST_YEAR}", "from")


class DayOutput(OutputSchema):
    """A closed day."""

    date = fields.JsonDate("The day", required=True)
    name = fields.String("What it is called", required=True, example="Ascension Day")
    kind = fields.String(
        "Why it is closed; a holiday on a weekend day is a holiday",
        required=True,
        validate=validate.OneOf([kind.value for kind in DayKind]),
    )


class DaysOutput(OutputSchema):
    """The closed days of a calendar."""

    days = fields.List(DayOutput, "The earliest first", required=True)
    warnings = fields.List(
        fields.String(), "For which of these years its holidays are not known", required=True
    )


def calendar_shown(named: NamedCalendar | CorruptCalendar) -> View:
    """The fields of CalendarOutput that the calendar itself knows, without those that have no value."""
    if isinstance(named, CorruptCalendar):
        return {"name": named.name, "reason": named.reason}
    calendar = named.calendar
    view: View = {
        **attributes(named, "name", "version", "created_at", "updated_at"),
        **attributes(calendar, "country", "subdivision", "exchange"),
        "dates": [{"date": each.date, "name": each.name} for each in calendar.dates],
        "categories": list(calendar.categories) or None,
        "working_weekends": calendar.working_weekends or None,
        "weekend": [WEEKDAYS[day] for day in calendar.weekend],
        "holiday_data": holiday_data_shown(named.holiday_data),
    }
    return without_none(view)


def holiday_data_shown(key: str | None) -> str | None:
    """A release as people know it, 0.109, of the key that sorts, 0000.0109."""
    return None if key is None else ".".join(part.lstrip("0") or "0" for part in key.split("."))


_MAX_TAG = 64
_MAX_TOKEN = 200
_NAME = {"meaning": "What people call it, such as who reads it", "example": "Operations' calendar"}
_TAG = {"meaning": "Only schedules with this tag are shown; absent: all", "example": "nightly"}


class FeedInput(InputSchema):
    name = fields.String(required=True, validate=[validate.Length(1, MAX_NAME), check_visible], **_NAME)
    tag = fields.String(validate=[validate.Length(1, _MAX_TAG), check_visible], **_TAG)


class FeedOutput(OmitNone):
    """A feed without its token, which only the answer to its creation shows."""

    id = fields.String("The feed's id", required=True)
    name = fields.String(**_NAME)
    tag = fields.String(**_TAG)
    created_at = Instant("When it was created")
    reason = fields.String("Why its stored document cannot be read")


class CreatedFeed(FeedOutput):
    token = fields.String("Opens this calendar, and nothing else. Shown only in this answer", required=True)
    path = fields.String("What to append to the API's host: the URL for a calendar program", required=True)


class FeedList(OutputSchema):
    feeds = fields.List(FeedOutput, "Newest first", required=True)


class CalendarQuery(InputSchema):
    tag = fields.String(validate=validate.Length(1, _MAX_TAG), **_TAG)
    token = fields.String(
        "A feed's token, instead of an API key. No other path takes one",
        validate=validate.Length(1, _MAX_TOKEN),
    )


#: Schedules that one call looks at: each may cost a look at its events.
MAX_CHECKED = 200


class ZoneCheckQuery(InputSchema):
    """Which schedules to look at."""

    limit = fields.Integer(
        "How many active schedules to look at in this call",
        load_default=100,
        validate=validate.Range(1, MAX_CHECKED),
    )
    cursor = Cursor("The `next_cursor` of the previous answer: the check continues after it")


class MoveOutput(OmitNone):
    """One occurrence that would move."""

    before = Instant("As it is planned; absent for one that would be added")
    after = Instant("As it would be; absent for one that would be dropped")
    seconds = fields.Integer("How much later it would be; negative: earlier. Absent where one is absent")


class MovedScheduleOutput(OmitNone):
    """A schedule that would move."""

    id = fields.String("The schedule's id", required=True)
    name = fields.String("Its name", required=True)
    timezone = fields.String("The zone of its trigger", required=True)
    zone_data = fields.String(
        "The release of the zone data that it was computed with; absent in UTC", example="2026a"
    )
    calendar = fields.String("The calendar that it observes")
    holiday_data = fields.String(
        "The release of `holidays` that the calendar's days were computed with", example="0.109"
    )
    moves = fields.List(MoveOutput, "The first of its moves, 5 at most", required=True)
    error = fields.String("Why it cannot be told; absent where it can")


class ZoneCheckOutput(OutputSchema):
    """What the installed zone data and holiday data would move."""

    zone_data = fields.String("The release of the installed zone data", required=True, example="2026b")
    holiday_data = fields.String(
        "The release of the installed `holidays` package", required=True, example="0.110"
    )
    checked = fields.Integer("Schedules of this page that were computed with older data", required=True)
    moved = fields.List(MovedScheduleOutput, "Those that would move", required=True)
    next_cursor = Cursor(
        "Give it as `cursor` for the next page; null at the end", required=True, allow_none=True
    )


def zone_check_shown(check: ZoneCheck) -> View:
    """The fields of ZoneCheckOutput."""
    return {
        "zone_data": check.version,
        "holiday_data": check.holiday_data,
        "checked": check.checked,
        "moved": list(map(_moved_shown, check.moved)),
        "next_cursor": check.next,
    }


def _moved_shown(moved: MovedSchedule) -> View:
    schedule = moved.schedule
    return {
        "id": name_of(schedule.id),
        "name": schedule.name,
        "timezone": schedule.trigger.timezone,
        "zone_data": schedule.zone_data,
        "calendar": schedule.calendar.name if schedule.calendar else None,
        "holiday_data": holiday_data_shown(holiday_data_of(schedule)),
        "moves": [
            {
                "before": move.before,
                "after": move.after,
                "seconds": None if move.by is None else round(move.by.total_seconds()),
            }
            for move in moved.moves
        ],
        "error": moved.error,
    }
