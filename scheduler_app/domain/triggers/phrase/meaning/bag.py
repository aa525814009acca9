"""The clauses of one reading, taken out one by one: what nobody took is a word without effect."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from scheduler_app.domain.triggers.phrase import clauses
from scheduler_app.domain.triggers.phrase.clauses import Clause

from .outcome import Refused, Several

C = TypeVar("C", bound=Clause)

#: What a refusal calls each kind of clause.
NAMES: Final[Mapping[type[Clause], str]] = {
    clauses.Repeat: "the interval",
    clauses.Often: "the number of times in a unit",
    clauses.Weekdays: "the day of the week",
    clauses.WeekdayAndDay: "the day that is both of the week and of the month",
    clauses.Nth: "the ordinal",
    clauses.MonthDays: "the day of the month",
    clauses.WithinMonth: "the part of the month",
    clauses.Weeks: "the week of the year",
    clauses.Period: "the unit that is counted in",
    clauses.Months: "the month",
    clauses.YearlyDates: "the date",
    clauses.On: "the single day",
    clauses.OnEach: "the list of single days",
    clauses.At: "the instant",
    clauses.Times: "the time of day",
    clauses.PartOfDay: "the part of the day",
    clauses.PastHour: "the minute of the hour",
    clauses.Window: "the window of time",
    clauses.WorkingHours: "“during business hours”",
    clauses.Start: "the beginning",
    clauses.Until: "the end",
    clauses.For: "the duration",
    clauses.Total: "the number of times",
    clauses.After: "“in …” or “now”",
    clauses.Roll: "“or the business day …”",
    clauses.InZone: "the time zone",
    clauses.Once: "“once”",
    clauses.Except: "the exception",
}


class Bag:
    """Clauses to be taken by their kind. Each must be taken, and used, before there is a meaning."""

    def __init__(self, found: Sequence[Clause]) -> None:
        self.clauses = tuple(found)
        self._left = list(found)

    def take(self, kind: type[C]) -> C | None:
        """The one clause of a kind; a second one is left over and will be refused."""
        for clause in self._left:
            if isinstance(clause, kind):
                self._left.remove(clause)
                return clause
        return None

    def has(self, *kinds: type[Clause]) -> bool:
        return any(isinstance(clause, kinds) for clause in self._left)

    def mentions(self, *kinds: type[Clause]) -> bool:
        """Whether the phrase has such a clause, taken or not."""
        return any(isinstance(clause, kinds) for clause in self.clauses)

    def ambiguity(
        self, clause: Clause, options: Sequence[Sequence[Clause]], reason: str, *, ask: bool = True
    ) -> Several:
        """To be raised: several options may be meant in the place of `clause`."""
        ways = []
        for option in options:
            way: list[Clause] = []
            for one in self.clauses:
                way += option if one is clause else [one]
            ways.append(tuple(way))
        return Several(reason, ways, ask=ask)

    def missing(self, options: Sequence[Sequence[Clause]], reason: str) -> Several:
        """To be raised: the phrase does not say enough; each option adds clauses to it."""
        return Several(reason, [(*self.clauses, *option) for option in options])

    def check_empty(self) -> None:
        """Refuses what was understood but has no place in the meaning of the rest."""
        if self._left:
            raise Refused(_odd(self._left[0]))


def _odd(clause: Clause) -> str:
    return (
        f"{NAMES[type(clause)]} does not go together with the rest; say one thing only, or make two schedules"
    )
