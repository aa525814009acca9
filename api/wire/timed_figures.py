"""Figures in parts of a time."""

from datetime import datetime, timedelta
from typing import Final

from marshmallow import ValidationError, validate, validates_schema

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.field_types import DestinationName, Instant, ScheduleId
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.figures import (
    HOUR,
    HOUR_DAYS,
    KEPT,
    MINUTE_DAYS,
    OUTCOMES,
    FigurePart,
    FigureSubject,
    Measured,
    begin_of_part,
)
from scheduler_app.domain.instants import check_storable
from scheduler_app.usecases.questions.timed_figures import TimedFigures

DAY: Final = timedelta(days=1)
#: Parts of one answer.
MAX_PARTS: Final = 1_500


class FiguresQuery(InputSchema):
    """Which time, in which parts, and of what: of everything without a filter."""

    start = Instant("Where it begins; default: a day before `to`", data_key="from")
    end = Instant("Where it ends; default: now", data_key="to")
    bucket = fields.Integer(
        f"The length of its parts in seconds, whole minutes, of which there may be {MAX_PARTS:,}. Parts of"
        f" whole hours are known for {HOUR_DAYS} days, shorter ones for {MINUTE_DAYS}",
        load_default=3_600,
        validate=validate.Range(60, round(DAY.total_seconds()) * HOUR_DAYS),
    )
    schedule_id = ScheduleId("Figures of this schedule, which are read from its events")
    destination = DestinationName("Figures of this destination")
    tag = fields.String(
        "Figures of the schedules with this tag, in whole hours", validate=validate.Length(1, 64)
    )

    @validates_schema
    def check_choice(self, data: Loaded, **_: object) -> None:
        given = [name for name in ("schedule_id", "destination", "tag") if name in data]
        if len(given) > 1:
            raise ValidationError(f"give one of schedule_id, destination and tag, not {len(given)}", given[1])
        if data["bucket"] % 60:
            raise ValidationError("must be whole minutes: a multiple of 60", "bucket")
        if "tag" in data and data["bucket"] % 3_600:
            raise ValidationError("must be whole hours with a tag: a multiple of 3600", "bucket")


class MeasuredOutput(OmitNone):
    """How something was measured, in milliseconds. Quantiles are upper bounds, as exact as the steps by which
    they are counted: 1, 2, 5, 10, 20, 50 and so on."""

    p50 = fields.Float("Half of them did not exceed it", required=True)
    p95 = fields.Float("95 in 100 did not exceed it", required=True)
    p99 = fields.Float("99 in 100 did not exceed it", required=True)
    max = fields.Float("The greatest", required=True)
    mean = fields.Float("The mean", required=True)


class FigurePartOutput(OmitNone):
    """What ended within one part of the time."""

    start = Instant("Where it begins", required=True, data_key="from")
    count = fields.Integer("Attempts that ended", required=True)
    completed = fields.Integer("Those that succeeded", required=True)
    error = fields.Integer("Those that were the last ones of dead letters", required=True)
    retrying = fields.Integer("Those that failed, and that another one follows", required=True)
    lag_ms = fields.Nested(MeasuredOutput, "How late attempts began; absent without any")
    duration_ms = fields.Nested(MeasuredOutput, "How long they took; absent without any")


class FiguresOutput(OutputSchema):
    """The figures."""

    start = Instant(
        "Where the time begins: `from`, at the beginning of a part", required=True, data_key="from"
    )
    end = Instant("Where it ends", required=True, data_key="to")
    bucket_seconds = fields.Integer("The length of its parts", required=True)
    since = Instant(
        "Since when they are known: earlier parts are empty because nothing is known of them; null where"
        " nothing is known at all",
        required=True,
        allow_none=True,
    )
    buckets = fields.List(FigurePartOutput, "Its parts in their order", required=True)


def figures_asked(query: Loaded, now: datetime) -> tuple[datetime, datetime, timedelta]:
    """The time that a query asks for, from the beginning of a part on, and the width of its parts. Raises
    InvalidField."""
    width = timedelta(seconds=query["bucket"])
    end: datetime = query.get("end", now)
    check_storable(end, "to")
    start: datetime = query.get("start", end - DAY)
    check_storable(start, "from")
    start = begin_of_part(start, width)
    if end <= start:
        raise InvalidField("to", "must come after from")
    parts = -((start - end) // width)
    if parts > MAX_PARTS:
        raise InvalidField("bucket", f"makes {parts:,} parts of it; {MAX_PARTS:,} are the most")
    if end - start > KEPT[HOUR]:
        raise InvalidField("to", f"must be within {HOUR_DAYS} days after from")
    return start, end, width


def subject_of(query: Loaded, tenant: str) -> FigureSubject:
    """Whose counters a query asks for."""
    for kind in ("destination", "tag"):
        if kind in query:
            return FigureSubject(tenant, kind, query[kind])
    return FigureSubject(tenant)


def figures_shown(found: TimedFigures, start: datetime, end: datetime, width: timedelta) -> View:
    """The fields of FiguresOutput."""
    return {
        "start": start,
        "end": end,
        "bucket_seconds": round(width.total_seconds()),
        "since": None if found.since is None else max(found.since, start),
        "buckets": list(map(_part_shown, found.parts)),
    }


def _part_shown(part: FigurePart) -> View:
    counts = {outcome: part.outcomes[outcome] for outcome in OUTCOMES}
    return {
        "start": part.at,
        "count": sum(counts.values()),
        **counts,
        "lag_ms": _measured_shown(part.lag),
        "duration_ms": _measured_shown(part.duration),
    }


def _measured_shown(found: Measured) -> View | None:
    if not found.count:
        return None
    quantiles: View = {f"p{round(share * 100)}": found.quantile(share) for share in (0.5, 0.95, 0.99)}
    return quantiles | {"max": round(found.most, 3), "mean": round(found.total / found.count, 3)}
