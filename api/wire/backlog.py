"""The backlog and backfills: what is owed, what to give up, and what past occurrences to make up for."""

from datetime import datetime
from typing import ClassVar, Final

from marshmallow import validate

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.event import receiver_field
from scheduler_app.api.wire.field_types import DestinationId, Instant, ScheduleId
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema, attributes
from scheduler_app.api.wire.paging import PageSelection, call_limit
from scheduler_app.domain.action import UNKNOWN_ORIGIN, origin_of
from scheduler_app.domain.backfill import (
    DEFAULT_RATE,
    LEAST_RATE,
    MAX_OCCURRENCES,
    MAX_RATE,
    BackfillOverlap,
    BackfillState,
)
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.http_action import destination_key
from scheduler_app.domain.ids import name_of
from scheduler_app.store.backlogs import BacklogFilter
from scheduler_app.usecases.duties.backfills import BackfillProgress
from scheduler_app.usecases.questions.backlog import MAX_COUNTED, MAX_LOOKED_AT, BacklogReport

#: Schedules and receivers in an answer.
MAX_SHOWN: Final = 20
MAX_EXPIRED: Final = 1_000


class OwedOfSchedule(OmitNone):
    """What one schedule owes."""

    schedule_id = fields.String("Absent for messages")
    count = fields.Integer(required=True)
    oldest = Instant("Since when its oldest event is due", required=True)


class OwedToReceiver(OmitNone):
    """What one receiver is owed."""

    destination = fields.String("The destination's name")
    origin = fields.String("The origin, where no destination is named")
    count = fields.Integer(required=True)
    oldest = Instant("Since when its oldest event is due", required=True)


class OwedByPolicy(OutputSchema):
    """What is late under the same policies, which say what becomes of it."""

    catch_up = fields.String(
        "That of occurrences; `all` for messages, calls by hand and backfills", required=True
    )
    expires = fields.Boolean("Whether `expire_after_seconds` ends the waiting", required=True)
    run_overlap = fields.String("`queue`: one after the other", required=True)
    count = fields.Integer(required=True)
    oldest = Instant("Since when its oldest event is due", required=True)


class BacklogOutput(OmitNone):
    """What was due before now and waits."""

    at = Instant("Now", required=True)
    count = fields.Integer(
        f"Events that were due before and wait, counted up to {MAX_COUNTED}", required=True
    )
    oldest = Instant("Since when the oldest of them is due; absent for none")
    schedules = fields.List(OwedOfSchedule, f"The {MAX_SHOWN} schedules that owe the most", required=True)
    schedules_omitted = fields.Integer("How many others owe", required=True)
    receivers = fields.List(
        OwedToReceiver, f"The {MAX_SHOWN} receivers that are owed the most", required=True
    )
    receivers_omitted = fields.Integer("How many others are owed", required=True)
    policies = fields.List(OwedByPolicy, "The same by policy, the most first", required=True)
    sampled = fields.Boolean(
        f"Whether schedules, receivers and policies are of {MAX_LOOKED_AT} of the events", required=True
    )
    finished_per_second = fields.Float("How many events ended in a second of the last minute", required=True)
    seconds_to_drain = fields.Float(
        "How long all of it takes at that speed; absent where nothing ended in that minute"
    )


class BacklogExpireInput(PageSelection):
    """Which late events to give up: they must match every field given."""

    class Meta(PageSelection.Meta):
        exclude = ("cursor",)

    FILTERS: ClassVar = {name: name for name in ("schedule_id", "destination", "origin", "due_before")}
    THINGS = "late event"

    schedule_id = ScheduleId("Events of this schedule")
    destination = DestinationId("Events for this destination")
    origin = fields.String(
        "Events for this origin; a whole URL is accepted", validate=validate.Length(1, 2048)
    )
    due_before = Instant("Events that were due before this instant; default: now")
    limit = call_limit(MAX_EXPIRED, MAX_EXPIRED)


class BacklogExpired(OutputSchema):
    """What was given up."""

    expired = fields.Integer(
        f"Events that are `expired` now; of a dry run all that would be, counted up to {MAX_COUNTED}",
        required=True,
    )
    more = fields.Boolean("Whether to call again with the same filter for the rest", required=True)


def backlog_selection(given: Loaded, now: datetime) -> BacklogFilter:
    """The late events that a BacklogExpireInput means. Raises InvalidField."""
    due_before = given.get("due_before", now)
    if due_before > now:
        raise InvalidField("due_before", "must not lie in the future: only what is late can be given up")
    receiver = None
    if "destination" in given and "origin" in given:
        raise InvalidField("origin", "give destination or origin, not both")
    if "destination" in given:
        receiver = destination_key(given["destination"])
    elif "origin" in given:
        receiver = origin_of(given["origin"])
        if receiver == UNKNOWN_ORIGIN and given["origin"] != UNKNOWN_ORIGIN:
            raise InvalidField("origin", "must be a scheme, a host and perhaps a port: https://example.com")
    return BacklogFilter(due_before, given.get("schedule_id"), receiver)


def backlog_shown(found: BacklogReport) -> View:
    """The fields of BacklogOutput."""
    drain = found.seconds_to_drain
    return {
        **attributes(found, "at", "count", "oldest", "sampled"),
        "schedules": [
            {"schedule_id": name_of(name) or None, "count": count, "oldest": oldest}
            for name, count, oldest in found.by_schedule[:MAX_SHOWN]
        ],
        "schedules_omitted": max(0, len(found.by_schedule) - MAX_SHOWN),
        "receivers": [
            receiver_field(name) | {"count": count, "oldest": oldest}
            for name, count, oldest in found.by_receiver[:MAX_SHOWN]
        ],
        "receivers_omitted": max(0, len(found.by_receiver) - MAX_SHOWN),
        "policies": [
            policies._asdict() | {"count": count, "oldest": oldest}
            for policies, count, oldest in found.by_policy
        ],
        "finished_per_second": round(found.finished_per_second, 3),
        "seconds_to_drain": None if drain is None else round(drain, 1),
    }


class BackfillInput(InputSchema):
    """Which past occurrences to make up for, and how fast."""

    since = Instant("The first instant that is looked at", required=True, data_key="from")
    until = Instant("The last one; default: now", data_key="to")
    rate_per_second = fields.Float(
        "How many callbacks fall due in a second at most",
        load_default=DEFAULT_RATE,
        validate=validate.Range(LEAST_RATE, MAX_RATE),
    )
    overlap = fields.String(
        "`allow`: its callbacks run beside each other; `queue`: each waits for the end of"
        " the one before, retries included",
        load_default=BackfillOverlap.ALLOW.value,
        validate=validate.OneOf([each.value for each in BackfillOverlap]),
    )
    only_missing = fields.JsonBoolean(
        "Leave out occurrences that have an event that waits, succeeded or ended in"
        " `error`; `false` makes every one once more",
        load_default=True,
    )
    dry_run = fields.JsonBoolean("Only tell what it would do", load_default=False)


class BackfillOutput(OmitNone):
    """A backfill and how far it has come."""

    schedule_id = fields.String(required=True)
    state = fields.String(
        "`running`: beats make its events; `made`: all are made, and some wait; `done`;"
        " `cancelled`; `error`, with its `reason`",
        required=True,
        validate=validate.OneOf([*(each.value for each in BackfillState), "done"]),
    )
    reason = fields.String("Why it ended")
    since = Instant(required=True, data_key="from")
    until = Instant(required=True, data_key="to")
    rate_per_second = fields.Float(required=True)
    overlap = fields.String(required=True)
    only_missing = fields.Boolean(required=True)
    occurrences = fields.Integer(
        f"Occurrences of the rule in that time, {MAX_OCCURRENCES} at most", required=True
    )
    made = fields.Integer("Of these, how many are events by now", required=True)
    left_out = fields.Integer("How many had an event already; of a dry run all of them", required=True)
    waiting = fields.Integer("Its events that are not finished", required=True)
    completed = fields.Integer("Its events that succeeded", required=True)
    failed = fields.Integer("Its events that ended in `error`", required=True)
    seconds_left = fields.Integer("How long the rest takes at its rate; absent once all is made")
    started_at = Instant(required=True)
    ended_at = Instant("When all was made, or it was cancelled")


def backfill_shown(progress: BackfillProgress) -> View:
    """The fields of BackfillOutput."""
    found = progress.backfill
    left_out = found.left_out or progress.there
    over = found.state is BackfillState.MADE and not progress.waiting
    running = found.state is BackfillState.RUNNING
    rest = max(0, found.occurrences - found.made - left_out)
    return {
        **attributes(found, "reason", "since", "until", "rate_per_second", "only_missing", "occurrences"),
        **attributes(found, "made", "started_at", "ended_at"),
        **attributes(progress, "waiting", "completed", "failed"),
        "schedule_id": name_of(found.schedule_id),
        "state": "done" if over else found.state.value,
        "overlap": found.overlap.value,
        "left_out": left_out,
        "seconds_left": round(rest / found.rate_per_second) if running else None,
    }
