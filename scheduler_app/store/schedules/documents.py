"""A schedule as MongoDB keeps it, and back. A `CorruptSchedule` stands for one that cannot be read; it is set
aside: it is in `error` by itself, with the reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduler_app.actions.registry import KINDS, kind_of
from scheduler_app.clock import clock
from scheduler_app.domain.action import CALLBACKS, Action, is_queue
from scheduler_app.domain.expectation import Expectation
from scheduler_app.domain.http_action import HttpAction
from scheduler_app.domain.ids import partition_of, tenant_of
from scheduler_app.domain.resources.schedule import EXPECT, SCHEDULE
from scheduler_app.domain.schedule import (
    LastRun,
    Pause,
    Schedule,
    ScheduleState,
)
from scheduler_app.domain.stored_fields import (
    Corrupt,
    fields,
    flag,
    instant,
    items,
    one_of,
    optional,
    tenant,
    text,
    version,
    whole,
)
from scheduler_app.store.encryption import (
    DESTINATION_VERSION,
    SecretBox,
    action_kind,
    open_document,
    seal_document,
    why_unreadable,
)
from scheduler_app.store.mongo import Document, Documents
from scheduler_app.store.resource_fields import (
    RowCodec,
    delivery_document,
    lateness_document,
    notifies_document,
    read_delivery,
    read_lateness,
    read_notifies,
    read_signing,
    signing_document,
    unsealed,
)
from scheduler_app.store.schedules.owed_lines import with_line_of_beat
from scheduler_app.store.schedules.trigger_documents import (
    calendar_use_document,
    from_owed_document,
    read_calendar_use,
    read_trigger,
    trigger_document,
)
from scheduler_app.telemetry import get_logger, metrics


def pause_document(schedule: Schedule) -> Document:
    """The fields of a schedule that are about pauses; None is left out by whoever writes them."""
    pause = schedule.pause
    kept = {} if pause is None else {"reason": pause.reason, "note": pause.note, "until": pause.until}
    return {
        "pause": {key: value for key, value in kept.items() if value is not None} or None,
        "failures_since": schedule.failures_since,
    }


def read_pause(value: Any) -> Pause | None:
    """Raises Corrupt."""
    if value is None:
        return None
    row = fields(value, "pause")
    return Pause(
        reason=text(row.get("reason"), "pause.reason"),
        note=optional(text, row.get("note"), "pause.note"),
        until=optional(instant, row.get("until"), "pause.until"),
    )


#: The fields that most schedules have not, but for those of their policies for retries and late events.
_SPARSE = RowCodec(Schedule, (row for row in SCHEDULE if row.sparse and row.path == row.key))

_EXPECT = RowCodec(Expectation, EXPECT)

#: Of a document without sealed parts and without a destination; `DESTINATION_VERSION` is the newest that is
#: read.
DOCUMENT_VERSION = 1

#: Documents of a newer release are left to its processes: a later `v`, or a kind of action of its own.
READABLE: Document = {
    "v": {"$not": {"$gt": DESTINATION_VERSION}},
    "$nor": [{"action.type": {"$type": "string", "$nin": list(KINDS)}}],
}
_STATES = tuple(state.value for state in ScheduleState)


def to_schedule_document(schedule: Schedule, envelope: SecretBox) -> Document:
    """The document without what moves on beside people's edits: claims, what is owed, the last run. None is
    left out: partial indexes ask what exists."""
    document = _fields(schedule)
    return seal_document({key: value for key, value in document.items() if value is not None}, envelope)


def absent_fields(schedule: Schedule, document: Document) -> set[str]:
    """The fields that documents of other schedules have and `document`, made of this one, has not."""
    return {*_fields(schedule), "sealed"} - set(document)


def _fields(schedule: Schedule) -> Document:
    """Every field that a document may have; None for those that the schedule has not."""
    return {
        "_id": schedule.id,
        "v": DESTINATION_VERSION if _needs_this_release(schedule) else DOCUMENT_VERSION,
        "tenant": schedule.tenant,
        "partition": partition_of(schedule.id),
        "name": schedule.name,
        **trigger_document(schedule.trigger),
        "action": kind_of(schedule.action).to_document(schedule.action),
        **delivery_document(schedule.retry, schedule.timeout_seconds, schedule.success),
        "tags": list(schedule.tags),
        **pause_document(schedule),
        "version": schedule.version,
        "first_revision": schedule.first_revision if schedule.first_revision > 1 else None,
        **calendar_use_document(schedule.calendar),
        "lateness": lateness_document(schedule.lateness),
        **revision_document(schedule),
        **_SPARSE.document(schedule),
        "expect": expectation_document(schedule.expect),
        "signing": signing_document(schedule.signing),
        "hops": schedule.hops or None,
        "queue": schedule.queue if schedule.queue != CALLBACKS else None,
        "notifies": notifies_document(schedule.on_success, schedule.on_failure),
        "created_at": schedule.created_at,
        "updated_at": schedule.updated_at,
    }


def revision_document(schedule: Schedule) -> Document:
    """What `Schedule.revise` changes by itself; None if there is nothing."""
    return {
        "state": schedule.state.value,
        "reason": schedule.reason,
        "revision": schedule.revision,
        "revised_at": schedule.revised_at,
        "cuts": [list(cut) for cut in schedule.cuts] or None,
        "next_run_at": schedule.next_run_at,
        "finishes_at": schedule.finishes_at,
        "cut_pending": schedule.cut_pending or None,
        "checkpoint": dict(schedule.checkpoint) if schedule.checkpoint else None,
        "zone_data": schedule.zone_data,
        "calendar_days": schedule.calendar.days_version if schedule.calendar else None,
    }


def from_schedule_document(row: Mapping[str, Any], envelope: SecretBox) -> Schedule:
    """Raises Corrupt for a document edited by hand, Newer for a newer release's, and UnreadableSecret."""
    version(row.get("v"), DESTINATION_VERSION)
    row = open_document(row, envelope)
    get = row.get
    retry, timeout_seconds, success = read_delivery(row)
    revision = whole(get("revision"), "revision", least=1)
    schedule_id = text(row["_id"], "_id")
    others: dict[str, Any] = _SPARSE.read(row) | dict(read_notifies(get("notifies")))
    tenant(get("tenant"), "tenant", schedule_id)
    return Schedule(
        id=schedule_id,
        name=text(get("name"), "name"),
        trigger=read_trigger(row),
        action=read_action(get("action"), schedule_id, envelope),
        created_at=instant(get("created_at"), "created_at"),
        updated_at=instant(get("updated_at"), "updated_at"),
        retry=retry,
        timeout_seconds=timeout_seconds,
        success=success,
        tags=tuple([text(tag, "an item of tags") for tag in items(get("tags") or [], "tags")]),
        state=ScheduleState(one_of(get("state"), "state", _STATES)),
        reason=optional(text, get("reason"), "reason"),
        version=whole(get("version"), "version", least=1),
        revision=revision,
        first_revision=whole(get("first_revision") or 1, "first_revision", least=1, most=revision),
        revised_at=instant(get("revised_at"), "revised_at"),
        cuts=tuple([read_cut(each) for each in items(get("cuts") or [], "cuts")]),
        next_run_at=optional(instant, get("next_run_at"), "next_run_at"),
        finishes_at=optional(instant, get("finishes_at"), "finishes_at"),
        cut_pending=bool(optional(flag, get("cut_pending"), "cut_pending")),
        checkpoint=optional(fields, get("checkpoint"), "checkpoint"),
        zone_data=optional(text, get("zone_data"), "zone_data"),
        signing=read_signing(get("signing"), envelope),
        owed=tuple([from_owed_document(each) for each in items(get("owed") or [], "owed")]),
        hops=whole(get("hops") or 0, "hops"),
        queue=_queue(get("queue")),
        last_run=read_last_run(get("last_run")),
        calendar=read_calendar_use(row),
        lateness=read_lateness(get("lateness")),
        expect=read_expectation(get("expect")),
        **others,
        pause=read_pause(get("pause")),
        failures_since=optional(instant, get("failures_since"), "failures_since"),
    )


def _needs_this_release(schedule: Schedule) -> bool:
    """Whether the release before, which knows none of these fields, would do something else with it: it
    leaves the schedule and its events to processes of this one."""
    return (
        not isinstance(schedule.action, HttpAction)
        or schedule.action.destination is not None
        or bool(schedule.on_success or schedule.on_failure)
        or schedule.calendar is not None
        or schedule.run_overlap != "allow"
        or schedule.completion != "response"
        or schedule.queue != CALLBACKS
        or schedule.lateness.judges
        or schedule.jitter_seconds > 0
    )


def expectation_document(expect: Expectation | None) -> Document | None:
    """What `read_expectation` reads; None if nothing is expected."""
    if expect is None:
        return None
    return {name: value for name, value in _EXPECT.document(expect).items() if value is not None}


def read_expectation(value: Any) -> Expectation | None:
    """Raises Corrupt."""
    if value is None:
        return None
    try:
        return Expectation(**_EXPECT.read(fields(value, "expect")))
    except Corrupt as error:
        raise Corrupt(f"expect: {error}") from None


def _queue(value: Any) -> str:
    if value is None:
        return CALLBACKS
    if not is_queue(value):
        raise Corrupt("queue is no name that a queue may have")
    return str(value)


def read_last_run(value: Any) -> LastRun | None:
    """None for a corrupt one, too: it is only shown, and nothing else depends on it."""
    if value is None:
        return None
    try:
        row = fields(value, "last_run")
        return LastRun(
            time=instant(row.get("time"), "last_run.time"),
            outcome=text(row.get("outcome"), "last_run.outcome"),
            event_id=text(row.get("event_id"), "last_run.event_id"),
            ended_at=optional(instant, row.get("ended_at"), "last_run.ended_at"),
        )
    except Corrupt:
        return None


def read_action(value: Any, schedule_id: str, envelope: SecretBox) -> Action:
    """Raises Corrupt and Newer."""
    action = fields(value, "action")
    kind = action_kind(action)
    headers = action.get("headers")
    if isinstance(headers, list) and any(map(_is_sealed_alone, headers)):
        action = action | {"headers": [_opened_header(pair, envelope) for pair in headers]}
    found: Action = kind.from_document(action)
    if found.destination is not None and tenant_of(found.destination) != tenant_of(schedule_id):
        raise Corrupt("action.destination is another tenant's")  # it would be sent this one's secrets
    return found


def _is_sealed_alone(pair: Any) -> bool:
    """Whether an older release sealed this header's value by itself."""
    return isinstance(pair, list) and len(pair) == 2 and isinstance(pair[1], dict)


def _opened_header(pair: Any, envelope: SecretBox) -> Any:
    return [pair[0], unsealed(pair[1], "action.headers", envelope)] if _is_sealed_alone(pair) else pair


def read_cut(pair: Any) -> tuple[int, datetime]:
    """A revision before the present one, and when it began. Raises Corrupt."""
    if len(items(pair, "an item of cuts")) != 2:
        raise Corrupt("an item of cuts is not a pair of a revision and a date")
    return whole(pair[0], "a revision in cuts", least=1), instant(pair[1], "a date in cuts")


@dataclass(frozen=True, slots=True)
class CorruptSchedule:
    """A stored schedule that cannot be read, and why."""

    schedule_id: str
    reason: str
    readable_elsewhere: bool = False
    """Nothing is wrong with it: a newer release wrote it, or this process lacks the key to its secrets."""


def read_schedule(row: Document, secret_box: SecretBox) -> Schedule | CorruptSchedule:
    """The schedule that a document makes, or why it makes none."""
    try:
        return from_schedule_document(row, secret_box)
    except Exception as error:  # a document edited by hand may cause any error
        return CorruptSchedule(row["_id"], *why_unreadable(error))


def read_whole_schedule(row: Document, secret_box: SecretBox) -> Schedule | CorruptSchedule:
    """The same for showing a schedule: what it sends can be shown, too."""
    found = read_schedule(row, secret_box)
    action = found.action if isinstance(found, Schedule) else None
    if isinstance(action, HttpAction) and action.body is not None:
        try:
            action.body.shown()
        except ValueError as error:
            kind = action.body.kind.value
            return CorruptSchedule(row["_id"], f"action.body.data is no {kind}: {error}"[:300])
    return found


log = get_logger(__name__)


def set_schedule_aside(schedules: Documents, which: Document, reason: str, now: datetime) -> bool:
    """False when none matches `which`."""
    after = {"state": ScheduleState.ERROR.value, "reason": reason[:1000]}
    result = schedules.update_one(
        which,
        [
            {"$set": {"unlogged": with_line_of_beat("set aside", after, now)}},
            {"$set": {name: {"$literal": value} for name, value in after.items()} | {"updated_at": now}},
            {"$unset": ["next_run_at", "owner", "lease_until"]},
        ],
    )
    return result.matched_count == 1


def report_set_aside(schedule_id: str, reason: str) -> None:
    """Counts a schedule that was set aside, and logs it for the operator."""
    metrics.set_aside.inc()
    log.error(
        "schedule.set_aside",
        message="A schedule cannot be expanded and is in error; mend its rule and resume it",
        schedule_id=schedule_id,
        reason=reason,
    )


def set_aside_corrupt(schedules: Documents, row: Mapping[str, Any], found: CorruptSchedule) -> None:
    """Sets an unclaimed schedule aside, unless it was changed since it was read."""
    same = {name: {"$eq": row.get(name)} for name in ("state", "version", "revision")}
    if found.readable_elsewhere:
        log.error(
            "schedule.not_readable_here",
            message="A schedule of a newer release, or whose key SECRETS_KEY lacks, is left alone",
            schedule_id=str(found.schedule_id),
            reason=found.reason,
        )
    elif set_schedule_aside(schedules, {"_id": row["_id"]} | same, found.reason, clock.now()):
        report_set_aside(str(found.schedule_id), found.reason)
