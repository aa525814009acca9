"""Forecasts: what falls due in each stretch of time."""

import math
from collections import Counter
from datetime import datetime, timedelta
from typing import Final

from marshmallow import ValidationError, validate, validates_schema

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.event import receiver_field
from scheduler_app.api.wire.field_types import Instant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.forecast import MAX_BUCKETS, Buckets, Forecast, ForecastSource, Withheld
from scheduler_app.domain.instants import check_storable

DAY: Final = timedelta(days=1)
#: How far ahead a forecast may reach.
MAX_AHEAD: Final = timedelta(days=366)
#: What "from now on" may have become under way.
TOLERANCE: Final = timedelta(minutes=1)
#: Without `bucket`, a stretch is divided into at most this many.
DEFAULT_BUCKETS: Final = 60
MAX_RECEIVERS: Final = 20
_WIDTHS: Final = (1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 7_200, 21_600, 86_400, 604_800)


class ForecastQuery(InputSchema):
    """Which stretch of time to look at, and in which parts."""

    start = Instant("Where it begins; default: now", data_key="from")
    end = Instant("Where it ends; default: a day after `from`", data_key="to")
    bucket = fields.Integer(
        f"The length of its parts in seconds, of which there may be {MAX_BUCKETS};"
        f" default: at most {DEFAULT_BUCKETS} parts",
        validate=validate.Range(1, round(MAX_AHEAD.total_seconds())),
    )
    tag = fields.String("Callbacks of the schedules with this tag", validate=validate.Length(1, 64))

    @validates_schema
    def check_order(self, data: Loaded, **_: object) -> None:
        if "start" in data and "end" in data and data["end"] <= data["start"]:
            raise ValidationError("must come after from", "to")


class ForecastBucket(OutputSchema):
    """One part of the time."""

    start = Instant("Where it begins", required=True, data_key="from")
    count = fields.Integer("Callbacks that fall due in it", required=True)


class ForecastReceiver(OmitNone):
    """What falls due for one receiver."""

    destination = fields.String("The destination's name")
    origin = fields.String("The origin, where no destination is named")
    count = fields.Integer("Callbacks in all of the time", required=True)
    counts = fields.List(fields.Integer(), "Callbacks in each part, in their order", required=True)


class ForecastSources(OutputSchema):
    """Where the callbacks are known from."""

    rules = fields.Integer("From rules of schedules, of which there are no events yet", required=True)
    events = fields.Integer("Events that wait: occurrences, retries, calls by hand", required=True)
    messages = fields.Integer("Messages that wait", required=True)


class ForecastBlackouts(OutputSchema):
    """What blackouts make of the callbacks."""

    skipped = fields.Integer("Occurrences that blackouts skip: they are not counted", required=True)
    postponed = fields.Integer(
        "Callbacks that fall due in a blackout: they are counted where it ends", required=True
    )


class ForecastOutput(OutputSchema):
    """What falls due when."""

    start = Instant("Where the time begins", required=True, data_key="from")
    end = Instant("Where it ends", required=True, data_key="to")
    bucket_seconds = fields.Integer("The length of its parts", required=True)
    count = fields.Integer("Callbacks that fall due in all of it", required=True)
    busiest = fields.Nested(
        ForecastBucket,
        "The part with the most callbacks; null where there are none",
        required=True,
        allow_none=True,
    )
    buckets = fields.List(ForecastBucket, "Its parts in their order", required=True)
    receivers = fields.List(
        ForecastReceiver, f"The {MAX_RECEIVERS} receivers with the most callbacks", required=True
    )
    receivers_omitted = fields.Integer("How many other receivers there are", required=True)
    sources = fields.Nested(ForecastSources, required=True)
    blackouts = fields.Nested(ForecastBlackouts, required=True)
    overdue = fields.Integer(
        "Callbacks that were due before and still wait, counted up to 100,000", required=True
    )
    sampled = fields.Boolean("Whether the counts are estimates; `notes` says why", required=True)
    notes = fields.List(fields.String(), "What was estimated or left out", required=True)


def buckets_of(query: Loaded, now: datetime) -> Buckets:
    """The stretch of time that a ForecastQuery asks for. Raises InvalidField."""
    start: datetime = query.get("start", now)
    if start < now - TOLERANCE:
        raise InvalidField("from", "must not lie in the past, which the events tell")
    start = max(start, now)
    check_storable(start, "from")
    end: datetime = query.get("end", start + DAY)
    if end <= start:
        raise InvalidField("to", "must come after from, and after now")
    if end - start > MAX_AHEAD:
        raise InvalidField("to", f"must be within {MAX_AHEAD.days} days after from")
    width = timedelta(seconds=query["bucket"]) if "bucket" in query else _width(end - start)
    found = Buckets(start, end, width)
    if len(found) > MAX_BUCKETS:
        least = -((start - end) // MAX_BUCKETS)
        raise InvalidField(
            "bucket",
            f"makes {len(found)} parts of it; {MAX_BUCKETS} are the most: give"
            f" {math.ceil(least.total_seconds())} or more",
        )
    return found


def _width(length: timedelta) -> timedelta:
    widths = (timedelta(seconds=each) for each in _WIDTHS)
    return next(each for each in widths if length <= DEFAULT_BUCKETS * each)


def forecast_shown(made: Forecast) -> View:
    """The fields of ForecastOutput."""
    buckets = made.buckets
    in_buckets, sources = Counter[int](), Counter[str]()
    receivers: dict[str, Counter[int]] = {}
    for cell, count in made.cells.items():
        in_buckets[cell.bucket] += count
        sources[cell.source] += count
        receivers.setdefault(cell.receiver, Counter())[cell.bucket] += count
    parts: list[View] = [
        {"start": buckets.since(number), "count": in_buckets[number]} for number in range(len(buckets))
    ]
    most = sorted(receivers.items(), key=lambda pair: (-pair[1].total(), pair[0]))
    count = in_buckets.total()
    busiest = max(range(len(buckets)), key=lambda number: in_buckets[number])
    return {
        "start": buckets.start,
        "end": buckets.end,
        "bucket_seconds": round(buckets.width.total_seconds()),
        "count": count,
        "busiest": parts[busiest] if count else None,
        "buckets": parts,
        "receivers": [_receiver(name, counts, len(buckets)) for name, counts in most[:MAX_RECEIVERS]],
        "receivers_omitted": max(0, len(most) - MAX_RECEIVERS),
        "sources": {
            name: sources[name]
            for name in (ForecastSource.RULES, ForecastSource.EVENTS, ForecastSource.MESSAGES)
        },
        "blackouts": {each.value: made.withheld[each] for each in Withheld},
        "overdue": made.overdue,
        "sampled": bool(made.notes),
        "notes": made.notes,
    }


def _receiver(name: str, counts: Counter[int], buckets: int) -> View:
    in_each = [counts[number] for number in range(buckets)]
    return receiver_field(name) | {"count": counts.total(), "counts": in_each}
