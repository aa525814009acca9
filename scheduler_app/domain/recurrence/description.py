"""An ordinary recurrence in a sentence of plain English.

There is a sentence for the shapes that people use: a frequency, an interval, days, times, an end. Where the
parts work on each other (positions, week numbers, several rules, exceptions by rule) no sentence would be
clearer than the rule, and there is none.
"""

from collections.abc import Sequence
from typing import Final

from dateutil.rrule import weekday

from .counted_rule import CountedRule
from .recurrence_set import RecurrenceSet
from .rule import Frequency, Rule, Skip
from .seconds import DAY, local_datetime
from .tied_rule import Start, TiedRule

_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_UNITS: Final = ("year", "month", "week", "day", "hour", "minute", "second")
_NAMED: Final = {
    1: "first",
    2: "second",
    3: "third",
    4: "fourth",
    5: "fifth",
    -1: "last",
    -2: "second to last",
}
_MANY: Final = 6  # longer lists of times read worse than the rule


def describe(of: RecurrenceSet, start: Start) -> str | None:
    """The sentence, without a full stop; None where none would be clear."""
    if of.exception_rules or len(of.rules) > 1:
        return None
    if not of.rules:
        return _dates(of)
    only = of.rules[0]
    tied = only.tied if isinstance(only, CountedRule) else only
    sentence = _rule(tied.rule, start)
    if sentence is None:
        return None
    return sentence + _end(tied, start) + _more(of)


def _dates(of: RecurrenceSet) -> str | None:
    if len(of.dates) != 1 or of.exception_dates or of.exception_days:
        return None
    local = of.dates[0] + of.zone.offset(of.dates[0])
    return f"Once, on {_date(local)} at {_clock(local % DAY)} ({of.zone.name})"


def _rule(rule: Rule, start: Start) -> str | None:
    if rule.by_set_pos or rule.by_week_no or rule.by_year_day:
        return None
    if rule.elapsed:
        return _elapsed(rule, start)
    times = _times(rule, start.local % DAY)
    days = _which_days(rule, start)
    if times is None or days is None:
        return None
    return f"{_every(rule)}{days}{_moved(rule, start)} at {times} ({start.zone.name})"


def _every(rule: Rule) -> str:
    unit = _UNITS[rule.freq]
    return f"Every {unit}" if rule.interval == 1 else f"Every {rule.interval} {unit}s"


def _elapsed(rule: Rule, start: Start) -> str | None:
    """Steps of time, on all or on certain days of the week."""
    if rule.by_hour or rule.by_minute or rule.by_second or rule.by_month or rule.by_month_day:
        return None
    days = f" on {_weekdays(rule.by_day)}" if rule.by_day else ""
    local = start.local
    return f"{_every(rule)}{days}, counted from {_date(local)} at {_clock(local % DAY)} ({start.zone.name})"


def _which_days(rule: Rule, start: Start) -> str | None:
    moment = local_datetime(start.local, None)
    if rule.by_day and rule.by_month_day:
        return None
    months = f" in {_list([_MONTHS[month - 1] for month in rule.by_month])}" if rule.by_month else ""
    numbered = any(day.n for day in rule.by_day)
    if rule.freq in (Frequency.DAILY, Frequency.WEEKLY):
        if rule.by_month_day:
            return None
        days = rule.by_day or ((weekday(moment.weekday()),) if rule.freq == Frequency.WEEKLY else ())
        return (f" on {_weekdays(days)}" if days else "") + months
    if rule.by_day:
        if numbered and rule.freq == Frequency.YEARLY and not rule.by_month:
            return None
        names = _numbered(rule.by_day) if numbered else _weekdays(rule.by_day)
        return None if names is None else f" on {names}{months}"
    numbers = rule.by_month_day or (moment.day,)
    if rule.freq == Frequency.MONTHLY:
        return f" on {_month_days(numbers)}{months}"
    if rule.by_month_day and not rule.by_month:
        return None
    of = _list([_MONTHS[month - 1] for month in rule.by_month or (moment.month,)])
    return f" on {_month_days(numbers)} of {of}"


def _moved(rule: Rule, start: Start) -> str:
    """Where SKIP of RFC 7529 puts a day that a month does not have."""
    days = rule.by_month_day or (local_datetime(start.local, None).day,)
    if rule.skip is Skip.OMIT or rule.by_day or max(map(abs, days)) <= 28:
        return ""
    return f", or where that is missing the day {'before' if rule.skip is Skip.BACKWARD else 'after'},"


def _weekdays(days: Sequence[weekday]) -> str:
    numbers = [day.weekday for day in days]
    if numbers == [0, 1, 2, 3, 4]:
        return "Monday to Friday"
    return _list([_DAYS[number] for number in numbers])


def _numbered(days: Sequence[weekday]) -> str | None:
    if not all(day.n in _NAMED for day in days):
        return None
    return _list([f"the {_NAMED[day.n]} {_DAYS[day.weekday]}" for day in days])


def _month_days(numbers: Sequence[int]) -> str:
    return _list(
        [f"day {number}" for number in numbers if number > 0] + [_from_end(n) for n in numbers if n < 0]
    )


def _from_end(number: int) -> str:
    return "the last day" if number == -1 else f"day {-number} from the end"


def _times(rule: Rule, start: int) -> str | None:
    hours = rule.by_hour or (start // 3600,)
    minutes = rule.by_minute or (start // 60 % 60,)
    seconds = rule.by_second or (start % 60,)
    if len(hours) * len(minutes) * len(seconds) > _MANY:
        return None
    return _list(
        [
            _clock(hour * 3600 + minute * 60 + second)
            for hour in hours
            for minute in minutes
            for second in seconds
        ]
    )


def _end(tied: TiedRule, start: Start) -> str:
    count = tied.rule.count
    if count is not None:
        return ", once" if count == 1 else f", {count} times"
    if tied.until is not None:
        local = tied.until + start.zone.offset(tied.until)
        return f", until {_date(local)} at {_clock(local % DAY)}"
    return ""


def _more(of: RecurrenceSet) -> str:
    text = ""
    if of.dates:
        text += f", and on {len(of.dates)} more date{'s' if len(of.dates) > 1 else ''}"
    without = len(of.exception_dates) + len(of.exception_days)
    if without:
        text += f", except for {without} date{'s' if without > 1 else ''}"
    return text


def _clock(time: int) -> str:
    hour, minute, second = time // 3600, time // 60 % 60, time % 60
    return f"{hour:02d}:{minute:02d}" + (f":{second:02d}" if second else "")


def _date(local: int) -> str:
    moment = local_datetime(local, None)
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"


def _list(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
