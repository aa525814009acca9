"""Ranges that edits leave to beats, and what they share with their schedule's document: its calendar and its
jitter."""

from collections.abc import Mapping
from typing import Any, cast, get_args

from scheduler_app.domain.calendars import CalendarUse
from scheduler_app.domain.field_types import fields, instant, number, one_of, optional, text, whole
from scheduler_app.domain.jitter import MAX_JITTER_SECONDS
from scheduler_app.domain.owed import OwedRange
from scheduler_app.domain.recurrence import OnHoliday
from scheduler_app.store.mongo import Document
from scheduler_app.store.schedules.trigger_documents import read_trigger, trigger_document


def to_owed_document(owed: OwedRange) -> Document:
    document = {
        "revision": owed.revision,
        **trigger_document(owed.trigger),
        "next_run_at": owed.next_run_at,
        "until": owed.until,
        "checkpoint": dict(owed.checkpoint) if owed.checkpoint else None,
        **use_document(owed.calendar),
        "jitter_seconds": owed.jitter_seconds or None,
    }
    return {key: value for key, value in document.items() if value is not None}


def from_owed_document(row: Mapping[str, Any]) -> OwedRange:
    """Raises Corrupt."""
    fields(row, "an item of owed")
    return OwedRange(
        revision=whole(row.get("revision"), "owed.revision", least=1),
        trigger=read_trigger(row),
        next_run_at=instant(row.get("next_run_at"), "owed.next_run_at"),
        until=instant(row.get("until"), "owed.until"),
        checkpoint=optional(fields, row.get("checkpoint"), "owed.checkpoint"),
        calendar=read_use(row),
        jitter_seconds=read_jitter(row),
    )


def read_jitter(row: Mapping[str, Any]) -> float:
    """Raises Corrupt."""
    seconds = row.get("jitter_seconds")
    return 0.0 if seconds is None else number(seconds, "jitter_seconds", most=MAX_JITTER_SECONDS)


def use_document(use: CalendarUse | None) -> Document:
    """The fields that `read_use` reads; None if no calendar is observed."""
    return {
        "calendar": use and use.name,
        "on_holiday": use and use.on_holiday,
        "calendar_days": use and use.days_version,
    }


def read_use(row: Mapping[str, Any]) -> CalendarUse | None:
    """Raises Corrupt."""
    name = optional(text, row.get("calendar"), "calendar")
    if name is None:
        return None
    return CalendarUse(
        name,
        cast(OnHoliday, one_of(row.get("on_holiday"), "on_holiday", get_args(OnHoliday))),
        whole(row.get("calendar_days"), "calendar_days"),
    )
