"""Week-years: the years that week numbers count in.

Week 1 is the first with at least four days in its calendar year (ISO 8601, for any first day of the week), so
a week-year begins up to three days before or after 1 January. With BYWEEKNO the period of a YEARLY rule is
the week-year: a week that lies across New Year is one week of one period.
"""

from functools import lru_cache

from scheduler_app.domain.recurrence.timeline import LAST_YEAR
from scheduler_app.domain.recurrence.year_kinds import first_day, year_of


def to_first_week(days_into_week: int) -> int:
    """Days from 1 January, given its day of the week, to the first day of week 1: from -3 to 3."""
    return -days_into_week if days_into_week <= 3 else 7 - days_into_week


@lru_cache(maxsize=LAST_YEAR)
def first_of_week_year(year: int, week_start: int) -> int:
    """The ordinal of the first day of a week-year; weeks begin on the weekday `week_start`."""
    january = first_day(year)
    return january + to_first_week((january + 6 - week_start) % 7)


def week_year_of(day: int, week_start: int) -> int:
    """The week-year in which an ordinal between FIRST_DAY and LAST_DAY lies."""
    year = year_of(day)
    if day < first_of_week_year(year, week_start):
        return year - 1
    return year + 1 if day >= first_of_week_year(year + 1, week_start) else year
