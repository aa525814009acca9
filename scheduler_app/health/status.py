"""The verdict on the whole: well, attention or down, since when, and why.

One function says so for `GET /api/v1/status`, `scheduler status`, the first page, `/metrics` and `/readyz`,
so that they never tell different stories.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from scheduler_app.domain.cause import Cause, CauseKind, subject_shown
from scheduler_app.domain.heartbeat import OF_HEARTBEAT
from scheduler_app.domain.ids import tenant_of
from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.ledger import OF_LEDGER
from scheduler_app.domain.silence import Silence
from scheduler_app.health.check import Check
from scheduler_app.health.processes import check_receivers, check_settings
from scheduler_app.health.ready import ANSWER_SECONDS, Broker, check_ready, without_mongodb
from scheduler_app.health.stops import check_blackouts, check_kill_switches
from scheduler_app.store import STORE_FAULTS, Store, within
from scheduler_app.store.events.cause_marks import MarkCounts
from scheduler_app.version import __version__

#: Reasons in an answer; the others are counted.
MAX_REASONS: Final = 100
#: Tags of a reason; schedules are counted.
MAX_TAGS: Final = 20
#: Waiting events and dead letters of a cause are counted up to this number.
MOST_EVENTS: Final = 1_000


class SystemState(StrEnum):
    """`attention`: work fails or is late; `down`: a part of the machinery does not work."""

    WELL = "well"
    ATTENTION = "attention"
    DOWN = "down"


_NOTHING_COUNTED: Final = MarkCounts()


@dataclass(frozen=True, slots=True)
class StatusReason:
    """One thing that is wrong."""

    kind: str
    """That of its cause, `dead_letters`, `schedules_in_error` or `configuration`."""
    subject: str
    """The receiver, schedule, queue or part, as people call it."""
    message: str
    remedy: str
    since: datetime | None = None
    cause: Cause | None = None
    schedules: int = 0
    events: int = 0
    tags: tuple[str, ...] = ()
    counts: MarkCounts = _NOTHING_COUNTED
    """Of a receiver that fails: what waits, and what was given up."""
    silence: Silence | None = None
    """What keeps it from being told; it is a reason all the same."""


@dataclass(frozen=True, slots=True)
class SystemStatus:
    """What a tenant is told of the whole."""

    verdict: SystemState
    reasons: tuple[StatusReason, ...]
    """The worst first; no more than MAX_REASONS."""
    omitted: int = 0
    """How many more there are."""

    @property
    def since(self) -> datetime | None:
        """When the oldest reason began; None where that is not known, or there is none."""
        return min((each.since for each in self.reasons if each.since), default=None)


@dataclass(frozen=True, slots=True)
class SystemLook:
    """The status, and all checks that it follows from."""

    status: SystemStatus
    ready: Sequence[Check]
    """Those of the machinery, as `check_ready` returns them."""
    checks: Sequence[Check]


def look_at_system(tenant: str, store: Store, broker: Broker, now: datetime) -> SystemLook:
    """Asks everything that the verdict follows from. It raises no STORE_FAULT: a MongoDB that does not answer
    is a reason itself."""
    ready = check_ready(store, broker)
    if not ready[0].ok:
        return SystemLook(_status(ready, [], []), ready, ready)
    try:
        with within(ANSWER_SECONDS):
            further = [*_check_stops(tenant, store, now), *_check_processes(store)]
            work = _work_reasons(tenant, store, now)
    except STORE_FAULTS as error:
        ready = [*without_mongodb(error, "see that it is not overloaded"), *ready[1:]]
        return SystemLook(_status(ready, [], []), ready, ready)
    return SystemLook(_status(ready, further, work), ready, [*ready, *further])


def _check_stops(tenant: str, store: Store, now: datetime) -> list[Check]:
    on = store.kill_switches.everybodys().targets
    targets = sorted((each for each in on if each.tenant == tenant), key=str)
    corrupt_switches = store.kill_switches.corrupt()
    corrupt_blackouts = [each for each in store.blackouts.corrupt(now) if tenant_of(each.id) == tenant]
    found = [check_kill_switches(targets, corrupt_switches)] if targets or corrupt_switches else []
    return [*found, check_blackouts(corrupt_blackouts)] if corrupt_blackouts else found


def _check_processes(store: Store) -> list[Check]:
    nodes = store.processes.alive()
    return [check_settings(nodes, store.processes.settings, __version__), check_receivers(nodes)]


def _status(ready: Sequence[Check], further: Sequence[Check], work: Sequence[StatusReason]) -> SystemStatus:
    broken = [check for check in ready if not check.ok]
    lasting = {each.subject: each for each in work if each.kind == CauseKind.MACHINERY}
    reasons = [_of_check(CauseKind.MACHINERY.value, check, lasting.get(check.name)) for check in broken]
    # The checks say what of the machinery is wrong at this moment.
    reasons += [each for each in work if each.kind != CauseKind.MACHINERY]
    reasons += [_of_check("configuration", check, None) for check in further if not check.ok]
    verdict = SystemState.DOWN if broken else SystemState.ATTENTION if reasons else SystemState.WELL
    return SystemStatus(verdict, tuple(reasons[:MAX_REASONS]), max(0, len(reasons) - MAX_REASONS))


def _work_reasons(tenant: str, store: Store, now: datetime) -> list[StatusReason]:
    causes = store.causes.unsettled(tenant, limit=MAX_REASONS + 1)
    keys = [cause.key.id for cause in causes if cause.key.kind is CauseKind.FAILING]
    counts = store.cause_marks.counts(keys, most=MOST_EVENTS)
    silences = store.silences.lasting(now)
    # Dead letters are told by their key: those of an earlier failure are among those of the newest one.
    newest = {cause.key: cause.id for cause in sorted(causes, key=lambda cause: cause.since)}
    reasons = [
        replace(reason, silence=silences.of(cause))
        for cause in causes
        if newest[cause.key] == cause.id
        and (reason := _reason(cause, counts.get(cause.key.id, _NOTHING_COUNTED)))
    ]
    if count := store.schedules.count_by_state(tenant, most=MOST_EVENTS).get("error", 0):
        reasons.append(_in_error(count))
    return reasons


def _of_check(kind: str, check: Check, lasting: StatusReason | None) -> StatusReason:
    return StatusReason(
        *(kind, check.name, f"{check.name}: {check.found}", check.remedy),
        since=lasting.since if lasting else None,
        cause=lasting.cause if lasting else None,
    )


def _in_error(count: int) -> StatusReason:
    return StatusReason(
        "schedules_in_error",
        "schedules",
        f"{count} schedule{'s make' if count > 1 else ' makes'} no events any more",
        "each says why; correct it, then resume it",
        schedules=count,
    )


def _reason(cause: Cause, counts: MarkCounts) -> StatusReason | None:
    """What a cause is a reason of; None where nothing of it is left."""
    kind: str = cause.key.kind.value
    events = cause.failed
    if cause.key.kind is CauseKind.FAILING:
        events = counts.waiting + counts.dead
        if not cause.is_living:
            kind, events = "dead_letters", counts.dead
            if not counts.dead:
                return None
    return StatusReason(
        *(kind, subject_shown(cause), cause_sentence(cause, counts)),
        remedy=remedy_of(cause, kind),
        since=cause.since,
        cause=cause,
        schedules=cause.schedules.count,
        events=events,
        tags=cause.tags.names[:MAX_TAGS],
        counts=counts,
    )


def remedy_of(cause: Cause, kind: str = "") -> str:
    """What to do about a cause; `kind` is that of its reason, where it is not its own."""
    told_by = cause.key.failure if cause.key.failure in (OF_HEARTBEAT, OF_LEDGER) else kind
    remedy = _REMEDIES[told_by or cause.key.kind.value]
    return remedy.replace("QUEUE", cause.key.subject)


_REMEDIES: Final = {
    "machinery": "start it again",
    "failing": "see what the receiver answers; what waits is tried again by itself, and a redrive sends what"
    " was given up",
    "dead_letters": "send them again, or dismiss them",
    "late": "start more workers, or see why those that run take nothing",
    "stalled": "correct its rule or its calendar",
    "unserved": "start a worker for this queue: celery -A scheduler_app worker -Q QUEUE",
    OF_LEDGER: "see which events: scheduler ledger show; find out what deletes or writes them",
    OF_HEARTBEAT: "see why what should ping does not run, or does not reach us",
    "overrunning": "see what the run waits for; completion_timeout_seconds or a timeout would end it",
    "not_completed": "see its history: what was tried, and what the receiver answered",
    "no_success": "see its history, or why its runs were left out",
    "key_expiring": "make another key, give it to who uses this one, and delete this one",
    "paused_by_failures": "see why its events failed, then resume it",
    "breaker": "see what the receiver answers; it closes by itself when a probe succeeds",
    "missed": "see why beats or workers were away; a backfill makes up for occurrences",
}


def cause_sentence(cause: Cause, counts: MarkCounts) -> str:
    """A cause in one sentence."""
    at, since = subject_shown(cause), f"since {shown_instant(cause.since)}"
    if cause.key.kind is not CauseKind.FAILING:
        return f"{at}: {cause.error}, {since}"
    schedules = cause.schedules
    more = "" if schedules.is_exact else "at least "
    whom = f", {more}{_number(schedules.count, 'schedule')}" if schedules.count else ""
    gone = f"{_number(counts.dead, 'event')} failed for good"
    if not cause.is_living:
        return f"{gone} at {at} ({cause.key.failure}){whom}"
    waiting = f"{_number(counts.waiting, 'event')} to be tried again"
    left = [text for count, text in ((counts.waiting, waiting), (counts.dead, gone)) if count]
    return "; ".join([f"{at} fails ({cause.key.failure}) {since}{whom}", *left])


def _number(count: int, thing: str) -> str:
    more = "+" if thing == "event" and count >= MOST_EVENTS else ""
    return f"{count:,}{more} {thing}{'s' if count != 1 else ''}"


def reasons_by_kind(reasons: Iterable[StatusReason]) -> dict[str, int]:
    """How many reasons there are of each kind."""
    found: dict[str, int] = {}
    for each in reasons:
        found[each.kind] = found.get(each.kind, 0) + 1
    return found
