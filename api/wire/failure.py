"""Failures: causes in answers, the verdict with its reasons, and what people say when they dismiss one."""

from collections.abc import Sequence
from typing import Any, Final

from marshmallow import ValidationError, validate, validates_schema

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.event import EventOutput, isolation_key
from scheduler_app.api.wire.field_types import DestinationId, Instant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema
from scheduler_app.api.wire.paging import Listed, Paging
from scheduler_app.api.wire.schedule import event_shown
from scheduler_app.domain.cause import (
    FACTS,
    MAX_NAMED,
    MAX_NOTE,
    CauseKind,
    CauseState,
    Touched,
    subject_shown,
)
from scheduler_app.domain.http_action import destination_key, destination_of_key
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.silence import Silence
from scheduler_app.health.status import SystemState, SystemStatus, cause_sentence
from scheduler_app.store.causes import CauseListFilter
from scheduler_app.usecases.deeds.failures import MOST_COUNTED, CauseReport

_STATES: Final = ", ".join(CauseState)
_KINDS: Final = [kind.value for kind in CauseKind]
#: The kinds that the status lists as reasons: facts are none, and schedules in `error` are only counted.
_REASONS: Final = [kind.value for kind in CauseKind if kind not in FACTS | {CauseKind.SET_ASIDE}]


class CauseStates(fields.String):
    """One state, or several separated by commas."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        names = [name.strip() for name in text[:200].split(",")]
        for name in names:
            if name not in set(CauseState):
                raise ValidationError(
                    f"{name[:50]!r} is no state; give one or several of {_STATES}, separated by commas"
                )
        return {CauseState(name) for name in names}


class CauseChoice(Paging):
    """The parameters of the list of failures."""

    state = CauseStates(
        "The state they are in, or several separated by commas",
        metadata={"pattern": "^(open|over|dismissed)(, ?(open|over|dismissed))*$"},
    )
    tag = fields.String("A tag of a schedule that they touch", validate=validate.Length(min=1, max=64))
    destination = DestinationId("Those of this destination")
    origin = fields.String(
        "Those of this receiver: scheme, host and port",
        validate=validate.Length(min=1, max=2048),
        example="https://example.com",
    )

    @validates_schema
    def check_receiver(self, data: Loaded, **_: object) -> None:
        if "destination" in data and "origin" in data:
            raise ValidationError("give destination or origin, not both", "origin")


def chosen_causes(query: Loaded) -> CauseListFilter:
    """The filter that a query asks for."""
    subject = None
    if "destination" in query:
        subject = destination_key(query["destination"])
    elif "origin" in query:
        subject = isolation_key(query["origin"])
    return CauseListFilter(query.get("state", frozenset()), query.get("tag"), subject)


class TouchedOutput(OmitNone):
    """What a failure touches."""

    count = fields.Integer("How many", required=True)
    exact = fields.Boolean("Whether there are no more than that", required=True)
    names = fields.List(fields.String(), f"The first {MAX_NAMED} of them", required=True)


class EventsOfCause(OmitNone):
    """Its events."""

    failed = fields.Integer("How many failed so far, or are late or missed", required=True)
    gave_up = fields.Integer("How many of them were given up", required=True)
    waiting = fields.Integer(f"How many wait for another attempt; {MOST_COUNTED} at most", required=True)
    dead_letters = fields.Integer(
        f"How many are dead letters, which can be sent again; {MOST_COUNTED} at most", required=True
    )


class TrendPart(OmitNone):
    """Five minutes in which attempts failed."""

    since = Instant("When they begin", data_key="from", required=True)
    failed = fields.Integer("How many attempts failed", required=True)


class PrecedingOutput(OmitNone):
    """An edit within ten minutes before the first failure."""

    at = Instant("When", required=True)
    what = fields.String("`schedule` or `destination`", required=True)
    name = fields.String("Its id or name", required=True)
    by = fields.String("The name of the key that did it; absent where that is not known")
    note = fields.String("What was noted of it")


class CauseOutput(OmitNone):
    """What fails, since when, whom it touches, and what became of it."""

    id = fields.String("Its id", required=True)
    kind = fields.String("What is wrong", required=True, validate=validate.OneOf(_KINDS))
    state = fields.String(
        "`open`; `over`; `dismissed` by a person, whether it goes on or not",
        required=True,
        validate=validate.OneOf([each.value for each in CauseState]),
    )
    subject = fields.String("The receiver, schedule, queue or part of the installation", required=True)
    destination = fields.String("The receiver, where it is a destination")
    origin = fields.String("The receiver, where no destination is named")
    failure = fields.String("What the failures have in common: `status 500`, or the beginning of the error")
    message = fields.String("All of it in one sentence", required=True)
    since = Instant("The first failure after the last success", required=True)
    last = Instant("The newest failure", required=True)
    error = fields.String("The newest error in words")
    event_id = fields.String("The event that failed last")
    events = fields.Nested(EventsOfCause, required=True)
    schedules = fields.Nested(TouchedOutput, required=True)
    tags = fields.Nested(TouchedOutput, required=True)
    next_try_at = Instant("When the next event is tried again; absent if none waits")
    answering_since = Instant("Since when its receiver answers without this failure; absent if it does not")
    over_at = Instant("When it was over; absent while it goes on")
    resent = fields.Integer("How many dead letters were sent again; absent for none")
    resent_at = Instant("When that was last done")
    dismissed_at = Instant("When a person dismissed it; absent otherwise")
    dismissed_by = fields.String("The name of the key that dismissed it")
    note = fields.String("What was noted then")


class CauseDetails(CauseOutput):
    """A failure with its events."""

    preceded_by = fields.Nested(PrecedingOutput)
    trend = fields.List(TrendPart, "The last parts in which attempts failed", required=True)
    newest_events = fields.List(
        EventOutput, "The event that failed last, and the newest dead letters", required=True
    )


class CausePage(Listed):
    failures = fields.List(CauseOutput, required=True)


class DismissInput(InputSchema):
    """How a failure is dismissed."""

    body_optional = True

    events = fields.JsonBoolean(
        "Whether its dead letters are expired, too, so that nothing sends them again", load_default=False
    )
    note = fields.String("Why", load_default="", validate=validate.Length(max=MAX_NOTE))


class DismissedOutput(CauseDetails):
    expired = fields.Integer("How many dead letters were expired", required=True)
    more = fields.Boolean("Whether there are more of them: then call again", required=True)


class SilencedOutput(OutputSchema):
    """A silence, as a reason names it."""

    name = fields.String(required=True)
    until = Instant(required=True)
    reason = fields.String(required=True)


class StatusReasonOutput(OmitNone):
    """One thing that is wrong."""

    kind = fields.String(
        f"{', '.join(f'`{kind}`' for kind in _REASONS)}; `dead_letters`: they are left of a failure that is"
        " over; `schedules_in_error`: they make no events any more; `configuration`: processes or stops do"
        " not fit",
        required=True,
    )
    subject = fields.String("The receiver, schedule, queue or part of the installation", required=True)
    message = fields.String("What is wrong, in one sentence", required=True)
    remedy = fields.String("What to do", required=True)
    since = Instant("Since when; absent where that is not known")
    failure_id = fields.String("Its id among /api/v1/failures; absent if it is none")
    schedules = fields.Integer("How many schedules it touches", required=True)
    events = fields.Integer("How many events wait, are dead letters, late or missed", required=True)
    tags = fields.List(fields.String(), "The first tags of its schedules", required=True)
    destination = fields.String("The destination, where the receiver is one")
    silence = fields.Nested(SilencedOutput, "What keeps it from being told; absent if nothing does")


class StatusOutput(OmitNone):
    """Whether all is well, and if not, why."""

    verdict = fields.String(
        "`well`; `attention`: work fails or is late; `down`: a part of the machinery does not work",
        required=True,
        validate=validate.OneOf([each.value for each in SystemState]),
    )
    since = Instant("When the oldest reason began; absent if there is none")
    reasons = fields.List(StatusReasonOutput, "What is wrong, the worst first", required=True)
    reasons_omitted = fields.Integer("How many more there are; absent if none")


def status_shown(status: SystemStatus) -> View:
    return {
        "verdict": status.verdict.value,
        "since": status.since,
        "reasons": [
            {
                "kind": each.kind,
                "subject": each.subject,
                "message": each.message,
                "remedy": each.remedy,
                "since": each.since,
                "failure_id": name_of(each.cause.id) if each.cause else None,
                "schedules": each.schedules,
                "events": each.events,
                "tags": list(each.tags),
                "destination": _destination(each.cause.key.subject) if each.cause else None,
                "silence": _silenced(each.silence),
            }
            for each in status.reasons
        ],
        "reasons_omitted": status.omitted or None,
    }


def _silenced(silence: Silence | None) -> View | None:
    if silence is None:
        return None
    return {"name": silence.name, "until": silence.until, "reason": silence.reason}


def cause_shown(report: CauseReport) -> View:
    cause, counts = report.cause, report.counts
    is_receivers = cause.key.kind in (CauseKind.FAILING, CauseKind.LATE)
    destination = _destination(cause.key.subject)
    return {
        "id": name_of(cause.id),
        "kind": cause.key.kind.value,
        "state": cause.state.value,
        "subject": subject_shown(cause),
        "destination": destination,
        "origin": cause.key.subject if is_receivers and destination is None else None,
        "failure": cause.key.failure or None,
        "message": cause_sentence(cause, counts),
        "since": cause.since,
        "last": cause.last,
        "error": cause.error or None,
        "event_id": name_of(cause.event_id) if cause.event_id else None,
        "events": {
            "failed": max(cause.failed, cause.gave_up),
            "gave_up": cause.gave_up,
            "waiting": counts.waiting,
            "dead_letters": counts.dead,
        },
        "schedules": _touched_shown(cause.schedules)
        | {"names": [name_of(each) for each in cause.schedules.names]},
        "tags": _touched_shown(cause.tags),
        "next_try_at": counts.next_try,
        "answering_since": cause.answering_since,
        "over_at": cause.over_at,
        "resent": cause.resent or None,
        "resent_at": cause.resent_at,
        "dismissed_at": cause.dismissed_at,
        "dismissed_by": cause.dismissed_by or None,
        "note": cause.note or None,
    }


def cause_details(report: CauseReport) -> View:
    edit = report.preceded_by
    preceded = edit and {
        "at": edit.at,
        "what": edit.what,
        "name": edit.name,
        "by": edit.by or None,
        "note": edit.note or None,
    }
    return cause_shown(report) | {
        "preceded_by": preceded,
        "trend": [{"since": at, "failed": count} for at, count in report.cause.trend],
        "newest_events": [event_shown(each) for each in report.events],
    }


def causes_shown(reports: Sequence[CauseReport]) -> list[View]:
    return [cause_shown(each) for each in reports]


def _destination(subject: str) -> str | None:
    own_id = destination_of_key(subject)
    return None if own_id is None else name_of(own_id)


def _touched_shown(touched: Touched) -> View:
    return {
        "count": touched.count,
        "exact": touched.is_exact,
        "names": list(touched.names),
    }
