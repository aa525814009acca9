"""Kill switches and blackouts: people set them, and every process obeys them.

Each process polls them, because they may change at any moment and are read all the time. Beats hold, put
off or skip the events that they stop, and release what kill switches have held.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from typing import Final, Generic, Literal, TypeVar

from scheduler_app.clock import clock, monotonic
from scheduler_app.domain.blackout import MAX_BLACKOUTS, Blackout, Blackouts, Cover
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.errors import Conflict, NotFound
from scheduler_app.domain.http_action import destination_of_key
from scheduler_app.domain.ids import WholeId, check_new_name, name_of, schedule_of, tenant_of
from scheduler_app.domain.kill_switch import KillSwitch, KillSwitches, Scope, Target, held_line
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import STORE_FAULTS, Store, within
from scheduler_app.store.events.outbox import DueEvent
from scheduler_app.store.paging import PageRequest
from scheduler_app.store.stops import (
    MAX_SWITCHES,
    MOST_TAGS,
    BoundedCount,
    CorruptBlackout,
    CorruptKillSwitch,
)
from scheduler_app.telemetry import get_logger, metrics

log = get_logger(__name__)

T = TypeVar("T")

#: A look that takes longer is given up, and the last known state holds.
ANSWER_SECONDS: Final = 0.5


class Polled(Generic[T]):
    """The state as one process knows it. Threads may share it. While MongoDB does not answer, the last known
    state holds."""

    def __init__(self, read: Callable[[], T], first: T, *, name: str, seconds: float) -> None:
        """`first` is known before the first look; `name` begins the names of log events; what is known is
        looked at again when it is `seconds` old."""
        self._read = read
        self._known = first
        self._name = name
        self.seconds = seconds
        self._lock = threading.Lock()
        self.looked_at = float("-inf")
        """When the last look began, in monotonic seconds."""
        self.is_away = False
        """Whether MongoDB did not answer it."""
        self.has_answer = False
        """Whether MongoDB has answered any look: before that, nothing is known."""

    @property
    def known(self) -> T:
        """The state at the last look, for callers that must not wait."""
        return self._known

    @property
    def is_old(self) -> bool:
        return monotonic() - self.looked_at >= self.seconds

    def current(self) -> T:
        """No older than `seconds`, where MongoDB answers."""
        if self.is_old:
            with self._lock:
                if self.is_old:
                    self.look()
        return self._known

    def look(self) -> None:
        """Reads it; it raises no STORE_FAULT."""
        began = monotonic()
        try:
            with within(ANSWER_SECONDS):
                found = self._read()
        except STORE_FAULTS as error:
            if not self.is_away:
                log.warning(
                    f"{self._name}.unknown",
                    message="This cannot be read from MongoDB; as it was last known, it holds",
                    error=str(error)[:300],
                )
            self.is_away = True
        else:
            self.is_away, self.has_answer = False, True
            if found != self._known:
                log.warning(
                    f"{self._name}.changed", message="Other ones hold than before", now=str(found)[:500]
                )
            self._known = found
        self.looked_at = began


#: How old what a process knows may be before it looks again. A switch is effective within a second: one look
#: that just missed it, and the next one with its answer, are well within that. Each look of a worker is some
#: 0.7 ms of CPU, also while nothing happens.
KILL_SWITCH_LOOK_SECONDS: Final = 0.4
#: The same for who only shows them.
NOTICE_SECONDS: Final = 2.0
EVENTS_A_PAGE: Final = 1_000
MOST_HELD: Final = 10_000


@dataclass(frozen=True, slots=True)
class KillSwitchEffect:
    """A kill switch, and what it stops."""

    switch: KillSwitch
    was_on: bool
    schedules: BoundedCount
    """Active ones."""
    events: BoundedCount
    """Those that wait."""
    warning: str | None = None
    """Why it stops nothing now, and what may have been meant."""


@dataclass(frozen=True, slots=True)
class HoldingKillSwitch:
    """A kill switch that is on, and how many events it holds so far, `MOST_HELD` at most."""

    switch: KillSwitch | CorruptKillSwitch
    held: int


@dataclass(frozen=True)
class KillSwitchService:
    """What people do with kill switches."""

    store: Store

    def turn_on(
        self, target: Target, now: datetime, *, note: str | None = None, by: str | None = None
    ) -> KillSwitchEffect:
        """Turns it on, or sets the note of one that is on; `by` is the name of whose key does it. Raises
        Conflict where too many are on."""
        switch = KillSwitch(target, now, note, by)
        documents = self.store.kill_switches
        known = documents.of(target.tenant)
        existing = next((each for each in known if each.target == target), None)
        if existing is None and len(known) >= MAX_SWITCHES and target.scope is not Scope.ALL:
            raise Conflict(f"{MAX_SWITCHES} kill switches are on: turn some off, or stop everything")
        was_on = not documents.insert(switch)
        if was_on and note is not None:
            documents.note(target, note)
        if isinstance(existing, KillSwitch):
            switch = replace(existing, note=note or existing.note)
        if not was_on:
            log.warning("kill_switch.on", message="A kill switch was turned on", stops=str(target))
        return self._stopped(switch, was_on)

    def stopped(self, target: Target) -> KillSwitchEffect | None:
        """What one that is on stops now; None if it is off, or its document is corrupt."""
        known = self.store.kill_switches.of(target.tenant)
        switch = next((each for each in known if each.target == target), None)
        return self._stopped(switch, True) if isinstance(switch, KillSwitch) else None

    def _stopped(self, switch: KillSwitch, was_on: bool) -> KillSwitchEffect:
        schedules = self.store.kill_switches.stopped_schedules(switch.target)
        events = self.store.kill_switches.stopped_events(switch.target)
        nothing = not (schedules.count or schedules.at_least or events.count or events.at_least)
        warning = self._about_nothing(switch.target) if nothing else None
        return KillSwitchEffect(switch, was_on, schedules, events, warning)

    def _about_nothing(self, target: Target) -> str:
        if target.scope is Scope.ALL:
            return "no schedule is active, and no event waits"
        if target.scope is Scope.TAG:
            said = f"no active schedule has the tag {target.name}, and no event of one waits"
            names = self.store.tags.in_order(target.tenant, limit=MOST_TAGS)
        else:
            said = f"no active schedule names the destination {target.name}, and no event waits for it"
            window = PageRequest(limit=MOST_TAGS)
            rows = self.store.destinations.page(target.tenant, window).rows
            names = [each.name for each in rows if isinstance(each, Destination)]
        by_name = {name.casefold(): name for name in names if name != target.name}
        near = get_close_matches(target.name.casefold(), by_name, n=1)
        return said + (f"; there is {by_name[near[0]]}" if near else "")

    def turn_off(self, target: Target) -> int:
        """Turns it off; beats release what it held. Returns how many events that is, `MOST_HELD` at most.
        Raises NotFound."""
        held = self.store.holding.count(target.keys, most=MOST_HELD)
        if not self.store.kill_switches.delete(target):
            raise NotFound(f"the kill switch of {target} is not on")
        log.warning("kill_switch.off", message="A kill switch was turned off", stopped=str(target))
        return held

    def that_are_on(self, tenant: str) -> list[HoldingKillSwitch]:
        """The tenant's, by name."""
        found = self.store.kill_switches.of(tenant)
        return [
            HoldingKillSwitch(each, self.store.holding.count(each.target.keys, most=MOST_HELD))
            for each in found
        ]


class KillSwitchView(Polled[KillSwitches]):
    """The kill switches as one process knows them: one that is on stays on while MongoDB does not answer.
    What a process that is cut off from MongoDB has claimed ends with its leases."""

    def __init__(self, store: Store, *, seconds: float = KILL_SWITCH_LOOK_SECONDS) -> None:
        super().__init__(store.kill_switches.everybodys, KillSwitches(), name="kill_switch", seconds=seconds)


class KillSwitchNotice:
    """The kill switches that are on, for pages that always show them: it costs nothing while none is on."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._view = KillSwitchView(store, seconds=NOTICE_SECONDS)

    def of(self, tenant: str) -> list[KillSwitch | CorruptKillSwitch]:
        """The tenant's, by name, as this process knew them no longer than `NOTICE_SECONDS` ago. Raises a
        STORE_FAULT."""
        on = any(target.tenant == tenant for target in self._view.current().targets)
        return self._store.kill_switches.of(tenant) if on else []

    def look(self) -> None:
        """Looks at once, after a change that this process has made."""
        self._view.look()


class KillSwitchGate:
    """Holds waiting events that a kill switch stops, before a message is sent for them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._view = KillSwitchView(store)

    def passed(self, events: Sequence[DueEvent], until: datetime, now: datetime) -> Sequence[DueEvent]:
        """The events, due up to `until`, that no kill switch stops. It costs nothing while none is on, and
        asks nothing for no event. Raises a STORE_FAULT."""
        switches = self._view.current() if events else None
        if not switches:
            return events
        facts = self._store.kill_switches.judged_by({schedule_of(event.id) for event in events})
        held: dict[Target, list[str]] = {}
        passed: list[DueEvent] = []
        for event in events:
            tags, destination = facts.get(schedule_of(event.id)) or ((), destination_of_key(event.origin))
            target = switches.stopping(event.id, tags, destination)
            if target is None:
                passed.append(event)
            else:
                held.setdefault(target, []).append(event.id)
        for target, ids in held.items():
            written = self._store.holding.hold(ids, target.key, until, now, held_line(target))
            metrics.held.inc(written)
        return passed


class HeldEvents:
    """Releases the events that kill switches have held, when these are off; beats call it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def release_page(self, now: datetime) -> bool:
        """Releases events whose switch is off; whether there are more. Raises a STORE_FAULT."""
        keys = self._store.holding.keys()
        if not keys:
            return False
        on = self._store.kill_switches.everybodys().targets
        left = EVENTS_A_PAGE
        for key in keys:
            if Target.of(key) not in on:
                left -= self._store.holding.release(key, now, limit=left)
            if left <= 0:
                return True
        return False


#: How old what a process knows of them may be.
BLACKOUT_LOOK_SECONDS: Final = 1.0
PutResult = Literal["created", "changed", "unchanged"]


@dataclass(frozen=True)
class BlackoutService:
    """What people do with blackouts."""

    store: Store

    def put(self, blackout: Blackout, now: datetime) -> tuple[Blackout, PutResult]:
        """Sets it under its name; returns it as it is stored, and what that did. One that says the same stays
        as it is. Raises Conflict where there are too many, and InvalidField where it would never end together
        with others of the same target."""
        tenant = blackout.target.tenant
        known = self.of(tenant, now)
        existing = next((each for each in known if each.name == blackout.name), None)
        if isinstance(existing, Blackout) and existing.says_the_same(blackout):
            return existing, "unchanged"
        beside = [each for each in known if isinstance(each, Blackout) and each.name != blackout.name]
        targets = (blackout.target, Target(tenant, Scope.ALL))
        blackout.check_end(now, [each for each in beside if each.target in targets])
        if existing is None and len(known) >= MAX_BLACKOUTS:
            raise Conflict(f"there are {MAX_BLACKOUTS} blackouts: delete some that are over")
        if existing is None:
            check_new_name(blackout.name)
        created = self.store.blackouts.put(blackout)
        log.info("blackout.set", message="A blackout was set", blackout=blackout.name)
        return blackout, "created" if created else "changed"

    def of(self, tenant: str, now: datetime) -> list[Blackout | CorruptBlackout]:
        """The tenant's, by name."""
        return self.store.blackouts.of(tenant, now)

    def everybodys(self, now: datetime) -> Blackouts:
        """Those that may cover an event now or later."""
        return self.store.blackouts.everybodys(now)

    def get(self, blackout_id: WholeId, now: datetime) -> Blackout | CorruptBlackout:
        """Raises NotFound."""
        for each in self.of(tenant_of(blackout_id), now):
            if each.id == blackout_id:
                return each
        raise NotFound(f"there is no blackout {name_of(blackout_id)}")

    def delete(self, blackout_id: WholeId) -> None:
        """Events that it has put off keep the time to which they were put off. Raises NotFound."""
        if not self.store.blackouts.delete(blackout_id):
            raise NotFound(f"there is no blackout {name_of(blackout_id)}")
        log.info("blackout.deleted", message="A blackout was deleted", blackout=blackout_id)


class BlackoutView(Polled[Blackouts]):
    """The blackouts as one process knows them."""

    def __init__(self, store: Store) -> None:
        super().__init__(
            lambda: store.blackouts.everybodys(clock.now()),
            Blackouts(),
            name="blackout",
            seconds=BLACKOUT_LOOK_SECONDS,
        )


class BlackoutGate:
    """Puts off or skips waiting events that fall due within a blackout, before a message is sent for them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._view = BlackoutView(store)

    def passed(self, events: Sequence[DueEvent], until: datetime, now: datetime) -> Sequence[DueEvent]:
        """The events, due up to `until`, that no blackout covers when they are due. It costs nothing
        where there are none, and no question while none lasts. Raises a STORE_FAULT.

        A late occurrence that fell due within a blackout that skips is skipped, though that is over, unless
        the blackout was given only after that."""
        blackouts = self._view.current() if events else None
        if not blackouts or not any(_may_cover(blackouts, event, now) for event in events):
            return events
        facts = self._store.kill_switches.judged_by({schedule_of(event.id) for event in events})
        covered: dict[Cover, list[str]] = {}
        missed: dict[Cover, list[str]] = {}
        passed: list[DueEvent] = []
        for event in events:
            own = schedule_of(event.id)
            tags, destination = facts.get(own) or ((), destination_of_key(event.origin))
            cover = blackouts.covering(max(event.due_at, now), event.id, own, tags, destination)
            if cover is not None:
                covered.setdefault(cover, []).append(event.id)
            else:
                passed.append(event)
            due = _original_due_time(event)
            if due < now and blackouts.skipping:
                over = blackouts.skipping.covering(due, event.id, own, tags, destination)
                if over is not None and over.given_at <= due:
                    missed.setdefault(over, []).append(event.id)
        for over, ids in missed.items():
            self._skip(over, ids, until, now)
        for cover, ids in covered.items():
            if self._skip(cover, ids, until, now) < len(ids):
                written = self._store.blacked_out.postpone(ids, cover.ends, until, now, cover.postponed_line)
                metrics.blacked_out.labels("postpone").inc(written)
        return passed

    def _skip(self, cover: Cover, ids: Sequence[str], until: datetime, now: datetime) -> int:
        """Skips those that are occurrences within; returns how many."""
        if cover.skips_from is None:
            return 0
        skipped = self._store.blacked_out.skip(ids, cover.skips_from, until, now, cover.skipped_line)
        metrics.blacked_out.labels("skip").inc(skipped)
        return skipped


def _original_due_time(event: DueEvent) -> datetime:
    """Before it was put off."""
    return event.postponed_from or event.due_at


def _may_cover(blackouts: Blackouts, event: DueEvent, now: datetime) -> bool:
    """Whether one lasts when the event is due, or one that skips did when it was."""
    if blackouts.active(max(event.due_at, now)):
        return True
    due = _original_due_time(event)
    return due < now and bool(blackouts.skipping.active(due))


def blackout_cover(known: Blackouts, schedule: Schedule, at: datetime) -> Cover | None:
    """Which of `known` covers an event of the schedule that falls due at `at`."""
    return known.covering(at, schedule.id, schedule.id, schedule.tags, schedule.action.destination)
