"""Schedules as the wire shows them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from api.trigger_fields import shown_value
from scheduler_app.domain.calendars import CalendarUse, days_of
from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.masking import MASK, masked, masked_url
from scheduler_app.domain.recurrence import AnyRecurrence, Occurrence, Recurrence
from scheduler_app.domain.schedule import TICK, LastRun, Schedule, ScheduleState
from scheduler_app.domain.signing import Signing
from scheduler_app.domain.triggers import Trigger
from scheduler_app.store.unreadable import Unreadable

#: Later instants are not looked for: the calendar of Python ends that year.
END = datetime(9999, 12, 31, tzinfo=UTC)


def shown(schedule: Schedule | Unreadable, now: datetime) -> dict[str, Any]:
    """The fields of ScheduleOutput; what there is nothing to say of is left out."""
    if isinstance(schedule, Unreadable):
        return {"id": schedule.schedule_id, "state": ScheduleState.ERROR.value, "reason": schedule.reason}
    trigger, action, retry = schedule.trigger, schedule.action, schedule.retry
    view: dict[str, Any] = {
        "id": schedule.id,
        "name": schedule.name,
        **trigger.written,
        "timezone": trigger.timezone,
        "gap": trigger.gap,
        "overlap": trigger.overlap,
        "calendar": schedule.calendar.name if schedule.calendar else None,
        "on_holiday": schedule.calendar.on_holiday if schedule.calendar else None,
        "callback_url": masked_url(action.url),
        "method": action.method,
        "headers": dict(masked(action.headers)),
        "max_retries": retry.max_retries,
        "retry_backoff_seconds": retry.backoff_seconds,
        "retry_backoff_max_seconds": retry.backoff_max_seconds,
        "retry_codes": retry.codes,
        "timeout_seconds": schedule.timeout_seconds,
        "success_codes": schedule.success,
        "tags": list(schedule.tags),
        "state": schedule.state.value,
        "reason": schedule.reason,
        "version": schedule.version,
        "revision": schedule.revision,
        "created_at": schedule.created_at,
        "updated_at": schedule.updated_at,
        **signing_shown(schedule.signing, now),
        **_recurrence(schedule, now),
        "last_run": _last_run(schedule.last_run),
    }
    if action.body is not None:
        view[action.body.kind.value] = MASK
    return {key: value for key, value in view.items() if value is not None}


def _last_run(last: LastRun | None) -> dict[str, Any] | None:
    if last is None:
        return None
    return {
        "time": last.time,
        "outcome": last.outcome,
        "event_id": last.event_id,
        "ended_at": last.ended_at,
    }


def signing_shown(signing: Signing | None, now: datetime) -> dict[str, Any]:
    """That callbacks are signed, and since when; never by what."""
    if signing is None:
        return {"signing": False}
    return {
        "signing": True,
        "signing_since": signing.since,
        "signing_overlap_until": signing.overlap_until(now),
    }


def previewed(
    trigger: Trigger, calendar: CalendarUse | None, created_at: datetime, after: datetime, limit: int
) -> dict[str, Any]:
    """The fields of PreviewOutput. Raises InvalidRecurrence when it takes too long to tell, or when the
    calendar cannot be read."""
    recurrence = trigger.recurrence(created_at)
    if calendar is not None:
        recurrence = calendar.observed_by(recurrence)
    found = recurrence.occurrences(after + TICK, END, limit) if after < END else []
    view: dict[str, Any] = {
        "trigger": {name: shown_value(value) for name, value in trigger.written.items()},
        "occurrences": [
            {"run_time": each.instant, "local": each.local.isoformat(), "dst": each.dst}
            | _rolled(each, calendar)
            for each in found
        ],
        **_skipped(recurrence, calendar, after, found, limit),
        "warnings": _warnings(trigger, calendar, recurrence),
        "description": recurrence.description,
    }
    return view | ({"recurrence": recurrence.text} if isinstance(recurrence, Recurrence) else {})


def _warnings(trigger: Trigger, calendar: CalendarUse | None, recurrence: AnyRecurrence) -> list[str]:
    of_calendar = calendar.warnings(recurrence, trigger.timezone) if calendar else ()
    return [*trigger.warnings, *recurrence.warnings, *of_calendar]


def _rolled(each: Occurrence, calendar: CalendarUse | None) -> dict[str, str]:
    if each.rolled_from is None:
        return {}
    return {
        "rolled_from": each.rolled_from.isoformat(),
        "reason": _closed_by(calendar, each.rolled_from),
    }


def _skipped(
    recurrence: AnyRecurrence,
    calendar: CalendarUse | None,
    after: datetime,
    found: Sequence[Occurrence],
    limit: int,
) -> dict[str, Any]:
    """What a calendar takes away up to the last occurrence that is shown, `limit` at most."""
    if not isinstance(recurrence, Recurrence) or after >= END:
        return {}
    end = found[-1].instant if len(found) == limit else END
    skipped = [
        {"local": each.isoformat(), "reason": _closed_by(calendar, each)}
        for each in recurrence.left_out(after + TICK, end, limit)
    ]
    return {"skipped": skipped} if skipped else {}


def _closed_by(calendar: CalendarUse | None, local: datetime) -> str:
    known = calendar.known if calendar else None
    day = days_of(known.calendar).day(local.date()) if known else None
    return day.name if day else ""


def _recurrence(schedule: Schedule, now: datetime) -> dict[str, Any]:
    try:
        recurrence = schedule.recurrence()
        active = schedule.state is ScheduleState.ACTIVE
        view: dict[str, Any] = {
            "description": recurrence.description,
            "warnings": _warnings(schedule.trigger, schedule.calendar, recurrence),
        }
        if active and (following := recurrence.after(now)):
            view |= {"next_run_at": following, "next_run": {"time": following}}
    except InvalidRecurrence as error:
        return {"warnings": [f"the stored rule no longer evaluates: {error}"]}
    if isinstance(recurrence, Recurrence):
        view |= {"recurrence": recurrence.text, "dtstart": recurrence.dtstart}
    return view
