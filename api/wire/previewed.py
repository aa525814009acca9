"""The occurrences of a trigger as a preview shows them, and what a calendar did to them."""

from collections.abc import Sequence
from datetime import UTC, datetime

from api.json_types import Loaded, View
from api.wire.schedule_fields import warnings_of
from scheduler_app.domain.calendars import CalendarUse, days_of
from scheduler_app.domain.draft import Draft
from scheduler_app.domain.not_given import NOT_GIVEN
from scheduler_app.domain.recurrence import AnyRecurrence, Occurrence, Recurrence
from scheduler_app.domain.schedule import TICK
from scheduler_app.domain.triggers import FIELDS, Trigger, TriggerContext, new_trigger
from scheduler_app.store import Store
from scheduler_app.usecases.calendars import with_calendar

#: Later occurrences are not looked for: Python's calendar ends with this year.
END = datetime(9999, 12, 31, tzinfo=UTC)


def previewed_input(given: Loaded, store: Store, now: datetime, *, tenant: str) -> View:
    """The fields of PreviewOutput for a trigger that is not saved. `given` is what PreviewInput has loaded,
    and is used up; the trigger is given at `now` unless it says otherwise. Raises InvalidField."""
    at = given.pop("at", None) or now
    limit, after = given.pop("limit"), given.pop("after", at)
    written = {name: given.pop(name) for name in FIELDS if name in given}
    name, on_holiday = given.pop("calendar", NOT_GIVEN), given.pop("on_holiday", NOT_GIVEN)
    draft = with_calendar(Draft(calendar=name, on_holiday=on_holiday), store, tenant=tenant)
    context = TriggerContext(at, **given, timezone_given="timezone" in given, calendar=name is not NOT_GIVEN)
    trigger = new_trigger(written, context)
    calendar, recurrence = draft.observed(None, trigger), trigger.recurrence(at)
    observing = recurrence if calendar is None else calendar.observed_by(recurrence)
    return previewed(trigger, calendar, observing, after, limit)


def previewed(
    trigger: Trigger, calendar: CalendarUse | None, recurrence: AnyRecurrence, after: datetime, limit: int
) -> View:
    """The fields of PreviewOutput: at most `limit` occurrences of `recurrence`, which is the trigger's as
    `calendar` leaves it, after `after`. Raises InvalidRecurrence when it takes too long to tell."""
    found = recurrence.occurrences(after + TICK, END, limit) if after < END else []
    view: View = {
        "trigger": dict(trigger.written),
        "occurrences": [
            {"run_time": each.instant, "local": each.local.isoformat(), "dst": each.dst}
            | _rolled(each, calendar)
            for each in found
        ],
        **_skipped(recurrence, calendar, after, found, limit),
        "warnings": warnings_of(trigger, calendar, recurrence),
        "description": recurrence.description,
    }
    return view | ({"recurrence": recurrence.text} if isinstance(recurrence, Recurrence) else {})


def _rolled(each: Occurrence, calendar: CalendarUse | None) -> View:
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
) -> View:
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
