"""The calendar of runs by days and hours of a zone: numbers, names of what runs rarely, blackouts and closed
days."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from scheduler_app.domain.recurrence.zones import local_in
from scheduler_app.domain.run_calendar import NamedRun, RareSchedule, RunCalendar, RunOutcome
from scheduler_app.domain.schedule import TICK

HOUR = timedelta(hours=1)
#: How many shades tell busy hours from quiet ones.
SHADES = 4
#: A share of failures above which an hour is shown as bad as a whole.
BAD_SHARE = 0.05
#: How each outcome looks (a class of the stylesheet), and its words.
LOOKS = {
    RunOutcome.DONE: ("ok", "done"),
    RunOutcome.FAILED: ("failed", "failed"),
    RunOutcome.DID_NOT_RUN: ("skipped", "did not run"),
    RunOutcome.HELD: ("held", "held"),
    RunOutcome.WAITING: ("running", "waiting"),
    RunOutcome.TO_COME: ("next", "to come"),
}
#: What is over.
_OVER = (RunOutcome.DONE, RunOutcome.FAILED, RunOutcome.DID_NOT_RUN)


@dataclass(slots=True)
class CalendarCell:
    """An hour, or a day."""

    counts: Counter[RunOutcome] = field(default_factory=Counter)
    named: list[tuple[datetime, RareSchedule, NamedRun]] = field(default_factory=list)
    """Runs of schedules that run rarely, with their local times."""
    blackouts: list[str] = field(default_factory=list)
    """Those that begin within it, and in its whole columns those that go on."""
    is_closed_by_blackout: bool = False

    @property
    def unnamed(self) -> Counter[RunOutcome]:
        """The runs that no name tells of."""
        return self.counts - Counter(run.outcome for _, _, run in self.named)

    @property
    def planned(self) -> int:
        return self.counts[RunOutcome.TO_COME]

    @property
    def done(self) -> int:
        """How many ran, well or not."""
        return self.counts[RunOutcome.DONE] + self.counts[RunOutcome.FAILED]

    @property
    def words(self) -> str:
        """`12 failed, 295 done`."""
        return ", ".join(f"{self.counts[each]:,} {LOOKS[each][1]}" for each in LOOKS if self.counts[each])

    def look(self, most: int) -> str:
        """The classes of its number, where the busiest hour has `most`."""
        unnamed = self.unnamed
        total, failed = unnamed.total(), unnamed[RunOutcome.FAILED]
        shade = f"q q{max(1, -(-total * SHADES // max(most, 1)))}"
        if failed and failed > BAD_SHARE * (unnamed[RunOutcome.DONE] + failed):
            return "q qbad"
        if failed:
            return f"{shade} qdot"
        return shade if any(unnamed[each] for each in _OVER) else f"{shade} fut"


@dataclass(frozen=True, slots=True)
class Grid:
    """A calendar by hour and by day, in one zone."""

    hours: dict[tuple[date, int], CalendarCell]
    days: dict[date, CalendarCell]
    closed: dict[date, list[str]]
    """Why a day is closed, and in which calendar; weekends are no news."""
    busiest: int
    """The most runs of an hour that no name tells of."""

    @property
    def total(self) -> Counter[RunOutcome]:
        return sum((cell.counts for cell in self.days.values()), Counter[RunOutcome]())


def grid_of(found: RunCalendar, zone: str) -> Grid:
    hours: defaultdict[tuple[date, int], CalendarCell] = defaultdict(CalendarCell)
    for part in found.parts:
        if part.counts:
            hours[_place(part.start, zone)].counts += part.counts
    for rare in found.rare:
        for run in rare.runs:
            hours[_place(run.at, zone)].named.append((local_in(run.at, zone), rare, run))
    for window in found.blackouts:
        begun = False
        for place in _places(window.start, window.end, found, zone):
            hours[place].is_closed_by_blackout = True
            if not begun:
                hours[place].blackouts.append(window.blackout.name)
                begun = True
    days: defaultdict[date, CalendarCell] = defaultdict(CalendarCell)
    for (day, _), cell in sorted(hours.items()):
        of = days[day]
        of.counts += cell.counts
        cell.named.sort(key=lambda each: (each[0], each[1].name))
        of.named += cell.named
        of.blackouts += cell.blackouts
        of.is_closed_by_blackout |= cell.is_closed_by_blackout
    closed: defaultdict[date, list[str]] = defaultdict(list)
    for each in found.closed_days:
        if not each.is_weekend:
            closed[each.date].append(f"{each.name} ({each.calendar})")
    busiest = max((cell.unnamed.total() for cell in hours.values()), default=0)
    return Grid(dict(hours), dict(days), dict(closed), busiest)


def _place(at: datetime, zone: str) -> tuple[date, int]:
    local = local_in(at, zone)
    return local.date(), local.hour


def _places(start: datetime, end: datetime, found: RunCalendar, zone: str) -> Iterator[tuple[date, int]]:
    """The hours of the calendar that a window touches."""
    at, until = max(start, found.parts[0].start), min(end, found.parts[-1].end)
    while at < until:
        yield _place(at, zone)
        # The last step is a shorter one: a window that does not end at a full hour may touch one hour more.
        at = until - TICK if at < until - TICK < at + HOUR else at + HOUR
