"""Which days INTERVAL allows: the days of every n-th period, as sets of days of a year (see `year`).

Whether a period takes part is arithmetic on its distance from DTSTART's period, so a rule from 1970 costs
what one from yesterday costs.
"""

from collections.abc import Callable
from datetime import date
from functools import lru_cache
from math import gcd

from scheduler_app.domain.recurrence.timeline import CYCLE_DAYS, CYCLE_YEARS
from scheduler_app.domain.recurrence.year_kinds import days_between, first_day, is_leap, month_spans

from .rule import Frequency, Rule
from .week_year import first_of_week_year, week_year_of

Phase = Callable[[int], int]


def phase_of(rule: Rule, start: date) -> Phase | None:
    """A function from a year to its days in every INTERVAL-th period; None when all take part.

    `start` is DTSTART's local day, in the period that is the first.
    """
    freq, interval, day = rule.freq, rule.interval, start.toordinal()
    year, month, week_start = start.year, start.month, rule.week_start
    if interval == 1:
        return None
    if rule.by_week_no:
        anchor = week_year_of(day, week_start)
        return lambda other: _week_years(other, (other - anchor) % interval, interval, week_start)
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


def _week_years(year: int, passed: int, interval: int, week_start: int) -> int:
    """The days of a calendar year that lie in every `interval`-th week-year, when `passed` week-years of the
    interval are over as the week-year of the same number begins."""
    january = first_day(year)
    days = 0
    for number in (-1, 0, 1):
        if (passed + number) % interval == 0:
            first = first_of_week_year(year + number, week_start)
            last = first_of_week_year(year + number + 1, week_start)
            days |= days_between(first - january, last - first) if last > january else 0
    return days & ((1 << (first_day(year + 1) - january)) - 1)
