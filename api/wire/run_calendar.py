"""The calendar of runs: what ran and what is to come, in parts of a time."""

from datetime import datetime, timedelta
from typing import Final

from marshmallow import ValidationError, validate, validates

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.field_types import DestinationId, Instant, ScheduleId
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema
from scheduler_app.domain.blackout import POLICIES
from scheduler_app.domain.calendars.calendar import DayKind
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.forecast import ForecastChoice
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.instants import check_storable
from scheduler_app.domain.kill_switch import Scope
from scheduler_app.domain.recurrence.zones import instant_at, local_in, timezone_named
from scheduler_app.domain.run_calendar import MOST_RARE, CalendarPart, RareSchedule, RunCalendar, RunOutcome
from scheduler_app.usecases.questions.run_calendar import MOST_NAMED, CalendarPeriod

DAY: Final = timedelta(days=1)
DAY_SECONDS: Final = 86_400
#: Parts of one answer, and the days of one that is told in days.
MAX_PARTS: Final = 1_000
MAX_DAYS: Final = 62
#: How far it may reach.
MAX_SPAN: Final = timedelta(days=366)
#: Without `to`, and without `bucket`.
USUAL: Final = timedelta(days=7)
USUAL_BUCKET: Final = 3_600


def check_zone(name: str) -> None:
    """Raises ValidationError for a name that is no time zone's."""
    try:
        timezone_named(name)
    except InvalidField as error:
        raise ValidationError(error.message) from None


class RunCalendarQuery(InputSchema):
    """Which time to look at, in which parts, and which runs."""

    start = Instant("Where it begins; default: the beginning of today in `timezone`", data_key="from")
    end = Instant("Where it ends; default: a week after `from`", data_key="to")
    bucket = fields.Integer(
        f"The length of its parts in seconds, of which there may be {MAX_PARTS:,}; {DAY_SECONDS:,} are the"
        f" days of `timezone`, however long each is, {MAX_DAYS} of them at most",
        load_default=USUAL_BUCKET,
        validate=validate.Range(60, round(MAX_SPAN.total_seconds())),
    )
    timezone = fields.String(
        "Whose days are meant", load_default="UTC", validate=validate.Length(max=200), example="Europe/Zurich"
    )
    tag = fields.String("Runs of the schedules with this tag", validate=validate.Length(1, 64))
    destination = DestinationId("Runs of the schedules that name this destination now, and messages to it")
    schedule_id = ScheduleId("Runs of this schedule")

    @validates("timezone")
    def check_timezone(self, value: str, **_: object) -> None:
        check_zone(value)


_MEANINGS: Final = {
    RunOutcome.DONE: "Runs that succeeded, in however many attempts",
    RunOutcome.FAILED: "Runs that were given up: dead letters",
    RunOutcome.DID_NOT_RUN: "Runs that were cancelled, skipped or too late; what an edit withdrew before it"
    " was due counts as nothing",
    RunOutcome.HELD: "Runs that were due, and that a kill switch holds",
    RunOutcome.WAITING: "Runs that were due and have not ended: they wait, are under way, or are about to be"
    " tried again",
    RunOutcome.TO_COME: "Callbacks that fall due from now on, as the forecast counts them",
}


class CalendarPartOutput(OutputSchema):
    """One part of the time."""

    start = Instant("Where it begins", required=True, data_key="from")
    end = Instant("Where it ends", required=True, data_key="to")
    done = fields.Integer(_MEANINGS[RunOutcome.DONE], required=True)
    tried_again = fields.Integer("Those of `done` that took more than one attempt", required=True)
    failed = fields.Integer(_MEANINGS[RunOutcome.FAILED], required=True)
    did_not_run = fields.Integer(_MEANINGS[RunOutcome.DID_NOT_RUN], required=True)
    held = fields.Integer(_MEANINGS[RunOutcome.HELD], required=True)
    waiting = fields.Integer(_MEANINGS[RunOutcome.WAITING], required=True)
    to_come = fields.Integer(_MEANINGS[RunOutcome.TO_COME], required=True)


class NamedRunOutput(OmitNone):
    """A run by itself."""

    at = Instant("When it is or was due", required=True)
    outcome = fields.String(
        "What became of it",
        required=True,
        validate=validate.OneOf([each.value for each in RunOutcome]),
    )
    event_id = fields.String("Its event; absent where there is none yet")


class RareScheduleOutput(OutputSchema):
    """A schedule that runs rarely."""

    schedule_id = fields.String("The schedule's id", required=True)
    name = fields.String("Its name", required=True)
    runs = fields.List(NamedRunOutput, f"All of its runs in the time, {MOST_RARE} at most", required=True)


class CalendarBlackout(OmitNone):
    """A window in which nothing is sent of what a blackout is about."""

    name = fields.String("The blackout's name", required=True)
    start = Instant("When the window begins", required=True, data_key="from")
    end = Instant("When it ends", required=True, data_key="to")
    policy = fields.String("What becomes of its runs", required=True, validate=validate.OneOf(POLICIES))
    target = fields.String(
        "What it is about", required=True, validate=validate.OneOf([each.value for each in Scope])
    )
    of = fields.String("Which tag, destination or schedule; absent for everything")


class CalendarClosedDay(OutputSchema):
    """A day that a calendar closes which one of the schedules to come observes."""

    calendar = fields.String("The calendar's name", required=True)
    date = fields.JsonDate("The day", required=True)
    name = fields.String("What it is called", required=True)
    kind = fields.String(
        "Why it is closed", required=True, validate=validate.OneOf([each.value for each in DayKind])
    )


class RunCalendarOutput(OutputSchema):
    """What ran, and what is to come."""

    start = Instant("Where the time begins", required=True, data_key="from")
    end = Instant("Where it ends", required=True, data_key="to")
    now = Instant("Up to when it is the past", required=True)
    to_come_at = Instant(
        "When what is to come was counted: where that takes long, it is shown for a minute at most",
        required=True,
    )
    buckets = fields.List(CalendarPartOutput, "Its parts in their order", required=True)
    rare = fields.List(
        RareScheduleOutput,
        f"The schedules with at most {MOST_RARE} runs in the time, {MOST_NAMED} at most, in the order of"
        " their first runs. Their runs are among the numbers, too",
        required=True,
    )
    rare_omitted = fields.Integer("How many other such schedules there are", required=True)
    blackouts = fields.List(CalendarBlackout, "Windows of blackouts, in their order", required=True)
    closed_days = fields.List(
        CalendarClosedDay,
        "Closed days of the calendars that schedules with runs to come observe",
        required=True,
    )
    sampled = fields.Boolean(
        "Whether numbers are estimates, or something is left out; `notes` says what", required=True
    )
    notes = fields.List(fields.String(), "What was estimated or left out", required=True)


def period_of(query: Loaded, now: datetime) -> CalendarPeriod:
    """The time that a query asks for. Raises InvalidField."""
    zone = query["timezone"]
    today = local_in(now, zone).date()
    midnight = instant_at(datetime(today.year, today.month, today.day), zone)  # noqa: DTZ001 (a local time)
    start: datetime = query.get("start", midnight)
    check_storable(start, "from")
    end: datetime = query.get("end", start + USUAL)
    if end <= start:
        raise InvalidField("to", "must come after from")
    days, parts = -((start - end) // DAY), -((start - end) // timedelta(seconds=query["bucket"]))
    by_day = query["bucket"] == DAY_SECONDS
    if end - start > MAX_SPAN or (by_day and days > MAX_DAYS):
        most = MAX_DAYS if by_day else MAX_SPAN.days
        raise InvalidField("to", f"must be within {most} days after from")
    if parts > MAX_PARTS:
        least = -(-round((end - start).total_seconds()) // MAX_PARTS)
        raise InvalidField(
            "bucket", f"makes {parts:,} parts of it; {MAX_PARTS:,} are the most: give {least} or more"
        )
    width = None if by_day else timedelta(seconds=query["bucket"])
    return CalendarPeriod(start=start, end=end, width=width, zone=zone)


def choice_of(query: Loaded) -> ForecastChoice:
    """Which runs a query asks for."""
    return ForecastChoice(query.get("schedule_id"), query.get("tag"), query.get("destination"))


def run_calendar_shown(found: RunCalendar, period: CalendarPeriod, now: datetime) -> View:
    """The fields of RunCalendarOutput."""
    return {
        "start": period.start,
        "end": period.end,
        "now": now,
        "to_come_at": found.to_come_at,
        "buckets": list(map(part_shown, found.parts)),
        "rare": list(map(_rare_shown, found.rare)),
        "rare_omitted": found.rare_omitted,
        "blackouts": [
            {
                "name": each.blackout.name,
                "start": each.start,
                "end": each.end,
                "policy": each.blackout.policy,
                "target": each.blackout.target.scope.value,
                "of": each.blackout.target.name or None,
            }
            for each in found.blackouts
        ],
        "closed_days": [
            {
                "calendar": each.calendar,
                "date": each.date,
                "name": each.name,
                "kind": (DayKind.WEEKEND if each.is_weekend else DayKind.HOLIDAY).value,
            }
            for each in found.closed_days
        ],
        "sampled": bool(found.notes),
        "notes": list(found.notes),
    }


def part_shown(part: CalendarPart) -> View:
    """The fields of CalendarPartOutput."""
    numbers = {each.value: part.counts[each] for each in RunOutcome}
    return {"start": part.start, "end": part.end, "tried_again": part.tried_again, **numbers}


def _rare_shown(rare: RareSchedule) -> View:
    return {
        "schedule_id": name_of(rare.id),
        "name": rare.name,
        "runs": [
            {
                "at": each.at,
                "outcome": each.outcome.value,
                "event_id": None if each.event_id is None else name_of(each.event_id),
            }
            for each in rare.runs
        ],
    }
