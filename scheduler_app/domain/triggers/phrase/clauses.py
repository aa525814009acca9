"""What the clauses of a phrase say, before it is decided what they mean together.

Each clause holds what was read and nothing else. Every field of every clause that a phrase contains is used
in its result, or the phrase is refused.
"""

from dataclasses import dataclass
from datetime import datetime

from .moments import Date, Day, Time

#: What an ordinal can count, beside weekdays (0 is Monday).
DAY, BUSINESS_DAY, WEEKDAY = "day", "business day", "weekday"


@dataclass(frozen=True, slots=True)
class Repeat:
    """Every `count` units; `doubtful` for "biweekly", which may mean twice in one."""

    count: int
    unit: str
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Often:
    """Twice a day, once a week: so many times in a unit."""

    times: int
    unit: str


@dataclass(frozen=True, slots=True)
class Weekdays:
    """Days of the week that repeat; `step` 2 for "every other"; `business` where business days were named;
    `listed` for several single days without "every", which may mean the next ones alone."""

    days: tuple[int, ...]
    step: int = 1
    business: bool = False
    listed: bool = False


@dataclass(frozen=True, slots=True)
class WeekdayAndDay:
    """Friday the 13th."""

    weekday: int
    day: int
    repeated: bool


@dataclass(frozen=True, slots=True)
class Nth:
    """The first Monday, the last business day: ordinals (negative from the end) and what they count.

    `joint` where several weekdays share an ordinal; `every` where "every" stands before it.
    """

    positions: tuple[tuple[int, int | str], ...]
    joint: bool = False
    every: bool = False


@dataclass(frozen=True, slots=True)
class MonthDays:
    """Days of the month by their numbers; `every` where the phrase says that they repeat."""

    days: tuple[int, ...]
    every: bool


@dataclass(frozen=True, slots=True)
class WithinMonth:
    """Only on days of the month with these numbers, in the order in which they come; `every` where the phrase
    says so."""

    days: tuple[int, ...]
    every: bool = False


@dataclass(frozen=True, slots=True)
class Weeks:
    """Only in the ISO weeks of the year with these numbers."""

    weeks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Period:
    """Of every month, of the quarter, of every other year."""

    unit: str
    step: int = 1


@dataclass(frozen=True, slots=True)
class Months:
    """In January and July, from June to August; `quarters` where they were named as quarters."""

    months: tuple[int, ...]
    quarters: bool = False


@dataclass(frozen=True, slots=True)
class YearlyDates:
    """Days of the year that repeat; `every` where the phrase says so."""

    dates: tuple[Date, ...]
    every: bool = False


@dataclass(frozen=True, slots=True)
class On:
    """The one day on which a single callback comes."""

    days: tuple[Day, ...]


@dataclass(frozen=True, slots=True)
class OnEach:
    """Several single days, on each of which a callback comes once."""

    days: tuple[Day, ...]


@dataclass(frozen=True, slots=True)
class At:
    """An instant that is written with its offset."""

    instant: datetime


@dataclass(frozen=True, slots=True)
class Times:
    """Times of day."""

    times: tuple[Time, ...]


@dataclass(frozen=True, slots=True)
class PartOfDay:
    """In the morning, at night; `daily` for "every morning"."""

    part: str
    daily: bool = False


@dataclass(frozen=True, slots=True)
class PastHour:
    """So many minutes past the hour; `of_every_hour` where the clause itself says "every hour", `of_the_hour`
    where it says "the hour"."""

    minutes: tuple[int, ...]
    of_every_hour: bool
    of_the_hour: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """Between two times of day."""

    first: Time
    last: Time


@dataclass(frozen=True, slots=True)
class WorkingHours:
    """During business hours: the phrase does not say which."""


@dataclass(frozen=True, slots=True)
class Start:
    """The day or the time from which on; `at` is a time that follows the day; `week`: from the Monday of its
    week."""

    day: Day | None
    time: Time | None = None
    at: Time | None = None
    week: bool = False


@dataclass(frozen=True, slots=True)
class Until:
    """The day (inclusive) or the time up to which; `at` is a time that follows the day."""

    day: Day | None
    time: Time | None = None
    at: Time | None = None


@dataclass(frozen=True, slots=True)
class For:
    """For so many units."""

    count: int
    unit: str


@dataclass(frozen=True, slots=True)
class Total:
    """So many times in all."""

    times: int


@dataclass(frozen=True, slots=True)
class After:
    """In so long: a number of seconds, or of days, weeks, months, years; `now` is `After(0, "second")`."""

    count: int
    unit: str


@dataclass(frozen=True, slots=True)
class Roll:
    """ "or the business day before": what becomes of a day that is none ("previous", "next" or "nearest");
    `weekday` where it says weekday, which no calendar changes."""

    direction: str
    weekday: bool = False


@dataclass(frozen=True, slots=True)
class InZone:
    """The IANA names of the zones in which the times may be meant: one, unless the phrase's name for it has
    several."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Once:
    """ "once", "only once": a single callback."""


@dataclass(frozen=True, slots=True)
class Holidays:
    """Public holidays, which only a calendar knows."""


Left = Weekdays | Months | MonthDays | Nth | Period | YearlyDates | On | Times | Window | Holidays


@dataclass(frozen=True, slots=True)
class Except:
    """What is left out."""

    what: tuple[Left, ...]


Clause = (
    Repeat
    | Often
    | Weekdays
    | WeekdayAndDay
    | Nth
    | MonthDays
    | WithinMonth
    | Weeks
    | Period
    | Months
    | YearlyDates
    | On
    | OnEach
    | At
    | Times
    | PartOfDay
    | PastHour
    | Window
    | WorkingHours
    | Start
    | Until
    | For
    | Total
    | After
    | Roll
    | InZone
    | Once
    | Except
)
