"""Inspect what does not happen: events that are late, queues that nobody serves, schedules without a future,
processes that are missing. Each is a cause while it lasts.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from scheduler_app.domain.api_key import StoredKey
from scheduler_app.domain.cause import Cause, CauseKey, CauseKind, Tally, found
from scheduler_app.domain.expectation import EXPECTED_KINDS
from scheduler_app.domain.flow_control import Limiter
from scheduler_app.domain.ids import TENANT, WholeId, name_of, tenant_of
from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.lateness import DEFAULT_LATE_AFTER_SECONDS
from scheduler_app.domain.recurrence import InvalidRecurrence
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.stored_fields import EARLIEST
from scheduler_app.store import Store
from scheduler_app.store.cause_inspections import OverdueEvents
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.duties.expectations import ExpectationInspection
from scheduler_app.usecases.duties.stop_inspection import StopInspection

log = get_logger(__name__)

#: Events younger than that are late by no schedule.
LEAST_LATE_SECONDS: Final = 1.0
#: A schedule without an occurrence for so long is stalled.
NO_FUTURE: Final = timedelta(days=400)
#: How often it is looked for, and for keys that expire.
STALLED_PERIOD: Final = timedelta(minutes=1)
#: What is looked at in no other look. Of failing receivers others take care.
_RARE_KINDS: Final = frozenset({CauseKind.STALLED, CauseKind.KEY_EXPIRING})
_KINDS: Final = frozenset(CauseKind) - _RARE_KINDS - {CauseKind.FAILING}
_MACHINERY_KINDS: Final = frozenset({CauseKind.UNSERVED, CauseKind.MACHINERY})
LOOKED_AT: Final = 2_000
SCHEDULES_A_LOOK: Final = 1_000
MISSED_A_LOOK: Final = 1_000
TAGGED_A_LOOK: Final = 1_000
#: Of a key, before and after its end.
EXPIRES_SOON: Final = timedelta(days=7)
KEYS_A_LOOK: Final = 1_000
_BEFORE_ALL: Final = (EARLIEST, "")


class Fault(NamedTuple):
    """A part of the machinery that does not work, and what was found."""

    part: str
    found: str


class CauseInspection:
    """Any number of beats may do it at once: they see the same, and write what has changed."""

    def __init__(
        self,
        store: Store,
        faults: Callable[[], Sequence[Fault]],
        unserved: Callable[[Sequence[str]], Collection[str]],
        limiter: Limiter | None = None,
    ) -> None:
        """`faults`: what of the machinery does not work; `unserved`: those of these queues that no worker
        serves. Both may raise a STORE_FAULT. `limiter` knows the breakers of destinations."""
        self._store = store
        self._faults = faults
        self._unserved = unserved
        self._expectations = ExpectationInspection(store)
        self._stops = StopInspection(store, limiter)
        self._stalled_at = EARLIEST
        self._keys_after = _BEFORE_ALL
        self._parts: frozenset[str] = frozenset()

    def inspect(self, now: datetime) -> None:
        """Looks once. Raises a STORE_FAULT."""
        is_rare = now >= self._stalled_at + STALLED_PERIOD
        living = self._living(_KINDS | _RARE_KINDS if is_rare else _KINDS)
        self._see(CauseKind.LATE, self._late(now), living, now)
        self._see_machinery(living, now)
        if is_rare:
            self._see(CauseKind.STALLED, self._stalled(now), living, now)
            self._see_keys(living[CauseKind.KEY_EXPIRING], now)
            self._stalled_at = now
        self._end_missed(living[CauseKind.MISSED], now)
        self._stops.inspect(living, now)
        self._expectations.inspect((each for kind in EXPECTED_KINDS for each in living[kind]), now)

    def inspect_machinery(self, now: datetime) -> None:
        """Looks once for processes that are missing alone: whoever is no beat cannot see all else. Raises a
        STORE_FAULT."""
        self._see_machinery(self._living(_MACHINERY_KINDS), now)

    def _see_machinery(self, living: dict[CauseKind, list[Cause]], now: datetime) -> None:
        self._see(CauseKind.UNSERVED, self._without_worker(now), living, now)
        known = {cause.key.subject for cause in living[CauseKind.MACHINERY]}
        self._see(CauseKind.MACHINERY, self._lasting_faults(known, now), living, now)

    def _living(self, kinds: Collection[CauseKind]) -> dict[CauseKind, list[Cause]]:
        """The living causes of these kinds alone: there may be a thousand of each, and all are read."""
        living: dict[CauseKind, list[Cause]] = {kind: [] for kind in kinds}
        for cause in self._store.causes.living(kinds=kinds):
            living[cause.key.kind].append(cause)
        return living

    def _see(
        self, kind: CauseKind, seen: Sequence[Tally], living: dict[CauseKind, list[Cause]], now: datetime
    ) -> None:
        """Opens and touches what is seen, and ends what is not any more."""
        keys = {tally.key.id for tally in seen}
        self._tag(seen)
        self._store.causes.touch(seen, observed=True)
        self._end([cause for cause in living[kind] if cause.key.id not in keys], now)

    def _end(self, gone: Iterable[Cause], now: datetime) -> None:
        for cause in self._store.causes.write([cause.over(now) for cause in gone]):
            log.info("cause.over", message="A cause is over", cause_id=cause.id, kind=cause.key.kind.value)

    def _tag(self, seen: Sequence[Tally]) -> None:
        """Adds the tags of the first schedules: notifications and silences choose by them."""
        ids = [each for tally in seen for each in tally.schedules][:TAGGED_A_LOOK]
        known = self._store.kill_switches.judged_by(ids)
        for tally in seen:
            for each in tally.schedules.keys() & known.keys():
                tally.tags |= dict.fromkeys(known[each][0])

    def _late(self, now: datetime) -> list[Tally]:
        overdue = self._store.cause_inspections.overdue(
            now - timedelta(seconds=LEAST_LATE_SECONDS), limit=LOOKED_AT
        )
        own = self._store.cause_inspections.late_after({each.schedule_id for each in overdue} - {""})
        late = [
            each
            for each in overdue
            if (now - each.oldest).total_seconds() > own.get(each.schedule_id, DEFAULT_LATE_AFTER_SECONDS)
        ]
        return _tallies(CauseKind.LATE, late, now, "due and not attempted")

    def _lasting_faults(self, known: Set[str], now: datetime) -> list[Tally]:
        """Those that were there at the last look, too, for processes start one after the other; and those
        that are `known`, which the first look of a process that has just begun does not end."""
        faults, before = list(self._faults()), self._parts | known
        self._parts = frozenset(fault.part for fault in faults)
        return [
            found(CauseKey(TENANT, CauseKind.MACHINERY, fault.part), now, now, fault.found)
            for fault in faults
            if fault.part in before
        ]

    def _without_worker(self, now: datetime) -> list[Tally]:
        tallies: list[Tally] = []
        for queue in self._unserved(self._store.outbox.named_queues()):
            waiting = self._store.cause_inspections.queued(queue, limit=LOOKED_AT)
            words = f"in the queue {queue}, which no worker serves"
            tallies += _tallies(CauseKind.UNSERVED, waiting, now, words, subject=queue)
        return tallies

    def _stalled(self, now: datetime) -> list[Tally]:
        inspections = self._store.cause_inspections
        tallies = [
            _stalled_tally(
                schedule_id, f"is active, and its next occurrence is only at {shown_instant(at)}", now
            )
            for schedule_id, at in inspections.far_ahead(now + NO_FUTURE, limit=SCHEDULES_A_LOOK)
        ]
        for schedule_id in inspections.finished_with_calendar(limit=SCHEDULES_A_LOOK):
            if self._is_swallowed(schedule_id, now):
                said = "would run again, and its calendar closes every day on which it would"
                tallies.append(_stalled_tally(schedule_id, said, now))
        return tallies

    def _see_keys(self, living: Sequence[Cause], now: datetime) -> None:
        """Looks at the next keys that expire: of more than `KEYS_A_LOOK`, each look goes on where the last
        one ended."""
        keys = self._store.api_keys
        last = max(self._keys_after, (now - EXPIRES_SOON, ""))
        page, end = keys.expiring(last, now + EXPIRES_SOON, limit=KEYS_A_LOOK)
        self._keys_after = end or _BEFORE_ALL
        seen = [tally for key in page if (tally := _expiring(key, now)) is not None]
        self._store.causes.touch(seen, observed=True)
        known = {tally.key.id for tally in seen}
        others = [cause for cause in living if cause.key.id not in known]
        left = keys.many({WholeId(cause.key.subject) for cause in others}) if others else []
        known = {key.id for key in left if _expiring(key, now) is not None}
        self._end([cause for cause in others if cause.key.subject not in known], now)

    def _is_swallowed(self, schedule_id: str, now: datetime) -> bool:
        schedule = self._store.schedules.get(schedule_id)
        if not isinstance(schedule, Schedule) or schedule.state is not ScheduleState.FINISHED:
            return False
        try:
            return bool(
                schedule.trigger.recurrence(schedule.created_at).between(now, now + NO_FUTURE, limit=1)
            )
        except InvalidRecurrence:
            return False

    def _end_missed(self, living: Sequence[Cause], now: datetime) -> None:
        """What a schedule missed is over when a later run of it has succeeded, or it is gone. Heartbeats and
        the ledger end their causes themselves."""
        looked_at = [each for each in living if not each.key.failure][:MISSED_A_LOOK]
        succeeded = self._store.last_runs.succeeded({cause.key.subject for cause in looked_at})
        over = [
            cause.over(now)
            for cause in looked_at
            if cause.key.subject in succeeded
            and ((at := succeeded[cause.key.subject]) is None or at > cause.last)
        ]
        self._store.causes.write(over)


def _expiring(key: StoredKey, now: datetime) -> Tally | None:
    """None for a key that nobody need be told of."""
    ends = key.expires_at
    # Who makes a key for a day knows when it ends.
    if ends is None or abs(ends - now) > EXPIRES_SOON or ends - key.created_at < 2 * EXPIRES_SOON:
        return None
    said = f"the API key {key.name} expire{'s' if ends > now else 'd'} at {shown_instant(ends)}"
    return found(CauseKey(key.tenant, CauseKind.KEY_EXPIRING, key.id), now, now, said)


def _tallies(
    kind: CauseKind,
    waiting: Iterable[OverdueEvents],
    now: datetime,
    words: str,
    *,
    subject: str | None = None,
) -> list[Tally]:
    """A tally for each tenant, and each receiver where there is no other subject."""
    groups: defaultdict[CauseKey, list[OverdueEvents]] = defaultdict(list)
    for each in waiting:
        groups[CauseKey(each.tenant, kind, subject or each.receiver)].append(each)
    tallies = []
    for key, rows in groups.items():
        count = sum(each.number for each in rows)
        tally = found(key, min(each.oldest for each in rows), now, f"{_events(count)} {words}")
        tally.failed = count
        tally.schedules = {each.schedule_id: now for each in rows if each.schedule_id}
        tallies.append(tally)
    return tallies


def _stalled_tally(schedule_id: str, said: str, now: datetime) -> Tally:
    key = CauseKey(tenant_of(schedule_id), CauseKind.STALLED, schedule_id)
    tally = found(key, now, now, f"{name_of(schedule_id)} {said}")
    tally.schedules[schedule_id] = now
    return tally


def _events(count: int) -> str:
    return "1 event" if count == 1 else f"{count} events"


def note_missed(store: Store, schedule_id: str, count: int, at: datetime) -> None:
    """Occurrences of a schedule have expired before an attempt was made. Raises a STORE_FAULT."""
    key = CauseKey(tenant_of(schedule_id), CauseKind.MISSED, schedule_id)
    words = "occurrence has" if count == 1 else "occurrences have"
    tally = found(key, at, at, f"{count} {words} expired before an attempt was made")
    tally.failed = count
    tally.schedules[schedule_id] = at
    for tags, _ in store.kill_switches.judged_by([schedule_id]).values():
        tally.tags |= dict.fromkeys(tags)
    store.causes.touch([tally])
