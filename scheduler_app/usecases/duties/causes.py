"""Tend the causes of failing receivers: find what a worker could not tell of, and see when one is over.

Any number of beats may do it at once: each write of a cause names the one before it.
"""

from collections.abc import Collection, Iterable
from datetime import datetime

from scheduler_app.domain.cause import Cause, Tally
from scheduler_app.store import Store
from scheduler_app.store.events.cause_marks import FailedEvent
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

UNMARKED_A_PAGE = 500
#: Marks without a cause that are looked into in one page, and events of each.
LOST_A_PAGE = 50
EVENTS_OF_A_MARK = 100
CAUSES_A_PAGE = 1_000


class CauseTending:
    """Of one beat; it remembers which marks had no cause at its last look: a worker may be about to tell."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._without_cause: frozenset[str] = frozenset()
        self._settled_to = ""

    def tend_page(self, now: datetime, *, known: bool = True) -> bool:
        """Does one look; True when there is more to do at once. `known`: whether there may be causes, for a
        caller that knows that there are none. Raises a STORE_FAULT."""
        marks = self._store.cause_marks
        unmarked = marks.unmarked(limit=UNMARKED_A_PAGE)
        self._take_up(unmarked)
        waiting, dead = marks.keys()
        self._find_lost(waiting, dead)
        if not (known or unmarked or waiting or dead):
            return False
        # A page in each look, and the next one in the next: a thousand that go on failing keep back none.
        living = self._store.causes.failing_after(self._settled_to, limit=CAUSES_A_PAGE)
        self._settled_to = living[-1].key.id if len(living) == CAUSES_A_PAGE else ""
        self._settle(living, waiting, dead, now)
        self._forget_dead_letters(dead)
        return len(unmarked) == UNMARKED_A_PAGE

    def _take_up(self, events: Collection[FailedEvent]) -> None:
        """Marks events, and counts them for their causes."""
        if events:
            self._store.cause_marks.mark(events)
            self._store.causes.touch(_tallies(events))

    def _find_lost(self, waiting: frozenset[str], dead: frozenset[str]) -> None:
        """Opens the causes that marks speak of and nobody has opened: their workers died before they could.
        A worker tells of a failure within a second or two; so it is one that was missing before."""
        newest = self._store.causes.newest(waiting | dead)
        missing = frozenset(
            key
            for key in waiting | dead
            if (cause := newest.get(key)) is None or (key in waiting and not cause.is_living)
        )
        for key in sorted(missing & self._without_cause)[:LOST_A_PAGE]:
            last = newest.get(key)
            # What failed before the end of the last cause belongs to that one.
            fresh = [
                each
                for each in self._store.cause_marks.marked(key, limit=EVENTS_OF_A_MARK)
                if last is None or last.over_at is None or each.at > last.over_at
            ]
            self._take_up(fresh)
        self._without_cause = missing

    def _settle(
        self, living: list[Cause], waiting: Collection[str], dead: Collection[str], now: datetime
    ) -> None:
        """Takes out the schedules that have succeeded or are gone, and ends what is over."""
        schedules = {each.schedule_id for cause in living for each in cause.failing}
        succeeded = self._store.last_runs.succeeded(schedules)
        changed = []
        for cause in living:
            after = cause.recovered(succeeded)
            if after.ends(now, waits=cause.key.id in waiting, is_dead=cause.key.id in dead):
                after = after.over(now)
            if after is not cause:
                changed.append(after)
        for cause in self._store.causes.write(changed):
            if cause.over_at is not None:
                log.info("cause.over", message="A receiver fails no longer", cause_id=cause.id)

    def _forget_dead_letters(self, dead: Collection[str]) -> None:
        """Nothing is left to send again of causes whose dead letters were sent, dismissed or removed; and
        where a worker could not tell of some, there is."""
        gone = [
            cause.without_dead_letters()
            for cause in self._store.causes.without_dead_letters(dead, limit=CAUSES_A_PAGE)
        ]
        newest = self._store.causes.newest(dead)
        told = [cause.with_dead_letters() for cause in newest.values() if not cause.has_dead_letters]
        self._store.causes.write([*gone, *told])


def _tallies(events: Iterable[FailedEvent]) -> list[Tally]:
    tallies: dict[str, Tally] = {}
    for each in events:
        tally = tallies.setdefault(each.key.id, Tally(each.key, each.at, each.at))
        tally.add(
            *(each.event_id, each.schedule_id, each.at, each.error),
            is_first=True,
            gave_up=each.is_dead,
            is_dead=each.is_dead,
        )
    return list(tallies.values())
