"""Times of day and single days, as a phrase names them."""

from dataclasses import dataclass


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
    """A day that moves with Easter Sunday, so many days after it."""

    days: int
    year: int | None = None


@dataclass(frozen=True, slots=True)
class Later:
    """A week from Tuesday, 3 days before Christmas (`count` is negative)."""

    count: int
    unit: str
    day: "Day"


Day = DaysAway | NamedDay | Date | NumericDate | DayNumber | MonthOfYear | EndOf | NthDay | EasterDay | Later
