"""How the overview shows figures: the last hour by minute, and 24 hours beside the 24 before."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from scheduler_app.api.pages.formatting import Bar, stacked_bars
from scheduler_app.api.pages.times import clock_time
from scheduler_app.api.services import services, tenant
from scheduler_app.domain.figures import FigurePart
from scheduler_app.domain.lateness import LEAST_SECONDS
from scheduler_app.usecases.questions.figures import SHOWN_STATES, Figures

CHART = (240.0, 56.0)
#: A call that begins later after its time counts as late.
LATE_MS = round(LEAST_SECONDS * 1_000)


@dataclass(frozen=True, slots=True)
class HourCharts:
    """Of the last hour, by minute."""

    late: str
    """The greatest lateness, as the path of a line."""
    many: list[Bar]
    done: float | None
    """The share of ended runs that succeeded."""


def hour_charts(figures: Figures) -> HourCharts:
    width, height = CHART
    columns = [(clock_time(each.begin)[:5], each.counts) for each in figures.minutes]
    ended = figures.outcomes["completed"] + figures.outcomes["error"]
    return HourCharts(
        late=_line([each.lag_ms or 0 for each in figures.minutes]),
        many=stacked_bars(columns, [state.value for state in SHOWN_STATES], width, height),
        done=figures.outcomes["completed"] / ended if ended else None,
    )


def _line(values: Sequence[float]) -> str:
    """The path of a line through values, the highest of which fills the height."""
    width, height = CHART
    highest, step = max(values, default=0) or 1, width / max(1, len(values) - 1)
    points = [
        f"{round(number * step, 1)} {round(height - 1 - value / highest * (height - 2), 1)}"
        for number, value in enumerate(values)
    ]
    return f"M{' L'.join(points)}" if points else ""


@dataclass(frozen=True, slots=True)
class FigureSum:
    """What ended in a day, or in an hour of it."""

    at: datetime
    ended: int
    failed: int
    late: int
    done: float | None
    """The share of ended runs that succeeded."""


def _sum_of(part: FigurePart) -> FigureSum:
    done, failed = part.outcomes["completed"], part.outcomes["error"]
    ended = done + failed
    return FigureSum(part.at, ended, failed, part.lag.above(LATE_MS), done / ended if ended else None)


@dataclass(frozen=True, slots=True)
class DayShown:
    """The last 24 hours beside those before them."""

    start: datetime
    end: datetime
    whole: FigureSum
    before: FigureSum | None
    hours: list[FigureSum]
    many: list[Bar]
    late: str
    """What 99 in 100 did not exceed, as the path of a line."""
    failed: list[Bar]


def day_shown(now: datetime) -> DayShown:
    found = services().figures.of_day(tenant(), now)
    hours = [(clock_time(each.at)[:5], _sum_of(each)) for each in found.hours]
    return DayShown(
        start=found.start,
        end=found.end,
        whole=_sum_of(found.total),
        before=None if found.before is None else _sum_of(found.before),
        hours=[each for _, each in hours],
        many=stacked_bars(
            [(begin, {"completed": each.ended - each.failed, "error": each.failed}) for begin, each in hours],
            ["completed", "error"],
            *CHART,
        ),
        late=_line([each.lag.quantile(0.99) or 0 for each in found.hours]),
        failed=stacked_bars([(begin, {"error": each.failed}) for begin, each in hours], ["error"], *CHART),
    )
