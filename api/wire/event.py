"""Events in answers, the filters of their lists and of redrives, and what receivers report of one."""

from datetime import datetime
from typing import Any, ClassVar

from marshmallow import ValidationError, post_load, validate, validates_schema

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import tenant
from scheduler_app.api.wire.field_types import (
    CauseId,
    Cursor,
    Instant,
    LocalOrInstant,
    ScheduleId,
    StatusCodes,
)
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema
from scheduler_app.api.wire.paging import MAX_LIMIT, Listed, PageSelection, Paging, Skipped, call_limit
from scheduler_app.domain.action import UNKNOWN_ORIGIN, origin_of
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.event import MAX_REASON
from scheduler_app.domain.http_action import destination_key, destination_of_key
from scheduler_app.domain.ids import name_of, whole_id
from scheduler_app.domain.recurrence.zones import instant_at
from scheduler_app.domain.redrive import (
    MAX_PLANNED,
    PLANNED_SHOWN,
    Redrive,
    RedriveChoice,
    RedriveState,
    RedriveTime,
)
from scheduler_app.domain.states import State
from scheduler_app.store.events.lists import EventListFilter
from scheduler_app.usecases.duties.redrives import RedriveAsked, RedrivePlan


class StatusLine(OutputSchema):
    """A line of an event's history."""

    time = Instant("When the event entered the state")
    status = fields.String("The state", validate=validate.OneOf([state.value for state in State]))
    message = fields.String("Why, in words")
    by = fields.String("The name of the key or the person whose act it was, or what kind of caller it was")
    reason = fields.String("Why, in that person's words (`Scheduler-Reason`)")
    request_id = fields.String("The id of that request (`X-Request-Id`)")


class AttemptLine(OutputSchema):
    """One execution of the event's request."""

    number = fields.Integer("Counts the attempts, from 1")
    started_at = Instant("When the request started")
    duration_ms = fields.Float("How long it lasted, in milliseconds")
    lag_ms = fields.Float("How late it started after the event was due, in milliseconds")
    status_code = fields.Integer("The status of the answer; null without an answer", allow_none=True)
    error = fields.String("Why it failed; null where it succeeded", allow_none=True)
    snippet = fields.String("The beginning of the answer's body")
    output = fields.String("What a command has printed: up to 64 KiB of its beginning and of its end")
    worker = fields.String("The worker that made it")
    late = fields.Boolean("True where it ended after its lease, so that it changed no state")


class MissedOutput(OutputSchema):
    """Occurrences that were too late when a beat came to them, and that one record tells of."""

    first = Instant("The first of them", required=True)
    last = Instant("The last of them", required=True)
    count = fields.Integer("How many there are", required=True)


class EventOutput(OutputSchema):
    """An event with its history."""

    id = fields.String(
        "The event's id, which its callbacks carry as Idempotency-Key",
        data_key="_id",
        attribute="_id",
        required=True,
    )
    schedule_id = fields.String("The schedule it belongs to; absent for a message, which has none")
    run_time = Instant("The occurrence that it stands for", required=True)
    kind = fields.String(
        "`scheduled`; `manual` for one that a person or program triggered;"
        " `backfill` for a past occurrence that was asked for; `message`",
        required=True,
    )
    state = fields.String("The state it is in", validate=validate.OneOf([state.value for state in State]))
    due_at = Instant("When the next attempt is due; finished events have none")
    revision = fields.Integer("The revision of the schedule that planned it")
    attempt = fields.Integer("Attempts made so far")
    status = fields.List(StatusLine, "Its history, the oldest line first")
    attempts = fields.List(AttemptLine, "Its attempts, the oldest first")
    created_at = Instant("When it was planned")
    archived_at = Instant("When it was finished")
    missed = fields.Nested(
        MissedOutput,
        "Only in a record of missed occurrences, which stands for all of them; its"
        " `run_time` is the last one's",
    )
    corrupt = fields.Dict(
        "The corrupt fields of its stored document, each with the reason; absent if none",
        keys=fields.String(),
        values=fields.String(),
    )


class EventPage(Listed):
    events = fields.List(EventOutput, required=True)


class Triggered(OutputSchema):
    """The event that a trigger by hand made."""

    event_id = fields.String("The new event's id", required=True)
    message = fields.String("The result in words", required=True)


#: Dead letters a second, in a redrive with a rate.
MIN_REDRIVE_RATE, MAX_REDRIVE_RATE = 0.01, 1_000

_STATE = "|".join(state.value for state in State)
_ALL_STATES = ", ".join(state.value for state in State)


class States(fields.String):
    """One state, or several separated by commas."""

    def __init__(self) -> None:
        about = {"pattern": f"^({_STATE})(, ?({_STATE}))*$", "maxLength": 200}
        super().__init__("The state they are in, or several separated by commas", metadata=about)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        names = [name.strip() for name in text[:200].split(",")]
        for name in names:
            if name not in _ALL_STATES.split(", "):
                raise ValidationError(
                    f"{name[:50]!r} is no state; give one or several of {_ALL_STATES}, separated by commas"
                )
        return {State(name) for name in names}


_STATUS_PATTERN = r"[1-5](xx|[0-9]{2}(-[1-5][0-9]{2})?)"


class StatusChoice(fields.DescribedField):
    """Statuses of the last attempt: a number, text such as "503,5xx", or a list of these."""

    def __init__(self, *, in_query: bool, **kwargs: Any) -> None:
        text = {"type": "string", "pattern": f"^{_STATUS_PATTERN}(,{_STATUS_PATTERN})*$", "maxLength": 400}
        number = {"type": "integer", "minimum": 100, "maximum": 599}
        several = {"type": "array", "minItems": 1, "maxItems": 50, "items": {"anyOf": [number, text]}}
        about: dict[str, Any] = text if in_query else {"anyOf": [number, text, several]}
        meaning = 'Statuses that the last attempt was answered by, such as 503, "5xx,429"'
        super().__init__(meaning, metadata=about, **kwargs)
        self._codes = StatusCodes()

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        given = value if isinstance(value, list) else [value]
        single: list[Any] = []
        for each in given[:51]:
            single += each.split(",")[:51] if isinstance(each, str) else [each]
        return self._codes.deserialize(single)


class _EventChoice(InputSchema):
    """A filter of events: they must match every field given."""

    schedule_id = ScheduleId("The schedule they belong to")
    origin = fields.String(
        "Scheme, host and port of the URL that the schedule had when the event was made;"
        " a whole URL is accepted",
        validate=validate.Length(1, 2048),
        example="https://example.com",
    )
    error = fields.String(
        "Part of the last attempt's error or of the history's last line; case is ignored",
        validate=validate.Length(1, 200),
        example="timed out",
    )
    tag = fields.String("A tag of their schedule", validate=validate.Length(1, 64))
    since = LocalOrInstant("Run times from this instant on", dates=True, data_key="from")
    until = LocalOrInstant("Run times before this instant", dates=True, data_key="to")
    timezone = fields.String(
        "The IANA zone of `from` and `to` where they have no offset",
        validate=validate.Length(1, 64),
        example="Europe/Zurich",
    )

    @validates_schema
    def check_origin(self, data: Loaded, **_: object) -> None:
        origin = data.get("origin")
        if origin is None or origin == UNKNOWN_ORIGIN or destination_of_key(origin) is not None:
            return
        if origin_of(origin) == UNKNOWN_ORIGIN:
            raise ValidationError(
                "must be a scheme, a host and perhaps a port, as in https://example.com:8443", "origin"
            )

    @post_load
    def narrow(self, data: Loaded, **_: object) -> Loaded:
        zone = data.pop("timezone", None)
        if zone is not None:
            self._instant(datetime(2000, 1, 1), zone, "timezone")  # noqa: DTZ001 (any date)
        for name, key in (("since", "from"), ("until", "to")):
            if name in data and data[name].tzinfo is None:
                data[name] = self._instant(data[name], zone, key)
        origin = data.pop("origin", None)
        data["narrowing"] = EventListFilter(
            origin=isolation_key(origin) if origin is not None else None,
            status=data.pop("status_code", None),
            error=data.pop("error", None),
            tag=data.pop("tag", None),
        )
        return data

    @staticmethod
    def _instant(local: datetime, zone: str | None, key: str) -> datetime:
        if zone is None:
            raise ValidationError(
                "needs an offset, as in 2025-01-05T12:00:00Z, or `timezone` beside it: Europe/Zurich", key
            )
        try:
            return instant_at(local, zone)
        except InvalidField as error:
            raise ValidationError(error.message, error.field) from None


def isolation_key(shown: str) -> str:
    """The key of what `receiver_shown` shows; of a whole URL its origin."""
    named = destination_of_key(shown)
    return origin_of(shown) if named is None else destination_key(whole_id(tenant(), named))


def receiver_shown(key: str) -> str:
    """An origin, or a destination by its name: `destination crm`."""
    named = destination_of_key(key)
    return key if named is None else destination_key(name_of(named))


def receiver_field(key: str) -> View:
    """The field of an answer that names a receiver: `destination` or `origin`."""
    named = destination_of_key(key)
    return {"origin": key} if named is None else {"destination": name_of(named)}


class EventFilter(_EventChoice, Paging):
    """The parameters of the list of events."""

    state = States()
    status_code = StatusChoice(in_query=True)


class HistoryFilter(Paging):
    """A schedule's finished events."""

    include = fields.String(
        "`cancelled` also lists the events that were cancelled before they were due",
        validate=validate.OneOf(["cancelled"]),
    )


class RedriveInput(_EventChoice, PageSelection):
    """Which dead letters to send again; they must match every field given."""

    FILTERS: ClassVar = {
        **{name: name for name in ("schedule_id", "origin", "status_code", "error", "tag", "cause")},
        "since": "from",
        "until": "to",
    }
    THINGS = "dead letter"
    #: Each of them makes it a redrive that beats carry out.
    BY_BEATS: ClassVar = ("cause", "which", "when")
    #: What such a redrive does not take.
    BY_PAGES: ClassVar = {
        **{name: name for name in ("status_code", "error", "start_at")},
        "since": "from",
    }

    status_code = StatusChoice(in_query=False)
    limit = call_limit(MAX_LIMIT, MAX_LIMIT)
    rate = fields.Float(
        "How many a second to send; without it all are sent at once",
        validate=validate.Range(MIN_REDRIVE_RATE, MAX_REDRIVE_RATE),
    )
    start_at = Instant(
        "With `rate`: when the first of this call is due; give the `last_due_at` of the"
        " call before, so that all calls together keep the rate. Default: now"
    )

    cause = CauseId(
        "Those of this failure: its id among /api/v1/failures. With it, `which` or `when` beats send them"
        " again, and the answer has a `redrive_id`"
    )
    which = fields.String(
        "Which of them: `all`; `newest_of_each_schedule`; `not_too_late`: without those that the policies of"
        " their schedules would give up. Default: all",
        validate=validate.OneOf([each.value for each in RedriveChoice]),
    )
    when = fields.String(
        "`now`, or `receiver_answers`: when the receiver of `cause` has succeeded since its last failure; one"
        " dead letter a minute is sent to see. Default: now",
        validate=validate.OneOf([each.value for each in RedriveTime]),
    )

    @validates_schema
    def check_by_beats(self, data: Loaded, **_: object) -> None:
        if any(name in data for name in self.BY_BEATS):
            for name, shown in self.BY_PAGES.items():
                if name in data:
                    raise ValidationError("is not for a redrive with cause, which or when", shown)

    @validates_schema
    def check_start(self, data: Loaded, **_: object) -> None:
        if "start_at" in data and "rate" not in data:
            raise ValidationError("give it beside rate, or not at all", "start_at")


class RedrivenLetter(OmitNone):
    """A dead letter that would be sent again."""

    id = fields.String("The event", required=True)
    schedule_id = fields.String("Its schedule; absent for a message")
    run_time = Instant("The occurrence that it stands for", required=True)


class RedriveOutput(OutputSchema):
    redriven = fields.Integer("How many events will be sent again", required=True)
    skipped = fields.List(Skipped, "The first 100 events that stay dead letters", required=True)
    skipped_omitted = fields.Integer("How many more there are; absent if none")
    more = fields.Boolean("Whether there may be more: then call again with `cursor`", required=True)
    next_cursor = Cursor("Give it as `cursor` in the next call; null at the end", allow_none=True)
    last_due_at = Instant("Where a `rate` was given: when the last event of this call is due")
    redrive_id = fields.String("Of a redrive that beats carry out: see /api/v1/redrives/{redrive_id}")
    letters = fields.List(
        RedrivenLetter,
        f"Of a dry run with `cause`, `which` or `when`: the first {PLANNED_SHOWN} events that would be sent",
    )


class RedriveProgressOutput(OmitNone):
    """A redrive that beats carry out."""

    redrive_id = fields.String("Its id", required=True)
    state = fields.String(
        "`waiting` for its receiver to answer; `running`; `sent`: all are due again; `stopped`; `error`",
        required=True,
        validate=validate.OneOf([each.value for each in RedriveState]),
    )
    which = fields.String("As in the request", required=True)
    when = fields.String("As in the request", required=True)
    rate = fields.Float("As in the request; absent without one")
    planned = fields.Integer(f"How many there were at its start; {MAX_PLANNED} at most", required=True)
    sent = fields.Integer("How many are due again so far", required=True)
    skipped = fields.Integer("How many were left dead letters", required=True)
    reason = fields.String("Why it ended in error; absent otherwise")
    started_at = Instant("When it was asked for", required=True)
    ended_at = Instant("When it was over; absent before")


class FailureInput(InputSchema):
    body_optional = True
    reason = fields.String(
        "Why, in words, for the event's history",
        load_default="",
        validate=validate.Length(max=MAX_REASON),
        example="the disk is full",
    )


def redrive_asked(given: Loaded) -> RedriveAsked | None:
    """The redrive that beats are to carry out; None where this call does it."""
    if not any(name in given for name in RedriveInput.BY_BEATS):
        return None
    narrowing: EventListFilter = given["narrowing"]
    return RedriveAsked(
        cause_id=given.get("cause"),
        choice=RedriveChoice(given.get("which", RedriveChoice.ALL)),
        time=RedriveTime(given.get("when", RedriveTime.NOW)),
        rate_per_second=given.get("rate"),
        schedule_id=given.get("schedule_id"),
        tag=narrowing.tag,
        origin=narrowing.origin,
        until=given.get("until"),
    )


def redrive_shown(redrive: Redrive) -> View:
    return {
        "redrive_id": name_of(redrive.id),
        "state": redrive.state.value,
        "which": redrive.choice.value,
        "when": redrive.time.value,
        "rate": redrive.rate_per_second,
        "planned": redrive.planned,
        "sent": redrive.sent,
        "skipped": redrive.skipped,
        "reason": redrive.reason,
        "started_at": redrive.started_at,
        "ended_at": redrive.ended_at,
    }


def redrive_planned(plan: RedrivePlan) -> View:
    """The answer of a dry run."""
    return {
        "redriven": plan.redrive.planned,
        "skipped": [],
        "more": False,
        "next_cursor": None,
        "letters": [
            {
                "id": name_of(each.id),
                "run_time": each.run_time,
                **({"schedule_id": name_of(each.schedule_id)} if each.schedule_id else {}),
            }
            for each in plan.shown
        ],
    }
