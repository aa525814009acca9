"""Kill switches: people turn them on and off, every process obeys, beats release what they held."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from typing import Final

from scheduler_app.domain.destination import Destination
from scheduler_app.domain.errors import Conflict, NotFound
from scheduler_app.domain.event_ids import schedule_of
from scheduler_app.domain.http_action import destination_of_key
from scheduler_app.domain.kill_switch import KillSwitch, KillSwitches, Scope, Target, held_line
from scheduler_app.store import Store
from scheduler_app.store.events.outbox import Due
from scheduler_app.store.kill_switches import MAX_SWITCHES, MOST_TAGS, CorruptSwitch, Counted
from scheduler_app.store.paging import Window
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.usecases.polled import Polled

log = get_logger(__name__)

#: How old what a process knows may be before it looks again. A switch is effective within a second: one look
#: that just missed it, and the next one with its answer, are well within that. Each look of a worker is some
#: 0.7 ms of CPU, also while nothing happens.
LOOK_SECONDS: Final = 0.4
#: The same for who only shows them.
NOTICE_SECONDS: Final = 2.0
EVENTS_A_PAGE: Final = 1_000
MOST_HELD: Final = 10_000


@dataclass(frozen=True, slots=True)
class Stopped:
    """A kill switch, and what it stops."""

    switch: KillSwitch
    was_on: bool
    schedules: Counted
    """Active ones."""
    events: Counted
    """Those that wait."""
    warning: str | None = None
    """Why it stops nothing now, and what may have been meant."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A kill switch that is on, and how many events it holds so far, `MOST_HELD` at most."""

    switch: KillSwitch | CorruptSwitch
    held: int


@dataclass(frozen=True)
class KillSwitchService:
    """What people do with kill switches."""

    store: Store

    def turn_on(
        self, target: Target, now: datetime, *, note: str | None = None, by: str | None = None
    ) -> Stopped:
        """Turns it on, or sets the note of one that is on; `by` is the name of whose key does it. Raises
        Conflict where too many are on."""
        switch = KillSwitch(target, now, note, by)
        documents = self.store.kill_switches
        known = documents.of(tenant=target.tenant)
        there = next((each for each in known if each.target == target), None)
        if there is None and len(known) >= MAX_SWITCHES and target.scope is not Scope.ALL:
            raise Conflict(f"{MAX_SWITCHES} kill switches are on: turn some off, or stop everything")
        was_on = not documents.insert(switch)
        if was_on and note is not None:
            documents.note(target, note)
        if isinstance(there, KillSwitch):
            switch = replace(there, note=note or there.note)
        if not was_on:
            log.warning("kill_switch.on", message="A kill switch was turned on", stops=str(target))
        return self._stopped(switch, was_on)

    def stopped(self, target: Target) -> Stopped | None:
        """What one that is on stops now; None if it is off, or its document is corrupt."""
        known = self.store.kill_switches.of(tenant=target.tenant)
        switch = next((each for each in known if each.target == target), None)
        return self._stopped(switch, True) if isinstance(switch, KillSwitch) else None

    def _stopped(self, switch: KillSwitch, was_on: bool) -> Stopped:
        schedules = self.store.kill_switches.stopped_schedules(switch.target)
        events = self.store.kill_switches.stopped_events(switch.target)
        nothing = not (schedules.count or schedules.at_least or events.count or events.at_least)
        warning = self._about_nothing(switch.target) if nothing else None
        return Stopped(switch, was_on, schedules, events, warning)

    def _about_nothing(self, target: Target) -> str:
        if target.scope is Scope.ALL:
            return "no schedule is active, and no event waits"
        if target.scope is Scope.TAG:
            said = f"no active schedule has the tag {target.name}, and no event of one waits"
            names = self.store.kill_switches.tags(tenant=target.tenant)
        else:
            said = f"no active schedule names the destination {target.name}, and no event waits for it"
            window = Window(limit=MOST_TAGS)
            rows = self.store.destinations.page(window, tenant=target.tenant).rows
            names = [each.name for each in rows if isinstance(each, Destination)]
        by_name = {name.casefold(): name for name in names if name != target.name}
        near = get_close_matches(target.name.casefold(), by_name, n=1)
        return said + (f"; there is {by_name[near[0]]}" if near else "")

    def turn_off(self, target: Target) -> int:
        """Turns it off; beats release what it held. Returns how many events that is, `MOST_HELD` at most.
        Raises NotFound."""
        held = self.store.holding.count(target.key, most=MOST_HELD)
        if not self.store.kill_switches.delete(target):
            raise NotFound(f"the kill switch of {target} is not on")
        log.warning("kill_switch.off", message="A kill switch was turned off", stopped=str(target))
        return held

    def that_are_on(self, *, tenant: str) -> list[Shown]:
        """The tenant's, by name."""
        found = self.store.kill_switches.of(tenant=tenant)
        return [Shown(each, self.store.holding.count(each.target.key, most=MOST_HELD)) for each in found]


class KillSwitchView(Polled[KillSwitches]):
    """The kill switches as one process knows them: one that is on stays on while MongoDB does not answer.
    What a process that is cut off from MongoDB has claimed ends with its leases."""

    def __init__(self, store: Store, *, seconds: float = LOOK_SECONDS) -> None:
        super().__init__(store.kill_switches.everybodys, KillSwitches(), name="kill_switch", seconds=seconds)


class KillSwitchNotice:
    """The kill switches that are on, for pages that always show them: it costs nothing while none is on."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._view = KillSwitchView(store, seconds=NOTICE_SECONDS)

    def of(self, *, tenant: str) -> list[KillSwitch | CorruptSwitch]:
        """The tenant's, by name, as this process knew them no longer than `NOTICE_SECONDS` ago. Raises a
        STORE_FAULT."""
        on = any(target.tenant == tenant for target in self._view.current().targets)
        return self._store.kill_switches.of(tenant=tenant) if on else []

    def look(self) -> None:
        """Looks at once, after a change that this process has made."""
        self._view.look()


class KillSwitchGate:
    """Holds waiting events that a kill switch stops, before a message is sent for them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._view = KillSwitchView(store)

    def passed(self, events: Sequence[Due], until: datetime, now: datetime) -> Sequence[Due]:
        """The events, due up to `until`, that no kill switch stops. It costs nothing while none is on.
        Raises a STORE_FAULT."""
        switches = self._view.current()
        if not switches or not events:
            return events
        schedules = {schedule_of(event.id) for event in events} - {""}
        facts = self._store.kill_switches.judged_by(list(schedules)) if schedules else {}
        held: dict[Target, list[str]] = {}
        passed: list[Due] = []
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
        on = {target.key for target in self._store.kill_switches.everybodys().targets}
        left = EVENTS_A_PAGE
        for key in keys:
            if key not in on:
                left -= self._store.holding.release(key, now, limit=left)
            if left <= 0:
                return True
        return False
