"""Events in answers, the filters of their lists and of redrives, and what receivers report of one."""

from datetime import datetime
from typing import Any, ClassVar

from marshmallow import ValidationError, fields, post_load, validate, validates_schema

from scheduler_app.api.json_types import Loaded
from scheduler_app.api.services import tenant
from scheduler_app.api.wire.field_types import Cursor, Instant, LocalOrInstant, ScheduleId, StatusCodes
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OutputSchema
from scheduler_app.api.wire.paging import MAX_LIMIT, Listed, PageSelection, Paging, Skipped
from scheduler_app.domain.action import UNKNOWN_ORIGIN, origin_of
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.event import MAX_REASON
from scheduler_app.domain.http_action import DESTINATION_PREFIX, destination_key
from scheduler_app.domain.ids import name_of, whole_id
from scheduler_app.domain.local_time import instant_at
from scheduler_app.domain.states import State
from scheduler_app.store.events.lists import EventListFilter


class StatusLine(OutputSchema):
    """A line of an event's history."""

    time = Instant(metadata={"description": "When the event entered the state"})
    status = fields.String(
        validate=validate.OneOf([state.value for state in State]), metadata={"description": "The state"}
    )
    message = fields.String(metadata={"description": "Why, in words"})


class AttemptLine(OutputSchema):
    """One execution of the event's request."""

    number = fields.Integer(metadata={"description": "Counts the attempts, from 1"})
    started_at = Instant(metadata={"description": "When the request started"})
    duration_ms = fields.Float(metadata={"description": "How long it lasted, in milliseconds"})
    lag_ms = fields.Float(
        metadata={"description": "How late it started after the event was due, in milliseconds"}
    )
    status_code = fields.Integer(
        allow_none=True, metadata={"description": "The status of the answer; null without an answer"}
    )
    error = fields.String(allow_none=True, metadata={"description": "Why it failed; null where it succeeded"})
    snippet = fields.String(metadata={"description": "The beginning of the answer's body"})
    output = fields.String(
        metadata={"description": "What a command has printed: up to 64 KiB of its beginning and of its end"}
    )
    worker = fields.String(metadata={"description": "The worker that made it"})
    late = fields.Boolean(
        metadata={"description": "True where it ended after its lease, so that it changed no state"}
    )


class MissedOutput(OutputSchema):
    """Occurrences that were too late when a beat came to them, and that one record tells of."""

    first = Instant(required=True, metadata={"description": "The first of them"})
    last = Instant(required=True, metadata={"description": "The last of them"})
    count = fields.Integer(required=True, metadata={"description": "How many there are"})


class EventOutput(OutputSchema):
    """An event with its history."""

    id = fields.String(
        data_key="_id",
        attribute="_id",
        required=True,
        metadata={"description": "The event's id, which its callbacks carry as Idempotency-Key"},
    )
    schedule_id = fields.String(
        metadata={"description": "The schedule it belongs to; absent for a message, which has none"}
    )
    run_time = Instant(required=True, metadata={"description": "The occurrence that it stands for"})
    kind = fields.String(
        required=True,
        metadata={
            "description": "`scheduled`; `manual` for one that a person or program triggered;"
            " `backfill` for a past occurrence that was asked for; `message`"
        },
    )
    state = fields.String(
        validate=validate.OneOf([state.value for state in State]),
        metadata={"description": "The state it is in"},
    )
    due_at = Instant(metadata={"description": "When the next attempt is due; finished events have none"})
    revision = fields.Integer(metadata={"description": "The revision of the schedule that planned it"})
    attempt = fields.Integer(metadata={"description": "Attempts made so far"})
    status = fields.List(
        fields.Nested(StatusLine), metadata={"description": "Its history, the oldest line first"}
    )
    attempts = fields.List(
        fields.Nested(AttemptLine), metadata={"description": "Its attempts, the oldest first"}
    )
    created_at = Instant(metadata={"description": "When it was planned"})
    archived_at = Instant(metadata={"description": "When it was finished"})
    missed = fields.Nested(
        MissedOutput,
        metadata={
            "description": "Only in a record of missed occurrences, which stands for all of them; its"
            " `run_time` is the last one's"
        },
    )
    corrupt = fields.Dict(
        keys=fields.String(),
        values=fields.String(),
        metadata={
            "description": "The corrupt fields of its stored document, each with the reason; absent if none"
        },
    )


class EventPage(Listed):
    events = fields.List(fields.Nested(EventOutput), required=True)


class Triggered(OutputSchema):
    """The event that a trigger by hand made."""

    event_id = fields.String(required=True, metadata={"description": "The new event's id"})
    message = fields.String(required=True, metadata={"description": "The result in words"})


#: Dead letters a second, in a redrive with a rate.
MIN_REDRIVE_RATE, MAX_REDRIVE_RATE = 0.01, 1_000

_STATE = "|".join(state.value for state in State)
_ALL_STATES = ", ".join(state.value for state in State)


class States(fields.String):
    """One state, or several separated by commas."""

    def __init__(self, **kwargs: Any) -> None:
        about = {"pattern": f"^({_STATE})(, ?({_STATE}))*$", "maxLength": 200}
        super().__init__(metadata=about | kwargs.pop("metadata", {}), **kwargs)

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


class StatusChoice(fields.Field[Any]):
    """Statuses of the last attempt: a number, text such as "503,5xx", or a list of these."""

    def __init__(self, *, in_query: bool, **kwargs: Any) -> None:
        text = {"type": "string", "pattern": f"^{_STATUS_PATTERN}(,{_STATUS_PATTERN})*$", "maxLength": 400}
        number = {"type": "integer", "minimum": 100, "maximum": 599}
        several = {"type": "array", "minItems": 1, "maxItems": 50, "items": {"anyOf": [number, text]}}
        about: dict[str, Any] = text if in_query else {"anyOf": [number, text, several]}
        described = {"description": 'Statuses that the last attempt was answered by, such as 503, "5xx,429"'}
        super().__init__(metadata=about | described, **kwargs)
        self._codes = StatusCodes()

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        given = value if isinstance(value, list) else [value]
        single: list[Any] = []
        for each in given[:51]:
            single += each.split(",")[:51] if isinstance(each, str) else [each]
        return self._codes.deserialize(single)


class _EventChoice(InputSchema):
    """A filter of events: they must match every field given."""

    schedule_id = ScheduleId(metadata={"description": "The schedule they belong to"})
    origin = fields.String(
        validate=validate.Length(min=1, max=2048),
        metadata={
            "description": "Scheme, host and port of the URL that the schedule had when the event was made;"
            " a whole URL is accepted",
            "example": "https://example.com",
        },
    )
    error = fields.String(
        validate=validate.Length(min=1, max=200),
        metadata={
            "description": "Part of the last attempt's error or of the history's last line; case is ignored",
            "example": "timed out",
        },
    )
    tag = fields.String(
        validate=validate.Length(min=1, max=64), metadata={"description": "A tag of their schedule"}
    )
    since = LocalOrInstant(
        dates=True, data_key="from", metadata={"description": "Run times from this instant on"}
    )
    until = LocalOrInstant(
        dates=True, data_key="to", metadata={"description": "Run times before this instant"}
    )
    timezone = fields.String(
        validate=validate.Length(min=1, max=64),
        metadata={
            "description": "The IANA zone of `from` and `to` where they have no offset",
            "example": "Europe/Zurich",
        },
    )

    @validates_schema
    def check_origin(self, data: Loaded, **_: object) -> None:
        origin = data.get("origin")
        if origin is None or origin == UNKNOWN_ORIGIN or origin.startswith(DESTINATION_PREFIX):
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
    if not shown.startswith(DESTINATION_PREFIX):
        return origin_of(shown)
    return destination_key(whole_id(tenant(), shown.removeprefix(DESTINATION_PREFIX)))


def receiver_shown(key: str) -> str:
    """An origin, or a destination by its name: `destination crm`."""
    if not key.startswith(DESTINATION_PREFIX):
        return key
    return destination_key(name_of(key.removeprefix(DESTINATION_PREFIX)))


class EventFilter(_EventChoice, Paging):
    """The parameters of the list of events."""

    state = States(metadata={"description": "The state they are in, or several separated by commas"})
    status_code = StatusChoice(in_query=True)


class HistoryFilter(Paging):
    """A schedule's finished events."""

    include = fields.String(
        validate=validate.OneOf(["cancelled"]),
        metadata={
            "description": "`cancelled` also lists the events that were cancelled before they were due"
        },
    )


class RedriveInput(_EventChoice, PageSelection):
    """Which dead letters to send again; they must match every field given."""

    FILTERS: ClassVar = {
        **{name: name for name in ("schedule_id", "origin", "status_code", "error", "tag")},
        "since": "from",
        "until": "to",
    }
    THINGS = "dead letter"

    status_code = StatusChoice(in_query=False)
    limit = fields.Integer(
        strict=True,
        load_default=MAX_LIMIT,
        validate=validate.Range(1, MAX_LIMIT),
        metadata={"description": "How many at most in this call"},
    )
    rate = fields.Float(
        validate=validate.Range(MIN_REDRIVE_RATE, MAX_REDRIVE_RATE),
        metadata={"description": "How many a second to send; without it all are sent at once"},
    )
    start_at = Instant(
        metadata={
            "description": "With `rate`: when the first of this call is due; give the `last_due_at` of the"
            " call before, so that all calls together keep the rate. Default: now"
        }
    )

    @validates_schema
    def check_start(self, data: Loaded, **_: object) -> None:
        if "start_at" in data and "rate" not in data:
            raise ValidationError("give it beside rate, or not at all", "start_at")


class RedriveOutput(OutputSchema):
    redriven = fields.Integer(required=True, metadata={"description": "How many events will be sent again"})
    skipped = fields.List(
        fields.Nested(Skipped),
        required=True,
        metadata={"description": "The first 100 events that stay dead letters"},
    )
    skipped_omitted = fields.Integer(metadata={"description": "How many more there are; absent if none"})
    more = fields.Boolean(
        required=True, metadata={"description": "Whether there may be more: then call again with `cursor`"}
    )
    next_cursor = Cursor(
        allow_none=True, metadata={"description": "Give it as `cursor` in the next call; null at the end"}
    )
    last_due_at = Instant(
        metadata={"description": "Where a `rate` was given: when the last event of this call is due"}
    )


class FailureInput(InputSchema):
    body_optional = True
    reason = fields.String(
        load_default="",
        validate=validate.Length(max=MAX_REASON),
        metadata={"description": "Why, in words, for the event's history", "example": "the disk is full"},
    )
