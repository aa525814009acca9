"""Inspect what does not go on: schedules that their failures have paused, that are set aside or have
finished, breakers that are open, kill switches that are on. Each is a cause while it lasts.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, Protocol

from scheduler_app.domain.cause import Cause, CauseKey, CauseKind, Tally, found, opened
from scheduler_app.domain.cause_match import CauseMatch
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.flow_control import Limiter
from scheduler_app.domain.http_action import destination_key, destination_of_key
from scheduler_app.domain.ids import WholeId, tenant_of, whole_id
from scheduler_app.domain.kill_switch import KillSwitch, Scope
from scheduler_app.domain.notification_rule import Told
from scheduler_app.domain.stored_fields import EARLIEST
from scheduler_app.store import Store
from scheduler_app.store.cause_inspections import InspectedSchedule
from scheduler_app.store.paging import FIRST
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

SCHEDULES_A_LOOK: Final = 1_000
BREAKERS_A_LOOK: Final = 100
#: What has finished waits for so long for the hours of the notifications that tell of it.
FINISHED_KEPT: Final = timedelta(days=1)
#: Of a tenant, and of all together twice as many: each leaves room for the others. Further ones that finish
#: meanwhile are not told.
MAX_FINISHED: Final = 1_000


class _Look(Protocol):
    def __call__(
        self, last: tuple[str, str], *, limit: int
    ) -> tuple[list[InspectedSchedule], tuple[str, str]]: ...


class StopInspection:
    """Of one beat; any number of them may look at once. `limiter` knows breakers; None: there are none."""

    def __init__(self, store: Store, limiter: Limiter | None) -> None:
        self._store = store
        self._limiter = limiter
        self._after = FIRST
        self._schedules_after: dict[CauseKind, tuple[str, str]] = {}

    def inspect(self, living: Mapping[CauseKind, Sequence[Cause]], now: datetime) -> None:
        """Looks once. `living` are the causes of each kind. Raises a STORE_FAULT."""
        inspections = self._store.cause_inspections
        seen = [_of_switch(each, now) for each in self._switches()]
        keys = {tally.key.id for tally in seen}
        over = [each for each in living[CauseKind.KILL_SWITCH] if each.key.id not in keys]
        over += [each for each in living[CauseKind.FINISHED] if now - each.since >= FINISHED_KEPT]
        for found_more, gone in (
            self._schedules(CauseKind.PAUSED_BY_FAILURES, inspections.paused_by_failures, living, now),
            self._schedules(CauseKind.SET_ASIDE, inspections.in_error, living, now),
            self._breakers(living[CauseKind.BREAKER], now),
        ):
            seen += found_more
            over += gone
        self._store.causes.touch(seen, observed=True)
        for cause in self._store.causes.write([each.over(now) for each in over]):
            log.info("cause.over", message="A cause is over", cause_id=cause.id, kind=cause.key.kind.value)

    def _schedules(
        self, kind: CauseKind, look: _Look, living: Mapping[CauseKind, Sequence[Cause]], now: datetime
    ) -> tuple[list[Tally], list[Cause]]:
        """What the next schedules say, and the causes of this part of them that are over."""
        begin = self._schedules_after.get(kind, FIRST)
        page, end = look(begin, limit=SCHEDULES_A_LOOK)
        self._schedules_after[kind] = end
        ids = {each.schedule_id for each in page}
        gone = [
            cause
            for cause in living[kind]
            if cause.key.subject not in ids
            and begin < (place := (cause.tenant, cause.key.subject))
            and (end == FIRST or place <= end)
        ]
        return [_of_schedule(kind, each, now) for each in page], gone

    def _switches(self) -> list[KillSwitch]:
        switches = self._store.kill_switches
        tenants = {each.tenant for each in switches.everybodys().targets}
        return [
            each if isinstance(each, KillSwitch) else KillSwitch(each.target, EARLIEST)
            for tenant in sorted(tenants)
            for each in switches.of(tenant)
        ]

    def _breakers(self, living: Sequence[Cause], now: datetime) -> tuple[list[Tally], list[Cause]]:
        """What of the next destinations is open, and the causes that are over."""
        if self._limiter is None:
            return [], list(living)
        page, last = self._store.destinations.with_breaker(self._after, limit=BREAKERS_A_LOOK)
        is_open: dict[str, bool] = {}
        try:
            for each in page:
                is_open[each.id] = self._limiter.look(each).breaker != "closed"
        except self._limiter.unavailable:
            return [], []  # what is not known is neither open nor closed
        self._after = last
        others = [own_id for each in living if (own_id := _destination(each)) not in is_open]
        left = self._store.destinations.for_delivery(others) if others else {}
        closed = [
            cause
            for cause in living
            if not is_open.get(_destination(cause), _has_breaker(left.get(_destination(cause))))
        ]
        return [_of_breaker(each, now) for each in page if is_open[each.id]], closed


def note_finishing(store: Store, now: datetime) -> None:
    """Opens causes of the schedules that are about to be finished and that a notification tells of. It costs
    one question where none does. Raises a STORE_FAULT."""
    rules = store.notification_rules.telling(Told.FINISHED)
    if not rules:
        return
    matches: dict[str, list[CauseMatch]] = {}
    for rule in rules:
        matches.setdefault(rule.tenant, []).append(rule.match)
    known = {cause.key.subject: cause.tenant for cause in store.causes.living(kinds=[CauseKind.FINISHED])}
    held = Counter(known.values())
    room = 2 * MAX_FINISHED - len(known)
    finished: list[Tally] = []
    for each in store.cause_inspections.ending(now, matches, limit=SCHEDULES_A_LOOK):
        tally = _of_schedule(CauseKind.FINISHED, each, now)
        tenant = tally.key.tenant
        told = any(match.covers(opened(tally)) for match in matches.get(tenant, ()))
        # Of all tenants together they are few of the causes that may be open, and leave room for failures.
        if told and each.schedule_id not in known and held[tenant] < room:
            held[tenant] += 1
            room -= 1
            finished.append(tally)
    store.causes.touch(finished, observed=True)


_SAID: Final = {
    CauseKind.PAUSED_BY_FAILURES: "was paused by its failures",
    CauseKind.SET_ASIDE: "makes no events any more",
    CauseKind.FINISHED: "has no occurrence any more",
}


def _of_schedule(kind: CauseKind, each: InspectedSchedule, now: datetime) -> Tally:
    key = CauseKey(tenant_of(each.schedule_id), kind, each.schedule_id)
    said = f"{_SAID[kind]}: {each.said}" if each.said else _SAID[kind]
    since = now if kind is CauseKind.FINISHED else each.at
    return _tally(key, since, now, said, tags=each.tags, schedules=[each.schedule_id])


def _of_switch(switch: KillSwitch, now: datetime) -> Tally:
    target = switch.target
    subject: str = target.key
    if target.scope is Scope.DESTINATION:
        subject = destination_key(whole_id(target.tenant, target.name))
    said = f"the kill switch of {target} is on" + (f": {switch.note}" if switch.note else "")
    tags = [target.name] if target.scope is Scope.TAG else []
    since = now if switch.since == EARLIEST else switch.since
    return _tally(CauseKey(target.tenant, CauseKind.KILL_SWITCH, subject), since, now, said, tags=tags)


def _of_breaker(destination: Destination, now: datetime) -> Tally:
    key = CauseKey(tenant_of(destination.id), CauseKind.BREAKER, destination_key(destination.id))
    return _tally(key, now, now, "its breaker is open: nothing is sent but probes")


def _tally(
    key: CauseKey,
    since: datetime,
    now: datetime,
    said: str,
    *,
    tags: Iterable[str] = (),
    schedules: Iterable[str] = (),
) -> Tally:
    made = found(key, since, now, said)
    return replace(made, tags=dict.fromkeys(tags), schedules=dict.fromkeys(schedules, now))


def _destination(cause: Cause) -> WholeId:
    return WholeId(destination_of_key(cause.key.subject) or "")


def _has_breaker(destination: object) -> bool:
    return isinstance(destination, Destination) and destination.breaker is not None
