"""What blackouts make of callbacks to come. Windows are computed once, and looked up for each callback."""

from bisect import bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from scheduler_app.domain.blackout import Blackouts, begin_of
from scheduler_app.domain.kill_switch import Target

#: Windows of one blackout that are looked at; those beyond are left out.
MAX_WINDOWS = 10_000


class Spans:
    """Stretches of time that do not touch, in their order."""

    def __init__(self, windows: Iterable[tuple[datetime, datetime]] = ()) -> None:
        self._begins: list[datetime] = []
        self._ends: list[datetime] = []
        for begins, ends in sorted(windows):
            if self._ends and begins <= self._ends[-1]:
                self._ends[-1] = max(ends, self._ends[-1])
            else:
                self._begins.append(begins)
                self._ends.append(ends)

    def around(self, at: datetime) -> tuple[datetime, datetime] | None:
        """The stretch that covers `at`."""
        place = bisect_right(self._begins, at) - 1
        covered = place >= 0 and at < self._ends[place]
        return (self._begins[place], self._ends[place]) if covered else None


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the blackouts of one callback say of the time that is looked at."""

    closed: Spans
    skipping: Spans
    """Those of the windows whose occurrences are skipped."""

    def sent_at(self, run_time: datetime | None, due: datetime) -> datetime | None:
        """When a callback that falls due then is sent; None for an occurrence that is skipped. `run_time` is
        None for what is never skipped: a retry, a call by hand, a message."""
        within = self.closed.around(due)
        if within is None:
            return due
        skips = None if run_time is None else self.skipping.around(due)
        return None if skips is not None and run_time is not None and run_time >= skips[0] else within[1]


@dataclass
class Outlooks:
    """Those of all callbacks from `since` to `until`."""

    blackouts: Blackouts
    since: datetime
    until: datetime
    left_out: set[str] = field(default_factory=set)
    """Names of blackouts with more than `MAX_WINDOWS` windows: those beyond are not looked at."""
    _windows: dict[int, list[tuple[datetime, datetime]]] = field(default_factory=dict)
    _known: dict[tuple[int, ...], Outlook] = field(default_factory=dict)

    def __post_init__(self) -> None:
        #: What fell due from then on may be sent at `since` or later.
        self.begins = begin_of(self.blackouts.all, self.since)

    def __bool__(self) -> bool:
        return bool(self.blackouts)

    def of(
        self, tenant: str, schedule_id: str, tags: Collection[str], destination: str | None
    ) -> Outlook | None:
        """None if no blackout is of it. `schedule_id` (empty for a message) and `destination` are own
        ids."""
        targets = Target.asked(tenant, schedule_id, tags, destination)
        own = tuple(place for place, each in enumerate(self.blackouts.all) if each.target in targets)
        if not own:
            return None
        if own not in self._known:
            skipping = [place for place in own if self.blackouts.all[place].policy == "skip"]
            self._known[own] = Outlook(
                Spans(window for place in own for window in self._of(place)),
                Spans(window for place in skipping for window in self._of(place)),
            )
        return self._known[own]

    def _of(self, place: int) -> list[tuple[datetime, datetime]]:
        if place not in self._windows:
            blackout = self.blackouts.all[place]
            found = blackout.windows(self.begins, self.until, limit=MAX_WINDOWS + 1)
            if len(found) > MAX_WINDOWS:
                self.left_out.add(blackout.name)
            self._windows[place] = found[:MAX_WINDOWS]
        return self._windows[place]
