"""The backlog: what is owed, and what to give up."""

from datetime import datetime
from typing import ClassVar, Final

from marshmallow import fields, validate

from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.field_types import DestinationName, Instant, ScheduleId
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema
from scheduler_app.api.wire.selection import Selection
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.http_action import DESTINATION_PREFIX, destination_key
from scheduler_app.domain.origin import UNKNOWN_ORIGIN, origin_of
from scheduler_app.domain.tenants import whole_id
from scheduler_app.store.backlogs import Which
from scheduler_app.usecases.backlog import MAX_COUNTED, MAX_LOOKED_AT, Backlog

#: Schedules and receivers in an answer.
MAX_SHOWN: Final = 20
MAX_EXPIRED: Final = 1_000


class OwedOfSchedule(OmitNone):
    """What one schedule owes."""

    schedule_id = fields.String(metadata={"description": "Absent for messages"})
    count = fields.Integer(required=True)
    oldest = Instant(required=True, metadata={"description": "Since when its oldest event is due"})


class OwedToReceiver(OmitNone):
    """What one receiver is owed."""

    destination = fields.String(metadata={"description": "The destination's name"})
    origin = fields.String(metadata={"description": "The origin, where no destination is named"})
    count = fields.Integer(required=True)
    oldest = Instant(required=True, metadata={"description": "Since when its oldest event is due"})


class OwedByPolicy(OutputSchema):
    """What is late under the same policies, which say what becomes of it."""

    catch_up = fields.String(
        required=True,
        metadata={"description": "That of occurrences; `all` for messages, calls by hand and backfills"},
    )
    expires = fields.Boolean(
        required=True, metadata={"description": "Whether `expire_after_seconds` ends the waiting"}
    )
    run_overlap = fields.String(required=True, metadata={"description": "`queue`: one after the other"})
    count = fields.Integer(required=True)
    oldest = Instant(required=True, metadata={"description": "Since when its oldest event is due"})


class BacklogOutput(OmitNone):
    """What was due before now and waits."""

    at = Instant(required=True, metadata={"description": "Now"})
    count = fields.Integer(
        required=True,
        metadata={"description": f"Events that were due before and wait, counted up to {MAX_COUNTED}"},
    )
    oldest = Instant(metadata={"description": "Since when the oldest of them is due; absent for none"})
    schedules = fields.List(
        fields.Nested(OwedOfSchedule),
        required=True,
        metadata={"description": f"The {MAX_SHOWN} schedules that owe the most"},
    )
    schedules_omitted = fields.Integer(required=True, metadata={"description": "How many others owe"})
    receivers = fields.List(
        fields.Nested(OwedToReceiver),
        required=True,
        metadata={"description": f"The {MAX_SHOWN} receivers that are owed the most"},
    )
    receivers_omitted = fields.Integer(required=True, metadata={"description": "How many others are owed"})
    policies = fields.List(
        fields.Nested(OwedByPolicy),
        required=True,
        metadata={"description": "The same by policy, the most first"},
    )
    sampled = fields.Boolean(
        required=True,
        metadata={
            "description": f"Whether schedules, receivers and policies are of {MAX_LOOKED_AT} of the events"
        },
    )
    finished_per_second = fields.Float(
        required=True, metadata={"description": "How many events ended in a second of the last minute"}
    )
    seconds_to_drain = fields.Float(
        metadata={
            "description": "How long all of it takes at that speed; absent where nothing ended in that minute"
        }
    )


class BacklogExpireInput(Selection):
    """Which late events to give up: they must match every field given."""

    class Meta(Selection.Meta):
        exclude = ("cursor",)

    FILTERS: ClassVar = {
        "schedule_id": "schedule_id",
        "destination": "destination",
        "origin": "origin",
        "due_before": "due_before",
    }
    THINGS = "late event"

    schedule_id = ScheduleId(metadata={"description": "Events of this schedule"})
    destination = DestinationName(metadata={"description": "Events for this destination"})
    origin = fields.String(
        validate=validate.Length(min=1, max=2048),
        metadata={"description": "Events for this origin; a whole URL is accepted"},
    )
    due_before = Instant(metadata={"description": "Events that were due before this instant; default: now"})
    limit = fields.Integer(
        strict=True,
        load_default=MAX_EXPIRED,
        validate=validate.Range(1, MAX_EXPIRED),
        metadata={"description": "How many at most in this call"},
    )


class BacklogExpired(OutputSchema):
    """What was given up."""

    expired = fields.Integer(
        required=True,
        metadata={
            "description": "Events that are `expired` now; of a dry run all that would be, counted up to"
            f" {MAX_COUNTED}"
        },
    )
    more = fields.Boolean(
        required=True, metadata={"description": "Whether to call again with the same filter for the rest"}
    )


def which_of(given: Loaded, now: datetime, tenant: str) -> Which:
    """The late events that a BacklogExpireInput means. Raises InvalidField."""
    due_before = given.get("due_before", now)
    if due_before > now:
        raise InvalidField("due_before", "must not lie in the future: only what is late can be given up")
    receiver = None
    if "destination" in given and "origin" in given:
        raise InvalidField("origin", "give destination or origin, not both")
    if "destination" in given:
        receiver = destination_key(whole_id(tenant, given["destination"]))
    elif "origin" in given:
        receiver = origin_of(given["origin"])
        if receiver == UNKNOWN_ORIGIN and given["origin"] != UNKNOWN_ORIGIN:
            raise InvalidField("origin", "must be a scheme, a host and perhaps a port: https://example.com")
    schedule_id = whole_id(tenant, given["schedule_id"]) if "schedule_id" in given else None
    return Which(due_before, schedule_id, receiver)


def backlog_shown(found: Backlog) -> View:
    """The fields of BacklogOutput."""
    drain = found.seconds_to_drain
    return {
        "at": found.at,
        "count": found.count,
        "oldest": found.oldest,
        "schedules": [
            {"schedule_id": name.rpartition(":")[2] or None, "count": count, "oldest": oldest}
            for name, count, oldest in found.by_schedule[:MAX_SHOWN]
        ],
        "schedules_omitted": max(0, len(found.by_schedule) - MAX_SHOWN),
        "receivers": [
            _receiver(name) | {"count": count, "oldest": oldest}
            for name, count, oldest in found.by_receiver[:MAX_SHOWN]
        ],
        "receivers_omitted": max(0, len(found.by_receiver) - MAX_SHOWN),
        "policies": [
            policies._asdict() | {"count": count, "oldest": oldest}
            for policies, count, oldest in found.by_policy
        ],
        "sampled": found.sampled,
        "finished_per_second": round(found.finished_per_second, 3),
        "seconds_to_drain": None if drain is None else round(drain, 1),
    }


def _receiver(name: str) -> View:
    if name.startswith(DESTINATION_PREFIX):
        return {"destination": name.removeprefix(DESTINATION_PREFIX).rpartition(":")[2]}
    return {"origin": name}
