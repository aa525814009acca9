"""Days, times, the beginning, the end and what is left out, put together.

What "except" takes away is taken from the lists of a rule where that is exact, else by EXRULE and EXDATE.
"""

from dataclasses import dataclass, field
from datetime import date, datetime

from scheduler_app.domain.triggers.phrase.clause_bag import ClauseBag, PhraseContext, PhraseRefused
from scheduler_app.domain.triggers.phrase.clauses import (
    EasterDay,
    ExceptClause,
    ForClause,
    HolidaysClause,
    MonthDaysClause,
    MonthsClause,
    NthClause,
    OnClause,
    PeriodClause,
    RepeatClause,
    StartClause,
    Time,
    TimesClause,
    TotalClause,
    UntilClause,
    WeekdaysClause,
    WindowClause,
    YearlyDatesClause,
)
from scheduler_app.domain.triggers.phrase.dates import (
    dates_of,
    end_after,
    start_instant,
    take_window,
    until_instant,
)
from scheduler_app.domain.triggers.phrase.rules import (
    DayRule,
    NamedDays,
    Plan,
    bodies,
    by_month,
    days_of,
    monthly,
    ordinal,
    text_of,
    yearly,
)
from scheduler_app.domain.triggers.phrase.words import SECONDS_OF
from scheduler_app.domain.triggers.translation import Translation


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

    def keeps(self, second: int) -> bool:
        """Whether a time of day (seconds since midnight) stays."""
        return second not in self.times and not any(is_within(second, *window) for window in self.windows)


def is_within(second: int, first: int, last: int) -> bool:
    """Whether a time of day lies in a window, which may go on after midnight."""
    return first <= second <= last if first < last else second >= first or second <= last


def take_left_out(bag: ClauseBag, moment: PhraseContext) -> LeftOut:
    """Everything that one "except" names."""
    asked, found = bag.take(ExceptClause), LeftOut()
    if asked is None:
        return found
    scope = next((one for one in asked.what if isinstance(one, PeriodClause)), None)
    for one in asked.what:
        if isinstance(one, WeekdaysClause):
            found.weekdays.update(one.days)
        elif isinstance(one, MonthsClause):
            found.months.update(one.months)
        elif isinstance(one, TimesClause):
            if any(time.bare for time in one.times):
                raise PhraseRefused("say the time that is left out in full, for example 05:00 or 5pm")
            found.times.update(time.seconds for time in one.times)
        elif isinstance(one, WindowClause):
            found.windows.append(take_window(bag, one))
        elif isinstance(one, YearlyDatesClause):
            found.rules += yearly(one, "YEARLY").rules
        elif isinstance(one, MonthDaysClause):
            found.rules += monthly(one.days, (), None, moment).rules
        elif isinstance(one, NthClause):
            if scope is None or one.joint:
                raise PhraseRefused("say of which month, quarter or year it is left out")
            found.rules += ordinal(one, scope.unit, (), moment).rules
        elif isinstance(one, OnClause):
            for day in one.days:
                if isinstance(day, EasterDay) and day.year is None:
                    why = "Easter comes on another date each year: give its date, or a calendar"
                    raise PhraseRefused(why)
                choices = dates_of(day, moment.today)
                if len(choices) > 1:
                    raise PhraseRefused("the day that is left out can be read in two ways; give its date")
                found.days.append(choices[0])
        elif isinstance(one, HolidaysClause):
            if not moment.calendar:
                why = "only a calendar knows the holidays: give the schedule one, or leave these words out"
                raise PhraseRefused(why, ("holidays",))
            found.holidays = True
    if scope is not None and scope.step != 1:
        raise PhraseRefused("what is left out can only be of every month, quarter or year")
    return found


def rules_without(
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
        raise PhraseRefused("the month that is left out is none of those that are named")
    if known <= months:
        raise PhraseRefused("every month is left out; nothing remains")
    return DayRule(rule.freq, (*by_month(tuple(known - months)), *parts.items()))


def _without_weekdays(rule: DayRule, days: set[int]) -> DayRule:
    parts = dict(rule.parts)
    codes = {days_of((day,)) for day in days}
    known = parts.pop("BYDAY", "MO,TU,WE,TH,FR,SA,SU").split(",")
    if not codes & set(known):
        raise PhraseRefused("the day that is left out is none of those that are named")
    kept = [code for code in known if code not in codes]
    if not kept:
        raise PhraseRefused("every day is left out; nothing remains")
    return DayRule("WEEKLY", (*parts.items(), ("BYDAY", ",".join(kept))))


MAX_TOTAL = 100_000
_WEEKENDS = "The calendar's weekend days are left out with its holidays; to keep them give it the weekend []."


@dataclass
class Steps:
    """The units in which a phrase repeats: shorter than a day, and from a day on."""

    short: RepeatClause | None = None
    long: RepeatClause | None = None

    def add(self, found: RepeatClause) -> None:
        """Puts an interval in its place, which another one may not have taken."""
        place = "short" if found.unit in SECONDS_OF else "long"
        if getattr(self, place) is not None:
            raise PhraseRefused("two intervals are given; give one")
        setattr(self, place, found)


def end_of(
    bag: ClauseBag,
    until: UntilClause | None,
    clock: Time | None,
    start: datetime | None,
    moment: PhraseContext,
) -> tuple[datetime | None, int | None]:
    length, total = bag.take(ForClause), bag.take(TotalClause)
    if sum(one is not None for one in (until, length, total)) > 1:
        raise PhraseRefused("two ends are given; give one")
    if total is not None and not 1 <= total.times <= MAX_TOTAL:
        raise PhraseRefused(f"a number of times is from 1 to {MAX_TOTAL}", (str(total.times),))
    if until is not None:
        return until_instant(bag, until, moment, clock), None
    if length is not None:
        return end_after(length, start, moment), None
    return None, None if total is None else total.times


def _on_workdays_only(rule: DayRule) -> bool:
    """Whether a rule names only days from Monday to Friday."""
    days = dict(rule.parts).get("BYDAY", "SA")
    return "SA" not in days and "SU" not in days


def finished_plan(
    bag: ClauseBag,
    named: NamedDays,
    step: RepeatClause | None,
    seconds: list[int],
    left_out: LeftOut,
    span: tuple[StartClause | None, UntilClause | None],
    moment: PhraseContext,
    warnings: tuple[str, ...] = (),
) -> Translation:
    start, until = span
    # The phrase may name an interval beside that of its days.
    interval = named.interval if step is None else max(named.interval, step.count)
    first = None if start is None or start.day is None else start_instant(bag, start, moment, None)
    end, total = end_of(bag, until, None, first, moment)
    bag.check_empty()
    if not seconds:
        raise PhraseRefused("everything is left out; nothing remains")
    rules, excluded = rules_without(named.rules, interval, left_out)
    on_holiday = named.on_holiday
    if left_out.holidays:
        if on_holiday in ("next", "previous"):
            raise PhraseRefused("a day is moved off holidays or left out on them; say one of the two")
        on_holiday = on_holiday or "skip"
        if not all(_on_workdays_only(rule) for rule in rules):
            warnings = (*warnings, _WEEKENDS)
    rule_bodies = bodies(rules, seconds)
    if total is not None and moment.calendar and on_holiday in ("skip", "uncounted"):
        if len(rule_bodies) > 1:
            raise PhraseRefused(
                "with a calendar, so many times cannot be counted over several times of day; give an end"
            )
        on_holiday = "uncounted"  # days that the calendar closes are not counted
    if on_holiday == "uncounted" and interval > 1:
        raise PhraseRefused("with a calendar, business days are counted in each period; name the months")
    plan = Plan(
        rule_bodies,
        interval,
        bodies(excluded, seconds) if excluded else (),
        tuple(sorted(left_out.days)),
        first=first,
        until=end,
        total=total,
        counts_open_days=on_holiday == "uncounted",
    )
    return Translation(text_of(plan, moment), warnings=warnings, on_holiday=on_holiday)
