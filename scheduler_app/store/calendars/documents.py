"""A calendar as MongoDB keeps it, and back."""

from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from scheduler_app.domain.calendars import MAX_DATES, WEEKDAYS, Calendar, NamedCalendar, NamedDate, Remade
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.field_types import (
    Corrupt,
    fields,
    flag,
    instant,
    items,
    one_of,
    optional,
    tenant,
    text,
    version,
    whole,
)
from scheduler_app.store.mongo import Document

DOCUMENT_VERSION: Final = 1


def days_document(calendar: Calendar) -> Document:
    """What people give, all of it: an absent part is null, so that an edit takes away what was there."""
    return {
        "dates": [{"date": each.date.isoformat(), "name": each.name} for each in calendar.dates],
        "country": calendar.country,
        "subdivision": calendar.subdivision,
        "exchange": calendar.exchange,
        "weekend": [WEEKDAYS[day] for day in calendar.weekend],
        "categories": list(calendar.categories) or None,
        "working_weekends": calendar.working_weekends or None,
    }


def to_calendar_document(named: NamedCalendar) -> Document:
    """The document of a new calendar."""
    return {
        "_id": named.id,
        "v": DOCUMENT_VERSION,
        "tenant": named.tenant,
        "name": named.name,
        **days_document(named.calendar),
        "version": named.version,
        "days_version": named.days_version,
        "holiday_data": named.holiday_data,
        "created_at": named.created_at,
        "updated_at": named.updated_at,
    }


def from_calendar_document(row: Mapping[str, Any]) -> NamedCalendar:
    """Raises Corrupt for a document edited by hand, and Newer for a newer release's."""
    version(row.get("v"), DOCUMENT_VERSION)
    get = row.get
    weekend = [
        WEEKDAYS.index(one_of(each, "an item of weekend", WEEKDAYS))
        for each in items(get("weekend"), "weekend")
    ]
    dates = items(get("dates"), "dates")
    if len(dates) > MAX_DATES:
        raise Corrupt(f"dates has {len(dates)} items, not {MAX_DATES} at most")
    try:
        calendar = Calendar.of(
            dates=tuple([_date(each) for each in dates]),
            country=optional(text, get("country"), "country"),
            subdivision=optional(text, get("subdivision"), "subdivision"),
            exchange=optional(text, get("exchange"), "exchange"),
            weekend=tuple(weekend),
            categories=tuple(
                [text(each, "an item of categories") for each in items(get("categories") or [], "categories")]
            ),
            working_weekends=bool(optional(flag, get("working_weekends"), "working_weekends")),
        )
    except InvalidField as error:
        raise Corrupt(f"{error.field}: {error.message}") from None
    return NamedCalendar(
        tenant=tenant(get("tenant"), "tenant", text(row["_id"], "_id")),
        name=text(get("name"), "name"),
        calendar=calendar,
        created_at=instant(get("created_at"), "created_at"),
        updated_at=instant(get("updated_at"), "updated_at"),
        version=whole(get("version"), "version", least=1),
        days_version=whole(get("days_version"), "days_version", least=1),
        holiday_data=optional(text, get("holiday_data"), "holiday_data"),
        changed_at=optional(instant, get("changed_at"), "changed_at"),
        deleted_at=optional(instant, get("deleted_at"), "deleted_at"),
        remade=Remade(
            moved=whole(get("moved") or 0, "moved"), unchanged=whole(get("unchanged") or 0, "unchanged")
        ),
    )


def _date(value: Any) -> NamedDate:
    row = fields(value, "an item of dates")
    written = text(row.get("date"), "dates.date")
    try:
        return NamedDate(date.fromisoformat(written), text(row.get("name"), "dates.name"))
    except ValueError:
        raise Corrupt(f"dates.date is {written[:40]!r}, not a date such as 2027-01-02") from None
