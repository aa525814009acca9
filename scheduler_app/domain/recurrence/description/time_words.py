"""The times of day of a rule in words: a list, or a step between two times; and BYSETPOS in words, where its
positions are days of a period at the same times of day.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from dateutil.rrule import weekday

from scheduler_app.domain.recurrence.description import vocabulary as say
from scheduler_app.domain.recurrence.description.day_words import (
    DayWords,
    constraints,
    day_words,
    monthly,
    moved_words,
    simplified_filter,
    yearly,
)
from scheduler_app.domain.recurrence.rules.days import DayFilter
from scheduler_app.domain.recurrence.rules.rule import Frequency, Rule

_LISTED: Final = 8  # longer lists of times read worse than hours and minutes apart
_SHORT: Final = 4  # a list this short reads better than a step
_ITEMS: Final = 12  # and with more numbers than these nothing reads well
_WINDOWS: Final = 3


@dataclass(frozen=True)
class TimesOfDay:
    """Every combination of these hours, minutes and seconds; each list is ascending and not empty."""

    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]

    @classmethod
    def of(cls, times: Collection[int]) -> "TimesOfDay | None":
        """Those that are exactly these seconds of the day; None if they are not such a product."""
        hours = tuple(sorted({time // 3600 for time in times}))
        minutes = tuple(sorted({time // 60 % 60 for time in times}))
        found = cls(hours, minutes, tuple(sorted({time % 60 for time in times})))
        return found if found.size == len(times) else None

    @property
    def size(self) -> int:
        """How many times of day there are."""
        return len(self.hours) * len(self.minutes) * len(self.seconds)

    def all(self) -> list[int]:
        """The seconds of the day, ascending. Only asked for where `size` is small."""
        return [
            hour * 3600 + minute * 60 + second
            for hour in self.hours
            for minute in self.minutes
            for second in self.seconds
        ]


@dataclass(frozen=True)
class TimeWords:
    """Times of day in the middle of a sentence. `leads`: they are a step, "every 15 minutes …", which may
    begin the sentence; `windows`: one between certain times of the day."""

    text: str
    leads: bool = False
    windows: bool = False


def time_words(times: TimesOfDay) -> TimeWords | None:
    """The words for `times`; None if there are none that a person would read."""
    if times.size <= _SHORT:
        return _list(times)
    stepped = _stepped(times)
    if stepped is not None:
        return TimeWords(stepped, True, "between" in stepped)
    return _list(times) if times.size <= _LISTED else _uneven_times(times)


def days_and_times(days: DayWords, at: TimeWords, some_days: bool) -> str:
    """Days and times in the order that reads best; days that are all of them are said only beside windows."""
    if not at.leads:
        return f"{days.lead} {at.text}"
    steps = at.text[0].upper() + at.text[1:]
    return f"{steps}, {days.after}" if some_days or at.windows else steps


def in_each_hour(minutes: tuple[int, ...], seconds: tuple[int, ...]) -> str | None:
    """Where in an hour these minutes and seconds are, after "Every 5 hours"; None if nothing reads well."""
    if len(minutes) == len(seconds) == 1:
        return _into_hour(minutes[0], seconds[0], 0)
    if max(len(say.runs(each)) for each in (minutes, seconds)) > _ITEMS:
        return None
    return f" at {_of_seconds(seconds)}{_counted('minute', minutes)}"


def in_each_minute(seconds: tuple[int, ...]) -> str | None:
    """Where in a minute these seconds are, after "Every 7 minutes"; None if nothing reads well."""
    if len(seconds) == 1:
        return _into_minute(seconds[0], 0)
    return f" at {_counted('second', seconds)}" if len(say.runs(seconds)) <= _ITEMS else None


def _list(times: TimesOfDay) -> TimeWords:
    return TimeWords(f"at {say.listed([say.clock(time) for time in times.all()])}")


def _stepped(times: TimesOfDay) -> str | None:
    """`every 15 minutes between 09:00 and 17:45`, where the times are such steps."""
    hours, minutes, seconds = times.hours, times.minutes, times.seconds
    if len(seconds) == len(minutes) == 1:
        return _hours(hours, minutes[0] * 60 + seconds[0])
    if len(seconds) == 1 and (step := _step(minutes)):
        every = "every minute" if step == 1 else f"every {step} minutes"
        whole = step * len(minutes) == 60
        if whole and len(hours) == 24:
            return every + _into_hour(minutes[0], seconds[0], step)
    elif (
        (step := _step(seconds)) and step * len(seconds) == 60 and (len(minutes) == 1 or _step(minutes) == 1)
    ):
        every = "every second" if step == 1 else f"every {step} seconds"
        whole = len(minutes) == 60
        if whole and len(hours) == 24:
            return every + _into_minute(seconds[0], step)
    else:
        return None
    first, last = minutes[0] * 60 + seconds[0], minutes[-1] * 60 + seconds[-1]
    return _between(every, hours, first, last, whole)


def _hours(hours: tuple[int, ...], into: int) -> str | None:
    """Steps of hours; `into` is the second of the hour."""
    if len(hours) == 24:
        return "every hour" + _into_hour(into // 60, into % 60, 0)
    if (step := say.even_step(hours)) > 1:
        return f"every {step} hours between {_time(hours[0], into)} and {_time(hours[-1], into)}"
    if any(low == high for low, high in say.spans(hours)):
        return None
    return _between("every hour", hours, into, into, True)


def _between(every: str, hours: tuple[int, ...], first: int, last: int, whole: bool) -> str | None:
    """`every` in each span of neighbouring hours, or in each hour where the steps do not fill a whole one;
    None if those are too many."""
    spans = say.spans(hours) if whole else [(hour, hour) for hour in hours]
    if len(spans) > _WINDOWS:
        return None
    windows = [f"between {_time(low, first)} and {_time(high, last)}" for low, high in spans]
    return f"{every} {say.listed(windows)}"


def _time(hour: int, into: int) -> str:
    return say.clock(hour * 3600 + into)


def _step(values: tuple[int, ...]) -> int:
    """The step of more than two evenly spaced values, or of two that halve the hour or the minute; else 0."""
    step = say.even_step(values)
    return step if len(values) > 2 or step == 30 else 0


def _into_hour(minute: int, second: int, step: int) -> str:
    """Where in the hour steps of that many minutes begin; a step of 0 is the whole hour."""
    if step == 1:
        return _into_minute(second, 0)
    begin = ", starting" if step else ""
    if not minute and not second:
        return f"{begin or ','} on the hour"
    rest = f" and second {second}" if second else ""
    return f"{begin} at minute {minute}{rest}" + (" of the hour" if step else "")


def _into_minute(second: int, step: int) -> str:
    """Where in the minute steps of that many seconds begin; a step of 0 is the whole minute."""
    if step == 1 or (not step and not second):
        return ""
    begin = ", starting" if step else ""
    if not second:
        return f"{begin} on the minute"
    return f"{begin} at second {second}" + (" of the minute" if step else "")


def _uneven_times(times: TimesOfDay) -> TimeWords | None:
    """`at minutes 0, 10 and 13 of the hours 9 to 17`."""
    if max(len(say.runs(each)) for each in (times.hours, times.minutes, times.seconds)) > _ITEMS:
        return None
    minutes = "every minute" if len(times.minutes) == 60 else _counted("minute", times.minutes)
    hours = "every hour" if len(times.hours) == 24 else f"the {_counted('hour', times.hours)}"
    return TimeWords(f"at {_of_seconds(times.seconds)}{minutes} of {hours}")


def _of_seconds(seconds: tuple[int, ...]) -> str:
    return "" if seconds == (0,) else f"{_counted('second', seconds)} of "


def _counted(unit: str, values: tuple[int, ...]) -> str:
    return f"{unit}{'s' if len(values) > 1 else ''} {say.numbers(values)}"


_WORKING = (0, 1, 2, 3, 4)
_WEEKEND = (5, 6)


class PickedPositions(NamedTuple):
    """What BYSETPOS leaves: the n-th days (empty: all), and the times of day on each of them."""

    days: tuple[int, ...]
    times: TimesOfDay


def picked_positions(rule: Rule, times: TimesOfDay) -> PickedPositions | None:
    """The positions of a calendar rule as days and times; None if they are not a product of the two."""
    positions = rule.by_set_pos
    if not positions:
        return PickedPositions((), times)
    size = times.size
    if size > 1440:
        return None
    all_times = times.all()
    by_day: dict[int, set[int]] = {}
    for position in positions:
        day, time = divmod(abs(position) - 1, size)
        sign = 1 if position > 0 else -1
        by_day.setdefault(sign * (day + 1), set()).add(all_times[time if sign > 0 else size - 1 - time])
    if rule.freq == Frequency.DAILY:
        # A day has its own times and nothing else: later positions name nothing.
        days: tuple[int, ...] = ()
        chosen = by_day.get(1, set()) | by_day.get(-1, set())
    else:
        days = tuple(sorted(by_day, key=lambda day: (day < 0, day)))
        chosen = next(iter(by_day.values()))
        if any(other != chosen for other in by_day.values()):
            return None
    picked = TimesOfDay.of(chosen)
    return None if picked is None else PickedPositions(days, picked)


def without_positions(rule: Rule, of: DayFilter, days: tuple[int, ...]) -> tuple[DayFilter, tuple[int, ...]]:
    """The same days without positions where weekdays can say it: the second of the Mondays of a month is the
    second Monday, the first of Tuesday and Friday in a week is Tuesday."""
    only_weekdays = not (of.by_month_day or of.by_year_day or of.by_week_no) and not any(
        d.n for d in of.by_day
    )
    if not days or not only_weekdays:
        return of, days
    if rule.freq == Frequency.WEEKLY and not of.by_month:
        week = sorted((day.weekday for day in of.by_day), key=lambda day: (day - rule.week_start) % 7)
        chosen = {week[day - 1 if day > 0 else day] for day in days if abs(day) <= len(week)}
        return replace(of, by_day=tuple(weekday(day) for day in sorted(chosen))), ()
    in_month = rule.freq == Frequency.MONTHLY or len(of.by_month) == 1
    if len(of.by_day) == 1 and rule.freq <= Frequency.MONTHLY and (in_month or not of.by_month):
        name = of.by_day[0].weekday
        return replace(of, by_day=tuple(weekday(name, day) for day in days)), ()
    return of, days


def position_words(rule: Rule, of: DayFilter, days: tuple[int, ...]) -> DayWords | None:
    """The words for the n-th days of each period that `of` allows; None if there are none."""
    if not days:
        moved = moved_words(rule, of)
        return None if moved is None else day_words(of, moved)
    of = simplified_filter(of)
    # What the positions count in: named months, which need not be said again, or else the year.
    months = bool(of.by_month) and (rule.freq == Frequency.MONTHLY or len(of.by_month) == 1)
    period = say.months(of.by_month) if months else "the year"
    pool = _pool(replace(of, by_month=()) if months else of)
    if rule.freq not in (Frequency.MONTHLY, Frequency.YEARLY) or pool is None:
        return None
    text = f"the {say.ranks(days)} {pool}"
    if rule.freq == Frequency.MONTHLY and not months:
        return monthly(text)
    return replace(yearly(f"{text} of {period}"), in_month=text)


def _pool(of: DayFilter) -> str | None:
    """What there is to pick from: `weekday (Monday to Friday)`, `day that is …`; None if it is too much to
    keep in mind."""
    must = constraints(of)
    if not must:
        return "day"
    if len(must) > 2 or any(day.n for day in of.by_day):
        return None
    if len(must) == 1 and of.by_month_day and min(of.by_month_day) > 0:
        return f"of the days {say.numbers(of.by_month_day)}"
    groups = {_WORKING: "weekday (Monday to Friday)", _WEEKEND: "weekend day (Saturday or Sunday)"}
    noun = groups.get(tuple(day.weekday for day in of.by_day), "day")
    rest = constraints(replace(of, by_day=())) if noun != "day" else must
    if not rest:
        return noun
    return f"{noun} that is {say.all_of(rest)}" + ("," if len(must) > 1 else "")
