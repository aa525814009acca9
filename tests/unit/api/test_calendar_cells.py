"""The calendar's hours, and what a blackout covers of them."""

from datetime import UTC, datetime

import pytest

from scheduler_app.api.pages.calendar_cells import HOUR, CalendarCell, grid_of
from scheduler_app.domain.run_calendar import BlackoutWindow, CalendarPart, RunCalendar, RunOutcome
from tests.unit.domain.test_blackout import NIGHT, blackout

MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)


def calendar_of(hours: int, *windows: BlackoutWindow) -> RunCalendar:
    """Of hours with more and more runs that are done."""
    parts = [
        CalendarPart(MIDNIGHT + number * HOUR, MIDNIGHT + (number + 1) * HOUR) for number in range(hours)
    ]
    for number, part in enumerate(parts):
        part.counts[RunOutcome.DONE] = number + 1
    return RunCalendar(parts, (), 0, windows, (), (), MIDNIGHT)


@pytest.mark.parametrize(
    ("begin", "end", "closed"),
    [
        ("01:50", "02:10", [1, 2]),
        ("01:00", "02:00", [1]),
        ("01:30", "03:30", [1, 2, 3]),
        ("01:10", "01:20", [1]),
    ],
)
def test_a_blackout_covers_each_hour_that_it_touches(begin: str, end: str, closed: list[int]) -> None:
    start, until = (datetime.fromisoformat(f"2026-03-02T{each}:00+00:00") for each in (begin, end))
    grid = grid_of(calendar_of(24, BlackoutWindow(blackout(1, cron=NIGHT), start, until)), "UTC")
    assert [hour for (_, hour), cell in sorted(grid.hours.items()) if cell.is_closed_by_blackout] == closed
    assert [hour for (_, hour), cell in grid.hours.items() if cell.blackouts] == closed[:1]


def test_the_busiest_hour_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads, unnamed = 0, vars(CalendarCell)["unnamed"].fget

    def counted(cell: CalendarCell) -> object:
        nonlocal reads
        reads += 1
        return unnamed(cell)

    monkeypatch.setattr(CalendarCell, "unnamed", property(counted))
    grid = grid_of(calendar_of(168), "UTC")
    looks = [cell.look(grid.busiest) for _, cell in sorted(grid.hours.items())]
    assert (looks[0], looks[-1]) == ("q q1", "q q4")
    assert reads <= 2 * 168
