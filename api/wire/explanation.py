"""Explanations: why a schedule fires at an instant, or does not."""

from datetime import datetime

from marshmallow import ValidationError, fields, validates

from scheduler_app.api.json_types import View
from scheduler_app.api.wire.event_output import EventOutput
from scheduler_app.api.wire.field_types import LocalOrInstant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.jittered import Jitter
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema
from scheduler_app.api.wire.presenters import event_shown, time_shown
from scheduler_app.api.wire.preview import OccurrenceOutput
from scheduler_app.domain.explanation import Explanation
from scheduler_app.domain.recurrence import Reason
from scheduler_app.store.events.record import EventRecord


class WhyQuery(InputSchema):
    """Which instant is asked about."""

    at = LocalOrInstant(
        required=True,
        metadata={
            "description": "The instant, past or future; without an offset it is read in the schedule's zone",
            "example": "2030-01-05T12:00:00Z",
        },
    )

    @validates("at")
    def check_at(self, value: datetime, **_: object) -> None:
        # At the very ends of the calendar an instant has no local time in every zone.
        if not 1 < value.year < 9999:
            raise ValidationError("must lie in the years 2 to 9998")


class ReasonOutput(OmitNone):
    """Why it does not fire, or why it does."""

    code = fields.String(
        required=True,
        metadata={
            "description": "The part of RFC 5545 that leaves the instant out (`DTSTART`, `INTERVAL`, `BYDAY`,"
            " `UNTIL`, `EXDATE`, …), or in small letters what else does: `holiday`, `gap`, `overlap`,"
            " `run_at`, `on_demand`, `created`, `cut`, `paused`, `blackout`, `error`, `finished`, `deleted`,"
            " or the state of its event (`cancelled`, `expired`, `skipped`). Of a cause: `RRULE`, `RDATE`,"
            " `DTSTART` or `run_at` names it; `SKIP`, `gap`, `holiday` or `jitter` moved it; `overlap` chose"
            " it",
            "example": "BYDAY",
        },
    )
    message = fields.String(required=True, metadata={"description": "The reason in words"})
    rule = fields.String(metadata={"description": "The rule of the recurrence that the reason is about"})


class WhyOutput(OutputSchema):
    """Why a schedule fires at an instant, or does not."""

    at = fields.Nested(OccurrenceOutput, required=True, metadata={"description": "The instant asked about"})
    fires = fields.Boolean(
        required=True,
        metadata={"description": "Whether it fires then; for the past, whether its event was not withdrawn"},
    )
    reason = fields.Nested(ReasonOutput, metadata={"description": "The first reason; absent where it fires"})
    further_reasons = fields.List(
        fields.Nested(ReasonOutput),
        required=True,
        metadata={
            "description": "What else keeps it from firing: of the other rules, or the schedule's state"
        },
    )
    causes = fields.List(
        fields.Nested(ReasonOutput),
        required=True,
        metadata={"description": "Why it fires: what names it, and what moved it; empty where it does not"},
    )
    previous = fields.Nested(
        OccurrenceOutput,
        metadata={"description": "The last occurrence of the trigger before it, as the trigger is now"},
    )
    next = fields.Nested(
        OccurrenceOutput,
        metadata={"description": "The first occurrence of the trigger after it, as the trigger is now"},
    )
    event = fields.Nested(EventOutput, metadata={"description": "The event at that instant, if there is one"})
    warnings = fields.List(
        fields.String(), required=True, metadata={"description": "What this answer could not tell"}
    )


def explained(explanation: Explanation, event: EventRecord | None, timezone: str, jitter: Jitter) -> View:
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
