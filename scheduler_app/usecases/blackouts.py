"""Blackouts: people set them, beats put off or skip what falls due within them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from scheduler_app.clock import clock
from scheduler_app.domain.blackout import MAX_BLACKOUTS, Blackout, Blackouts, Cover
from scheduler_app.domain.destination import destination_of
from scheduler_app.domain.errors import Conflict, NotFound
from scheduler_app.domain.event_ids import schedule_of
from scheduler_app.domain.http_action import destination_of_key
from scheduler_app.domain.kill_switch import Scope, Target
from scheduler_app.domain.names import check_new
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import Store
from scheduler_app.store.blackouts import CorruptBlackout
from scheduler_app.store.events.outbox import Due
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.usecases.polled import Polled

log = get_logger(__name__)

#: How old what a process knows of them may be.
LOOK_SECONDS: Final = 1.0
Put = Literal["created", "changed", "unchanged"]


@dataclass(frozen=True)
class BlackoutService:
    """What people do with blackouts."""

    store: Store

    def put(self, blackout: Blackout, now: datetime) -> tuple[Blackout, Put]:
        """Sets it under its name; returns it as it is stored, and what that did. One that says the same stays
        as it is. Raises Conflict where there are too many, and InvalidField where it would never end together
        with others of the same target."""
        tenant = blackout.target.tenant
        known = self.store.blackouts.of(now, tenant=tenant)
        there = next((each for each in known if each.name == blackout.name), None)
        if isinstance(there, Blackout) and there.says_the_same(blackout):
            return there, "unchanged"
        beside = [each for each in known if isinstance(each, Blackout) and each.name != blackout.name]
        targets = (blackout.target, Target(tenant, Scope.ALL))
        blackout.check_end(now, [each for each in beside if each.target in targets])
        if there is None and len(known) >= MAX_BLACKOUTS:
            raise Conflict(f"there are {MAX_BLACKOUTS} blackouts: delete some that are over")
        if there is None:
            check_new(blackout.name)
        created = self.store.blackouts.put(blackout)
        log.info("blackout.set", message="A blackout was set", blackout=blackout.name)
        return blackout, "created" if created else "changed"

    def get(self, name: str, now: datetime, *, tenant: str) -> Blackout | CorruptBlackout:
        """Raises NotFound."""
        for each in self.store.blackouts.of(now, tenant=tenant):
            if each.name == name:
                return each
        raise NotFound(f"there is no blackout {name}")

    def delete(self, name: str, *, tenant: str) -> None:
        """Events that it has put off keep the time to which they were put off. Raises NotFound."""
        if not self.store.blackouts.delete(name, tenant=tenant):
            raise NotFound(f"there is no blackout {name}")
        log.info("blackout.deleted", message="A blackout was deleted", blackout=name)


class BlackoutView(Polled[Blackouts]):
    """The blackouts as one process knows them."""

    def __init__(self, store: Store) -> None:
        super().__init__(
            lambda: store.blackouts.everybodys(clock.now()),
            Blackouts(),
            name="blackout",
            seconds=LOOK_SECONDS,
        )


class BlackoutGate:
    """Puts off or skips waiting events that fall due within a blackout, before a message is sent for them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._view = BlackoutView(store)

    def passed(self, events: Sequence[Due], until: datetime, now: datetime) -> Sequence[Due]:
        """The events, due up to `until`, that no blackout covers when they are due. It costs nothing
        where there are none, and no question while none lasts. Raises a STORE_FAULT.

        A late occurrence that fell due within a blackout that skips is skipped, though that is over, unless
        the blackout was given only after that."""
        blackouts = self._view.current()
        if not blackouts or not any(_may_cover(blackouts, event, now) for event in events):
            return events
        schedules = {schedule_of(event.id) for event in events} - {""}
        facts = self._store.kill_switches.judged_by(list(schedules)) if schedules else {}
        covered: dict[Cover, list[str]] = {}
        missed: dict[Cover, list[str]] = {}
        passed: list[Due] = []
        for event in events:
            own = schedule_of(event.id)
            tags, destination = facts.get(own) or ((), destination_of_key(event.origin))
            cover = blackouts.covering(max(event.due_at, now), event.id, own, tags, destination)
            if cover is not None:
                covered.setdefault(cover, []).append(event.id)
            else:
                passed.append(event)
            due = _was_due(event)
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


def _was_due(event: Due) -> datetime:
    """Before it was put off."""
    return event.postponed_from or event.due_at


def _may_cover(blackouts: Blackouts, event: Due, now: datetime) -> bool:
    """Whether one lasts when the event is due, or one that skips did when it was."""
    if blackouts.active(max(event.due_at, now)):
        return True
    due = _was_due(event)
    return due < now and bool(blackouts.skipping.active(due))


def cover_of(known: Blackouts, schedule: Schedule, at: datetime) -> Cover | None:
    """Which of `known` covers an event of the schedule that falls due at `at`."""
    return known.covering(at, schedule.id, schedule.id, schedule.tags, destination_of(schedule.action))
