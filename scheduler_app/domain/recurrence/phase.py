"""Which days INTERVAL allows: the days of every n-th period, as sets of days of a year (see `year`).

Whether a period takes part is arithmetic on its distance from DTSTART's period, so a rule from 1970 costs
what one from yesterday costs.
"""

from collections.abc import Callable
from functools import lru_cache
from math import gcd

from .rule import Frequency
from .seconds import CYCLE_DAYS, CYCLE_YEARS
from .year import days_between, first_day, is_leap, month_spans

Phase = Callable[[int], int]


def phase_of(
    freq: Frequency, interval: int, day: int, year: int, month: int, week_start: int
) -> Phase | None:
    """A function from a year to its days in every `interval`-th period; None when all take part.

    `day`, `year` and `month` are DTSTART's; weeks begin on the weekday `week_start`.
    """
    if interval == 1:
        return None
    if freq == Frequency.YEARLY:
        return lambda other: 0 if (other - year) % interval else (1 << 366) - 1
    if freq == Frequency.MONTHLY:
        first_month = year * 12 + month - 1
        return lambda other: _months(is_leap(other), (other * 12 - first_month) % interval, interval)
    width = 7 if freq == Frequency.WEEKLY else 1
    anchor = week_of(day, week_start) if freq == Frequency.WEEKLY else day
    span = interval * width
    return lambda other: _runs(span, width, (first_day(other) - anchor) % span)


def years_to_repeat(freq: Frequency, interval: int) -> int:
    """The years after which calendar and phase have been together in every way that they ever will be."""
    periods = {
        Frequency.YEARLY: CYCLE_YEARS,
        Frequency.MONTHLY: CYCLE_YEARS * 12,
        Frequency.WEEKLY: CYCLE_DAYS // 7,
        Frequency.DAILY: CYCLE_DAYS,
    }[freq]
    return CYCLE_YEARS * (interval // gcd(interval, periods))


def week_of(day: int, week_start: int) -> int:
    """The first day of the week in which `day` lies."""
    return day - (day + 6 - week_start) % 7


@lru_cache(maxsize=8192)
def _runs(span: int, width: int, passed: int) -> int:
    """`width` days in every `span`, when `passed` days of a span are over on 1 January."""
    days = days_between(-passed, width) if passed < width else 0
    for start in range(span - passed, 366, span):
        days |= days_between(start, width)
    return days


@lru_cache(maxsize=1024)
def _months(leap: bool, passed: int, interval: int) -> int:
    """Every `interval`-th month, when `passed` months of the interval are over in January."""
    spans = month_spans(leap)
    return sum(days_between(*spans[month]) for month in range((-passed) % interval, 12, interval))
