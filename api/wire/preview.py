"""Previews and explanations: when a trigger fires, before or after it is saved, and why or why not."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from marshmallow import ValidationError, validate, validates, validates_schema

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.event import EventOutput
from scheduler_app.api.wire.field_types import Instant, LocalOrInstant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema
from scheduler_app.api.wire.promise import PromiseOutput, promise_flag
from scheduler_app.api.wire.schedule import event_shown, time_shown
from scheduler_app.api.wire.schedule_fields import PREVIEW_FIELDS, TRIGGER_OUTPUT_FIELDS, warnings_of
from scheduler_app.domain.calendars import CalendarUse
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.event import due
from scheduler_app.domain.explanation import Explanation
from scheduler_app.domain.ids import name_of, whole_id
from scheduler_app.domain.recurrence import AnyRecurrence, Occurrence, Reason, Recurrence
from scheduler_app.domain.recurrence.zones import local_in, timezone_named
from scheduler_app.domain.resources.schedule import MAX_TIMEZONE
from scheduler_app.domain.schedule import TICK, Schedule
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.domain.triggers import FIELDS, Trigger, new_trigger
from scheduler_app.store.events.events import EventRecord
from scheduler_app.usecases.deeds.calendars import CalendarService


class Jitter(NamedTuple):
    """The jitter of a schedule, or of a trigger that is not saved: that has no id, unless one was given."""

    seconds: float
    schedule_id: str | None

    def shown(self, instant: datetime) -> View:
        """The fields that OccurrenceOutput has for it."""
        if not self.seconds:
            return {}
        if self.schedule_id is not None:
            return {"due_at": due(self.schedule_id, instant, self.seconds)}
        return {"earliest": instant, "latest": instant + timedelta(seconds=self.seconds)}


#: Occurrences in one answer.
MAX_OCCURRENCES: Final = 1_000


class PreviewQuery(InputSchema):
    """Which occurrences to show."""

    after = Instant("The first occurrence shown comes after this instant; default: now")
    until = Instant("No occurrence shown comes after this instant; default: no end")
    limit = fields.Integer("How many at most", load_default=10, validate=validate.Range(1, MAX_OCCURRENCES))
    display_timezone = fields.String(
        "The IANA zone of the local times shown; default: the trigger's own",
        validate=validate.Length(1, MAX_TIMEZONE),
        example="Asia/Tokyo",
    )

    @validates("display_timezone")
    def check_zone(self, value: str, **_: object) -> None:
        try:
            timezone_named(value)
        except InvalidField as error:
            raise ValidationError(error.message) from None

    @validates_schema
    def check_span(self, data: Loaded, **_: object) -> None:
        after: datetime | None = data.get("after")
        if after is not None and "until" in data and data["until"] < after:
            raise ValidationError("must not be before after", "until")


class SavedPreviewQuery(PreviewQuery):
    """Which occurrences of a saved schedule to show, and what else."""

    promise = promise_flag()


class PreviewInput(PreviewQuery):
    """A trigger that is not saved, and which of its occurrences."""

    class Meta(PreviewQuery.Meta):
        include = PREVIEW_FIELDS

    at = Instant(
        "The instant at which the trigger is given: delays, intervals and a missing"
        " DTSTART count from it; default: now"
    )


class OccurrenceBlackout(OutputSchema):
    """The blackout that an occurrence falls into."""

    name = fields.String(required=True)
    until = Instant("When nothing keeps it from being sent any more", required=True)
    policy = fields.String(
        "Whether it is skipped, or sent then", required=True, validate=validate.OneOf(["skip", "postpone"])
    )


class OccurrenceOutput(OmitNone):
    """One occurrence."""

    run_time = Instant("The instant, in UTC", required=True)
    local = fields.String(
        "The same instant in the trigger's zone or in `display_timezone`, with its offset",
        required=True,
        example="2026-10-25T02:30:00+02:00",
    )
    dst = fields.String(
        "What a clock change did: a local time that does not exist fires later by the"
        " gap's length, one that exists twice fires the first or the last time. Absent otherwise",
        validate=validate.OneOf(["gap_shifted", "overlap_first", "overlap_last"]),
    )
    due_at = Instant("When its callback falls due, with its jitter; absent without jitter")
    earliest = Instant(
        "Of a schedule that has jitter and no id yet: when its callback falls due at the earliest"
    )
    latest = Instant("And when at the latest")
    blackout = fields.Nested(
        OccurrenceBlackout, "Of a saved schedule: what keeps it from being sent at its time"
    )
    rolled_from = fields.String(
        "The local time from which a closed day of the calendar moved it", example="2026-12-25T09:00:00+01:00"
    )
    reason = fields.String("Why it was moved: the holiday, or the weekend day", example="Christmas Day")


class SkippedOutput(OutputSchema):
    """A time at which nothing fires, because the calendar is closed."""

    local = fields.String(
        "The time in the trigger's zone, with its offset", required=True, example="2026-12-25T09:00:00+01:00"
    )
    reason = fields.String("The holiday, or the weekend day", required=True, example="Christmas Day")


class WrittenTrigger(OutputSchema):
    """The fields of a trigger as they were written."""

    class Meta(OutputSchema.Meta):
        include = TRIGGER_OUTPUT_FIELDS


class PreviewOutput(OutputSchema):
    """When a trigger fires."""

    trigger = fields.Nested(WrittenTrigger, "What was asked for")

    occurrences = fields.List(OccurrenceOutput, "The next occurrences, the earliest first", required=True)
    skipped = fields.List(
        SkippedOutput,
        "What the calendar takes away among these occurrences, `limit` of them at most; absent for nothing",
    )
    warnings = fields.List(
        fields.String(), "What may surprise the person who wrote the trigger", required=True
    )
    description = fields.String("What the trigger says, in words")
    recurrence = fields.String("The trigger as an RFC 5545 recurrence with its DTSTART made explicit")
    promise = fields.Nested(
        PromiseOutput, "Where the request asks for it; of a trigger that is not saved without a receiver"
    )


#: Later occurrences are not looked for: Python's calendar ends with this year.
END = datetime(9999, 12, 31, tzinfo=UTC)


class PreviewedTrigger(NamedTuple):
    """What a preview is made of, in the order in which `preview_shown` takes it."""

    trigger: Trigger
    calendar: CalendarUse | None
    recurrence: AnyRecurrence
    after: datetime
    query: Loaded
    jitter: Jitter


def unsaved_trigger(
    tenant: str, given: Loaded, calendars: CalendarService, now: datetime
) -> PreviewedTrigger:
    """A trigger that is not saved. `given` is what PreviewInput has loaded, and is used up; the trigger is
    given at `now` unless it says otherwise. Raises InvalidField."""
    at: datetime = given.pop("at", None) or now
    query = {name: given.pop(name) for name in PreviewQuery().fields if name in given}
    written = {name: given.pop(name) for name in FIELDS if name in given}
    jitter = Jitter(given.pop("jitter_seconds", 0.0), given.pop("id", None))
    draft = calendars.named_in(tenant, ScheduleDraft(**given))
    trigger = new_trigger(written, draft.context(None, None, at))
    calendar, recurrence = draft.observed(None, trigger), trigger.recurrence(at)
    observing = recurrence if calendar is None else calendar.observed_by(recurrence)
    return PreviewedTrigger(trigger, calendar, observing, query.get("after", at), query, jitter)


def unsaved_schedule(tenant: str, given: Loaded, calendars: CalendarService, now: datetime) -> Schedule:
    """A schedule with this trigger, which calls nobody; `given` as above, and kept. Raises InvalidField."""
    at: datetime = given.get("at") or now
    others = {*PreviewQuery().fields, *FIELDS, "at", "id"}
    draft = ScheduleDraft(
        name="preview",
        url="http://localhost/",
        trigger={name: given[name] for name in FIELDS if name in given},
        **{name: value for name, value in given.items() if name not in others},
    )
    schedule_id = whole_id(tenant, name_of(given.get("id") or "preview"))
    return calendars.named_in(tenant, draft).schedule(schedule_id, at, max_retries=0)


def preview_shown(
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


class WhyQuery(InputSchema):
    """Which instant is asked about."""

    at = LocalOrInstant(
        "The instant, past or future; without an offset it is read in the schedule's zone",
        required=True,
        example="2030-01-05T12:00:00Z",
    )

    @validates("at")
    def check_at(self, value: datetime, **_: object) -> None:
        # At the very ends of the calendar an instant has no local time in every zone.
        if not 1 < value.year < 9999:
            raise ValidationError("must lie in the years 2 to 9998")


class ReasonOutput(OmitNone):
    """Why it does not fire, or why it does."""

    code = fields.String(
        "The part of RFC 5545 that leaves the instant out (`DTSTART`, `INTERVAL`, `BYDAY`,"
        " `UNTIL`, `EXDATE`, …), or in small letters what else does: `holiday`, `gap`, `overlap`,"
        " `run_at`, `on_demand`, `created`, `cut`, `paused`, `blackout`, `error`, `finished`, `deleted`,"
        " or the state of its event (`cancelled`, `expired`, `skipped`). Of a cause: `RRULE`, `RDATE`,"
        " `DTSTART` or `run_at` names it; `SKIP`, `gap`, `holiday` or `jitter` moved it; `overlap` chose"
        " it",
        required=True,
        example="BYDAY",
    )
    message = fields.String("The reason in words", required=True)
    rule = fields.String("The rule of the recurrence that the reason is about")


class WhyOutput(OutputSchema):
    """Why a schedule fires at an instant, or does not."""

    at = fields.Nested(OccurrenceOutput, "The instant asked about", required=True)
    fires = fields.Boolean(
        "Whether it fires then; for the past, whether its event was not withdrawn", required=True
    )
    reason = fields.Nested(ReasonOutput, "The first reason; absent where it fires")
    further_reasons = fields.List(
        ReasonOutput,
        "What else keeps it from firing: of the other rules, or the schedule's state",
        required=True,
    )
    causes = fields.List(
        ReasonOutput, "Why it fires: what names it, and what moved it; empty where it does not", required=True
    )
    previous = fields.Nested(
        OccurrenceOutput, "The last occurrence of the trigger before it, as the trigger is now"
    )
    next = fields.Nested(
        OccurrenceOutput, "The first occurrence of the trigger after it, as the trigger is now"
    )
    event = fields.Nested(EventOutput, "The event at that instant, if there is one")
    warnings = fields.List(fields.String(), "What this answer could not tell", required=True)


def explanation_shown(
    explanation: Explanation, event: EventRecord | None, timezone: str, jitter: Jitter
) -> View:
    """The fields of WhyOutput."""
    verdict, reasons = explanation.verdict, [_reason(each) for each in explanation.reasons]
    view: View = {
        "at": time_shown(explanation.at, timezone) | (jitter.shown(explanation.at) if verdict.fires else {}),
        "fires": explanation.fires,
        "further_reasons": reasons[1:],
        "causes": [_reason(each) for each in explanation.causes],
        "warnings": list(explanation.warnings),
    }
    if reasons:
        view["reason"] = reasons[0]
    for name, instant in (("previous", verdict.previous), ("next", verdict.following)):
        if instant is not None:
            view[name] = time_shown(instant, timezone) | jitter.shown(instant)
    if event is not None:
        view["event"] = event_shown(event)
    return view


def _reason(reason: Reason) -> View:
    return {"code": reason.code, "message": reason.message, "rule": reason.rule}
