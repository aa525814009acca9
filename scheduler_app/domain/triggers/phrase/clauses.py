"""What the clauses of a phrase say, before it is decided what they mean together.

Each clause holds what was read (times of day and single days among it) and nothing else. Every field of
every clause that a phrase contains is used in its result, or the phrase is refused.
"""

from dataclasses import dataclass
from datetime import datetime, time


@dataclass(frozen=True, slots=True)
class Time:
    """A time of day. `bare`: an hour from 1 to 12 alone, which may be of the morning or of the evening.
    `sure`: am, pm, noon or midnight was said."""

    hour: int
    minute: int = 0
    second: int = 0
    bare: bool = False
    sure: bool = False

    @property
    def seconds(self) -> int:
        """Since midnight."""
        return self.hour * 3_600 + self.minute * 60 + self.second

    @property
    def clock(self) -> time:
        """As Python's type."""
        return time(self.hour, self.minute, self.second)


@dataclass(frozen=True, slots=True)
class DaysAway:
    """today (0), tomorrow (1), in three days (3)."""

    days: int


@dataclass(frozen=True, slots=True)
class NamedDay:
    """A single weekday: "friday" (`which` is empty), "this friday", "next friday", "friday next week"."""

    weekday: int
    which: str = ""


@dataclass(frozen=True, slots=True)
class Date:
    """A day of a month, perhaps of a year, perhaps with the weekday that it is said to be."""

    month: int
    day: int
    year: int | None = None
    weekday: int | None = None


@dataclass(frozen=True, slots=True)
class NumericDate:
    """03/04/2027: which of the two is the month is open."""

    first: int
    second: int
    year: int | None


@dataclass(frozen=True, slots=True)
class DayNumber:
    """The 15th: of this month or a later one, whichever comes; or of the month that `month` names ("this",
    "next")."""

    day: int
    month: str = ""


@dataclass(frozen=True, slots=True)
class MonthOfYear:
    """A month as a point in time: "starting in june", "until march 2027"."""

    month: int
    year: int | None = None


@dataclass(frozen=True, slots=True)
class EndOf:
    """The end of a week, month, quarter or year; `this` where the phrase says that it is the present one."""

    unit: str
    this: bool = False


@dataclass(frozen=True, slots=True)
class NthDay:
    """The first Monday of next month: an ordinal, what it counts (0 is Monday; else as an ordinal that
    repeats), and the month: "this", "next", or its number with `year`."""

    number: int
    what: int | str
    month: str | int
    year: int | None = None


@dataclass(frozen=True, slots=True)
class EasterDay:
    """A day that moves with Easter Sunday: it lies `days` after it."""

    days: int
    year: int | None = None


@dataclass(frozen=True, slots=True)
class Later:
    """A week from Tuesday, 3 days before Christmas (`count` is negative)."""

    count: int
    unit: str
    day: "Day"


Day = DaysAway | NamedDay | Date | NumericDate | DayNumber | MonthOfYear | EndOf | NthDay | EasterDay | Later


#: What an ordinal can count, beside weekdays (0 is Monday).
DAY, BUSINESS_DAY, WEEKDAY = "day", "business day", "weekday"


@dataclass(frozen=True, slots=True)
class Clause:
    """What one group of words says. The kinds subclass it."""


@dataclass(frozen=True, slots=True)
class ExceptedClause(Clause):
    """A clause that may stand behind "except"."""


@dataclass(frozen=True, slots=True)
class RepeatingClause(Clause):
    """A clause that always says that it happens again."""


@dataclass(frozen=True, slots=True)
class RepeatClause(RepeatingClause):
    """Every `count` units; `doubtful` for "biweekly", which may mean twice in one."""

    count: int
    unit: str
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class OftenClause(RepeatingClause):
    """Twice a day, once a week: a number of times in a unit."""

    times: int
    unit: str


@dataclass(frozen=True, slots=True)
class WeekdaysClause(ExceptedClause, RepeatingClause):
    """Days of the week that repeat; `step` 2 for "every other"; `business` where business days were named;
    `listed` for several single days without "every", which may mean the next ones alone."""

    days: tuple[int, ...]
    step: int = 1
    business: bool = False
    listed: bool = False


@dataclass(frozen=True, slots=True)
class WeekdayAndDayClause(Clause):
    """Friday the 13th."""

    weekday: int
    day: int
    repeated: bool


@dataclass(frozen=True, slots=True)
class NthClause(ExceptedClause, RepeatingClause):
    """The first Monday, the last business day: ordinals (negative from the end) and what they count.

    `joint` where several weekdays share an ordinal; `every` where "every" stands before it.
    """

    positions: tuple[tuple[int, int | str], ...]
    joint: bool = False
    every: bool = False


@dataclass(frozen=True, slots=True)
class MonthDaysClause(ExceptedClause):
    """Days of the month by their numbers; `every` where the phrase says that they repeat."""

    days: tuple[int, ...]
    every: bool = False


@dataclass(frozen=True, slots=True)
class WithinMonthClause(Clause):
    """Only on days of the month with these numbers, in the order in which they come; `every` where the phrase
    says so."""

    days: tuple[int, ...]
    every: bool = False


@dataclass(frozen=True, slots=True)
class WeeksClause(Clause):
    """Only in the ISO weeks of the year with these numbers."""

    weeks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PeriodClause(ExceptedClause, RepeatingClause):
    """Of every month, of the quarter, of every other year."""

    unit: str
    step: int = 1


@dataclass(frozen=True, slots=True)
class MonthsClause(ExceptedClause):
    """In January and July, from June to August; `quarters` where they were named as quarters."""

    months: tuple[int, ...]
    quarters: bool = False


@dataclass(frozen=True, slots=True)
class YearlyDatesClause(ExceptedClause, RepeatingClause):
    """Days of the year that repeat; `every` where the phrase says so."""

    dates: tuple[Date, ...]
    every: bool = False


@dataclass(frozen=True, slots=True)
class OnClause(ExceptedClause):
    """The one day on which a single callback comes."""

    days: tuple[Day, ...]


@dataclass(frozen=True, slots=True)
class OnEachClause(Clause):
    """Several single days, on each of which a callback comes once."""

    days: tuple[Day, ...]


@dataclass(frozen=True, slots=True)
class AtClause(Clause):
    """An instant that is written with its offset."""

    instant: datetime


@dataclass(frozen=True, slots=True)
class TimesClause(ExceptedClause):
    """Times of day."""

    times: tuple[Time, ...]


@dataclass(frozen=True, slots=True)
class PartOfDayClause(Clause):
    """In the morning, at night; `daily` for "every morning"."""

    part: str
    daily: bool = False


@dataclass(frozen=True, slots=True)
class PastHourClause(RepeatingClause):
    """Minutes past the hour; `of_every_hour` where the clause itself says "every hour", `of_the_hour`
    where it says "the hour"."""

    minutes: tuple[int, ...]
    of_every_hour: bool
    of_the_hour: bool = False


@dataclass(frozen=True, slots=True)
class WindowClause(ExceptedClause, RepeatingClause):
    """Between two times of day."""

    first: Time
    last: Time


@dataclass(frozen=True, slots=True)
class WorkingHoursClause(RepeatingClause):
    """During business hours: the phrase does not say which."""


@dataclass(frozen=True, slots=True)
class StartClause(Clause):
    """The day or the time from which on; `at` is a time that follows the day; `week`: from the Monday of its
    week."""

    day: Day | None
    time: Time | None = None
    at: Time | None = None
    week: bool = False


@dataclass(frozen=True, slots=True)
class UntilClause(Clause):
    """The day (inclusive) or the time up to which; `at` is a time that follows the day."""

    day: Day | None
    time: Time | None = None
    at: Time | None = None


@dataclass(frozen=True, slots=True)
class ForClause(Clause):
    """For a number of units."""

    count: int
    unit: str


@dataclass(frozen=True, slots=True)
class TotalClause(Clause):
    """A number of times in all."""

    times: int


@dataclass(frozen=True, slots=True)
class AfterClause(Clause):
    """In a number of seconds, days, weeks, months or years; "now" is `AfterClause(0, "second")`."""

    count: int
    unit: str


@dataclass(frozen=True, slots=True)
class RollClause(Clause):
    """ "or the business day before": where a day goes on which nobody works ("previous", "next", "nearest");
    `weekday` where it says weekday, which no calendar changes."""

    direction: str
    weekday: bool = False


@dataclass(frozen=True, slots=True)
class InZoneClause(Clause):
    """The IANA names of the zones in which the times may be meant: one, unless the phrase's name for it has
    several."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OnceClause(Clause):
    """ "once", "only once": a single callback."""


@dataclass(frozen=True, slots=True)
class HolidaysClause(ExceptedClause):
    """Public holidays, which only a calendar knows."""


@dataclass(frozen=True, slots=True)
class ExceptClause(Clause):
    """What is left out."""

    what: tuple[ExceptedClause, ...]
