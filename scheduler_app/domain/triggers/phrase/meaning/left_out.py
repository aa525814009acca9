"""What "except" takes away: from the lists of a rule where that is exact, else by EXRULE and EXDATE."""

from dataclasses import dataclass, field
from datetime import date

from scheduler_app.domain.triggers.phrase.clauses import (
    Except,
    Holidays,
    MonthDays,
    Months,
    Nth,
    On,
    Period,
    Times,
    Weekdays,
    Window,
    YearlyDates,
)
from scheduler_app.domain.triggers.phrase.moments import EasterDay
from scheduler_app.domain.triggers.phrase.rules import DayRule

from .bag import Bag
from .calendar_days import dates_of
from .clock_times import take_window
from .day_rules import by_month, days_of, monthly, ordinal, yearly
from .outcome import Moment, Refused


@dataclass
class LeftOut:
    """What is left out, by what it is taken from."""

    weekdays: set[int] = field(default_factory=set)
    months: set[int] = field(default_factory=set)
    times: set[int] = field(default_factory=set)
    windows: list[tuple[int, int]] = field(default_factory=list)
    rules: list[DayRule] = field(default_factory=list)
    days: list[date] = field(default_factory=list)
    holidays: bool = False
    """Those of the schedule's calendar."""

    @property
    def of_the_day(self) -> bool:
        """Whether times of day are left out."""
        return bool(self.times or self.windows)

    def keeps(self, second: int) -> bool:
        """Whether a time of day (seconds since midnight) stays."""
        return second not in self.times and not any(_within(second, *window) for window in self.windows)


def _within(second: int, first: int, last: int) -> bool:
    return first <= second <= last if first < last else second >= first or second <= last


def take_left_out(bag: Bag, moment: Moment) -> LeftOut | None:
    """Everything that one "except" names; None where there is none."""
    asked = bag.take(Except)
    if asked is None:
        return None
    found = LeftOut()
    scope = next((one for one in asked.what if isinstance(one, Period)), None)
    for one in asked.what:
        if isinstance(one, Weekdays):
            found.weekdays.update(one.days)
        elif isinstance(one, Months):
            found.months.update(one.months)
        elif isinstance(one, Times):
            if any(time.bare for time in one.times):
                raise Refused("say the time that is left out in full, for example 05:00 or 5pm")
            found.times.update(time.seconds for time in one.times)
        elif isinstance(one, Window):
            found.windows.append(take_window(bag, one))
        elif isinstance(one, YearlyDates):
            found.rules += yearly(one, "YEARLY").rules
        elif isinstance(one, MonthDays):
            found.rules += monthly(one.days, (), None, moment).rules
        elif isinstance(one, Nth):
            if scope is None or one.joint:
                raise Refused("say of which month, quarter or year it is left out")
            found.rules += ordinal(one, scope.unit, (), moment).rules
        elif isinstance(one, On):
            for day in one.days:
                if isinstance(day, EasterDay) and day.year is None:
                    raise Refused("Easter comes on another date each year: give its date, or a calendar")
                choices = dates_of(day, moment.today)
                if len(choices) > 1:
                    raise Refused("the day that is left out can be read in two ways; give its date")
                found.days.append(choices[0])
        elif isinstance(one, Holidays):
            found.holidays = True
            if moment.calendar:
                continue
            raise Refused(
                "only a calendar knows the holidays: give the schedule one, or leave these words out",
                ("holidays",),
            )
    if scope is not None and scope.step != 1:
        raise Refused("what is left out can only be of every month, quarter or year")
    return found


def without(
    rules: tuple[DayRule, ...], interval: int, left_out: LeftOut
) -> tuple[tuple[DayRule, ...], list[DayRule]]:
    """The rules without what is left out, and what EXRULE must take away."""
    excluded = list(left_out.rules)
    if left_out.months:
        rules = tuple(_without_months(rule, left_out.months) for rule in rules)
    if left_out.weekdays:
        listed = all(rule.freq in ("DAILY", "WEEKLY") for rule in rules) and (
            interval == 1 or rules[0].freq == "WEEKLY"
        )
        if listed:
            rules = tuple(_without_weekdays(rule, left_out.weekdays) for rule in rules)
        else:
            excluded.append(DayRule("DAILY", (("BYDAY", days_of(tuple(left_out.weekdays))),)))
    return rules, excluded


def _without_months(rule: DayRule, months: set[int]) -> DayRule:
    parts = dict(rule.parts)
    known = {int(month) for month in parts.pop("BYMONTH", "1,2,3,4,5,6,7,8,9,10,11,12").split(",")}
    if not known & months:
        raise Refused("the month that is left out is none of those that are named")
    if known <= months:
        raise Refused("every month is left out; nothing remains")
    return DayRule(rule.freq, (*by_month(tuple(known - months)), *parts.items()))


def _without_weekdays(rule: DayRule, days: set[int]) -> DayRule:
    parts = dict(rule.parts)
    codes = {days_of((day,)) for day in days}
    known = parts.pop("BYDAY", "MO,TU,WE,TH,FR,SA,SU").split(",")
    if not codes & set(known):
        raise Refused("the day that is left out is none of those that are named")
    kept = [code for code in known if code not in codes]
    if not kept:
        raise Refused("every day is left out; nothing remains")
    return DayRule("WEEKLY", (*parts.items(), ("BYDAY", ",".join(kept))))
