"""When a schedule runs, as documents keep it, and back: its trigger, its calendar, its jitter, and the ranges
that edits leave to beats.

`rrule`, `pinned`, `run_at`, `timezone`, `gap` and `overlap` are fields of the document itself, as they
were before there were more kinds than `rrule` and `run_at`. Any other kind adds `trigger`: what was
written, beside the `pinned` or `run_at` that it became, by which a process of the release before delivers
it too.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, cast, get_args

from scheduler_app.domain.calendars import CalendarUse
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.event import MAX_JITTER_SECONDS
from scheduler_app.domain.recurrence import Gap, OnHoliday, Overlap
from scheduler_app.domain.resource_fields import FieldType, Flag, Moment, ResourceField, Text, Whole, Word
from scheduler_app.domain.schedule import OwedRange
from scheduler_app.domain.stored_fields import (
    Check,
    Corrupt,
    Newer,
    fields,
    flag,
    instant,
    items,
    number,
    one_of,
    optional,
    text,
    whole,
    wrong,
)
from scheduler_app.domain.triggers import BY_NAME, Trigger, TriggerKind, Value, check_value
from scheduler_app.store.mongo import Document

RRULE, RUN_AT = BY_NAME["rrule"], BY_NAME["run_at"]
#: The `run_at` of a schedule that only runs on demand, for processes of the release before, which know no
#: such schedule: to them it runs once, on a day that does not come.
NEVER = datetime(9998, 12, 31, tzinfo=UTC)

_CHECKS: Final[Mapping[type[FieldType], Check]] = {
    Text: text,
    Word: text,
    Whole: whole,
    Flag: flag,
    Moment: instant,
}


def trigger_document(trigger: Trigger) -> Document:
    """The fields of the document; those that this trigger does not have are None."""
    plain_rule, plain_instant = trigger.kind is RRULE, trigger.kind is RUN_AT and trigger.pinned is None
    run_at = trigger.instant if trigger.fires_by_itself else NEVER
    return {
        "rrule": trigger.written["rrule"] if plain_rule else None,
        "pinned": trigger.pinned,
        "run_at": run_at,
        "timezone": trigger.timezone,
        "gap": trigger.gap,
        "overlap": trigger.overlap,
        "trigger": None if plain_rule or plain_instant else _written_document(trigger, run_at),
    }


def read_trigger(row: Mapping[str, Any]) -> Trigger:
    """The trigger in a schedule's document. Raises Corrupt, and Newer for a kind of a newer release."""
    rrule = optional(text, row.get("rrule"), "rrule")
    pinned = optional(text, row.get("pinned"), "pinned")
    run_at = optional(instant, row.get("run_at"), "run_at")
    if run_at is None and pinned is None:
        raise Corrupt("run_at and pinned are both missing: nothing says when it fires")
    kept = optional(fields, row.get("trigger"), "trigger") or {}
    kind: TriggerKind
    written: Mapping[str, Value]
    # A process of the release before that gives the schedule a rule or an instant leaves `trigger` behind.
    if not kept or rrule is not None or kept.get("run_at") != run_at:
        kept = {}
        kind, written = (
            (RRULE, {"rrule": rrule or pinned}) if run_at is None else (RUN_AT, {"run_at": run_at})
        )
    else:
        kind, written = _read_written(kept)
    return Trigger(
        kind=kind,
        written=written,
        pinned=pinned,
        instant=None if kept and run_at == NEVER else run_at,
        timezone=text(row.get("timezone"), "timezone"),
        # Their words are checked where the recurrence is parsed: a wrong one has a warning of its own.
        gap=cast(Gap, text(row.get("gap"), "gap")),
        overlap=cast(Overlap, text(row.get("overlap"), "overlap")),
        warnings=tuple(
            [
                text(each, "an item of trigger.warnings")
                for each in items(kept.get("warnings", []), "trigger.warnings")
            ]
        ),
        on_holiday=optional(_holiday_word, kept.get("on_holiday"), "trigger.on_holiday"),
    )


def _written_document(trigger: Trigger, run_at: datetime | None) -> Document:
    document: Document = {
        "kind": trigger.kind.name,
        "written": {name: _stored(value) for name, value in trigger.written.items()},
        "run_at": run_at,
        "warnings": list(trigger.warnings) or None,
        "on_holiday": trigger.on_holiday,
    }
    return {key: value for key, value in document.items() if value is not None}


def _read_written(kept: Mapping[str, Any]) -> tuple[TriggerKind, Mapping[str, Value]]:
    name = text(kept.get("kind"), "trigger.kind")
    kind = BY_NAME.get(name)
    if kind is None:
        raise Newer(f"trigger.kind is {name[:50]!r}, which this release does not know")
    row = fields(kept.get("written"), "trigger.written")
    own = {field.name: field for field in kind.fields}
    if kind.name not in row or not own.keys() >= row.keys():
        raise Corrupt(f"trigger.written has {', '.join(row) or 'nothing'}, and is of the kind {kind.name}")
    return kind, {key: _written(own[key], value) for key, value in row.items()}


def _stored(value: Value) -> Value:
    """BSON's dates are instants: a local time is kept as text."""
    return value.isoformat() if isinstance(value, datetime) and value.tzinfo is None else value


def _written(field: ResourceField, value: Any) -> Value:
    name = f"trigger.written.{field.name}"
    found: Value
    if isinstance(field.type, Moment) and isinstance(value, str):
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            raise wrong(name, value, "a date or a local time") from None
    else:
        found = _CHECKS[type(field.type)](value, name)
    try:
        check_value(field, found)
    except InvalidField as error:
        raise Corrupt(f"{name} {error.message}") from None
    return found


def _holiday_word(value: Any, name: str) -> OnHoliday:
    return cast(OnHoliday, one_of(value, name, get_args(OnHoliday)))


def to_owed_document(owed: OwedRange) -> Document:
    document = {
        "revision": owed.revision,
        **trigger_document(owed.trigger),
        "next_run_at": owed.next_run_at,
        "until": owed.until,
        "checkpoint": dict(owed.checkpoint) if owed.checkpoint else None,
        **calendar_use_document(owed.calendar),
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
        calendar=read_calendar_use(row),
        jitter_seconds=read_jitter(row),
    )


def read_jitter(row: Mapping[str, Any]) -> float:
    """Raises Corrupt."""
    seconds = row.get("jitter_seconds")
    return 0.0 if seconds is None else number(seconds, "jitter_seconds", most=MAX_JITTER_SECONDS)


def calendar_use_document(use: CalendarUse | None) -> Document:
    """The fields that `read_calendar_use` reads; None if no calendar is observed."""
    return {
        "calendar": use and use.name,
        "on_holiday": use and use.on_holiday,
        "calendar_days": use and use.days_version,
    }


def read_calendar_use(row: Mapping[str, Any]) -> CalendarUse | None:
    """Raises Corrupt."""
    name = optional(text, row.get("calendar"), "calendar")
    if name is None:
        return None
    return CalendarUse(
        name,
        cast(OnHoliday, one_of(row.get("on_holiday"), "on_holiday", get_args(OnHoliday))),
        whole(row.get("calendar_days"), "calendar_days"),
    )
