"""The occurrences of a trigger as a preview shows them, and what a calendar did to them."""

from collections.abc import Sequence
from datetime import UTC, datetime

from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.jittered import Jitter
from scheduler_app.api.wire.preview import PreviewQuery
from scheduler_app.api.wire.schedule_fields import warnings_of
from scheduler_app.domain.calendars import CalendarUse
from scheduler_app.domain.draft import Draft
from scheduler_app.domain.local_time import local_in
from scheduler_app.domain.recurrence import AnyRecurrence, Occurrence, Recurrence
from scheduler_app.domain.schedule import TICK
from scheduler_app.domain.tenants import whole_id
from scheduler_app.domain.triggers import FIELDS, Trigger, new_trigger
from scheduler_app.store import Store
from scheduler_app.usecases.calendars import with_calendar

#: Later occurrences are not looked for: Python's calendar ends with this year.
END = datetime(9999, 12, 31, tzinfo=UTC)


def previewed_input(given: Loaded, store: Store, now: datetime, *, tenant: str) -> View:
    """The fields of PreviewOutput for a trigger that is not saved. `given` is what PreviewInput has loaded,
    and is used up; the trigger is given at `now` unless it says otherwise. Raises InvalidField."""
    at: datetime = given.pop("at", None) or now
    query = {name: given.pop(name) for name in PreviewQuery().fields if name in given}
    written = {name: given.pop(name) for name in FIELDS if name in given}
    jitter = Jitter(given.pop("jitter_seconds", 0.0), _whole_id(given.pop("id", None), tenant))
    draft = with_calendar(Draft(**given), store, tenant=tenant)
    trigger = new_trigger(written, draft.context(None, None, at))
    calendar, recurrence = draft.observed(None, trigger), trigger.recurrence(at)
    observing = recurrence if calendar is None else calendar.observed_by(recurrence)
    return previewed(trigger, calendar, observing, query.get("after", at), query, jitter)


def previewed(
    trigger: Trigger,
    calendar: CalendarUse | None,
    recurrence: AnyRecurrence,
    after: datetime,
    query: Loaded,
    jitter: Jitter,
) -> View:
    """The fields of PreviewOutput: occurrences of `recurrence`, which is the trigger's as `calendar` leaves
    it, after `after`, as many and in the zone that the PreviewQuery `query` says. Raises InvalidRecurrence
    when it takes too long to tell."""
    # `until` is included.
    end, limit = min(query.get("until", END), END - TICK) + TICK, query["limit"]
    found = recurrence.occurrences(after + TICK, end, limit) if after < end else []
    shown_in = query.get("display_timezone")
    view: View = {
        "trigger": dict(trigger.written),
        "occurrences": [
            {"run_time": each.instant, "local": _shown(each.local, shown_in), "dst": each.dst}
            | _rolled(each, calendar, shown_in)
            | jitter.shown(each.instant)
            for each in found
        ],
        **_skipped(recurrence, calendar, (after, end), found, query),
        "warnings": warnings_of(trigger, calendar, recurrence, after, found[-1].instant if found else None),
        "description": recurrence.description,
    }
    return view | ({"recurrence": recurrence.text} if isinstance(recurrence, Recurrence) else {})


def _whole_id(schedule_id: str | None, tenant: str) -> str | None:
    return None if schedule_id is None else whole_id(tenant, schedule_id)


def _shown(local: datetime, timezone: str | None) -> str:
    """An aware time, in the zone that is asked for or else its own."""
    return (local if timezone is None else local_in(local, timezone)).isoformat()


def _rolled(each: Occurrence, calendar: CalendarUse | None, timezone: str | None) -> View:
    if each.rolled_from is None:
        return {}
    return {
        "rolled_from": _shown(each.rolled_from, timezone),
        "reason": _closed_by(calendar, each.rolled_from),
    }


def _skipped(
    recurrence: AnyRecurrence,
    calendar: CalendarUse | None,
    span: tuple[datetime, datetime],
    found: Sequence[Occurrence],
    query: Loaded,
) -> View:
    """What a calendar takes away up to the last occurrence that is shown, `limit` at most."""
    (after, end), limit = span, query["limit"]
    if not isinstance(recurrence, Recurrence) or after >= end:
        return {}
    end = found[-1].instant if len(found) == limit else end
    skipped = [
        {"local": _shown(each, query.get("display_timezone")), "reason": _closed_by(calendar, each)}
        for each in recurrence.left_out(after + TICK, end, limit)
    ]
    return {"skipped": skipped} if skipped else {}


def _closed_by(calendar: CalendarUse | None, local: datetime) -> str:
    known = calendar.known if calendar else None
    day = known.days.day(local.date()) if known else None
    return day.name if day else ""
