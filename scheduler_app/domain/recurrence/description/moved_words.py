"""Where SKIP moves a day that its month or year does not have, in words."""

from typing import Final

from scheduler_app.domain.recurrence.rules.day_filter import DayFilter
from scheduler_app.domain.recurrence.rules.rule import Frequency, Rule, Skip

from .day_words import any_weekday, missing

#: By the direction, and whether the days are counted from the end.
_OF_MONTH: Final = {
    (Skip.BACKWARD, False): "the last day",
    (Skip.FORWARD, False): "the 1st of the next month",
    (Skip.BACKWARD, True): "the last day of the month before",
    (Skip.FORWARD, True): "the 1st",
}
_OF_YEAR: Final = {
    (Skip.BACKWARD, False): "the last day",
    (Skip.FORWARD, False): "1 January of the next year",
    (Skip.BACKWARD, True): "31 December of the year before",
    (Skip.FORWARD, True): "1 January",
}


def moved_words(rule: Rule, of: DayFilter) -> str | None:
    """`, or the last day where it is missing,`; empty where SKIP moves nothing, None if there are no words
    for what it does."""
    days, places = (of.by_month_day, _OF_MONTH) if of.by_month_day else (of.by_year_day, _OF_YEAR)
    rare = [day for day in days if abs(day) > 28]
    if rule.skip is Skip.OMIT or rule.freq > Frequency.MONTHLY or not (rare and missing(of)):
        return ""
    from_end = rare[0] < 0
    others = of.by_week_no or (of.by_year_day if of.by_month_day else of.by_month)
    if others or any((day < 0) != from_end for day in rare) or any(day.n for day in of.by_day):
        return None
    words = f", or {places[rule.skip, from_end]} where it is missing,"
    return f"{words} if that is {any_weekday(of)}," if of.by_day else words
