"""The clauses of one reading, taken out one by one: what nobody took is a word without effect; with the
context in which a phrase is said, and the ways in which it can have no single meaning.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from typing import Final, TypeVar

from scheduler_app.domain.recurrence.zones import find_zone, instant_at
from scheduler_app.domain.triggers.phrase import clauses
from scheduler_app.domain.triggers.phrase.clauses import Clause
from scheduler_app.domain.triggers.translation import TriggerContext


@dataclass(frozen=True, slots=True)
class PhraseContext(TriggerContext):
    """When and where a phrase is said.

    `at` is in UTC, as all instants are here: Python adds to times of a zone and compares them by the wall
    clock, on which an hour may come twice.
    """

    names_zone: bool = False
    """Whether the phrase itself names the timezone."""

    @property
    def zone(self) -> tzinfo:
        """The timezone."""
        return find_zone(self.timezone).info

    @property
    def now(self) -> datetime:
        """What the wall clock shows."""
        return self.at.astimezone(self.zone)

    @property
    def today(self) -> date:
        """The date in the zone."""
        return self.now.date()

    def local(self, moment: datetime) -> datetime:
        """A naive local time of the zone as an instant, in UTC."""
        return instant_at(moment, self.timezone, self.overlap)


class PhraseRefused(Exception):
    """The phrase has no meaning; `words` are those that are to blame, if some are."""

    def __init__(self, message: str, words: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.words = tuple(words)


class AmbiguousPhrase(Exception):
    """The clauses can be read in several ways; each option is a list of clauses that can be read in fewer.

    `ask` where the person must be asked even if only one option turns out to be possible.
    """

    def __init__(self, reason: str, options: Sequence[tuple[Clause, ...]], *, ask: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.options = tuple(options)
        self.ask = ask


C = TypeVar("C", bound=Clause)

#: What a refusal calls each kind of clause.
NAMES: Final[Mapping[type[Clause], str]] = {
    clauses.RepeatClause: "the interval",
    clauses.OftenClause: "the number of times in a unit",
    clauses.WeekdaysClause: "the day of the week",
    clauses.WeekdayAndDayClause: "the day that is both of the week and of the month",
    clauses.NthClause: "the ordinal",
    clauses.MonthDaysClause: "the day of the month",
    clauses.WithinMonthClause: "the part of the month",
    clauses.WeeksClause: "the week of the year",
    clauses.PeriodClause: "the unit that is counted in",
    clauses.MonthsClause: "the month",
    clauses.YearlyDatesClause: "the date",
    clauses.OnClause: "the single day",
    clauses.OnEachClause: "the list of single days",
    clauses.AtClause: "the instant",
    clauses.TimesClause: "the time of day",
    clauses.PartOfDayClause: "the part of the day",
    clauses.PastHourClause: "the minute of the hour",
    clauses.WindowClause: "the window of time",
    clauses.WorkingHoursClause: "“during business hours”",
    clauses.StartClause: "the beginning",
    clauses.UntilClause: "the end",
    clauses.ForClause: "the duration",
    clauses.TotalClause: "the number of times",
    clauses.AfterClause: "“in …” or “now”",
    clauses.RollClause: "“or the business day …”",
    clauses.InZoneClause: "the time zone",
    clauses.OnceClause: "“once”",
    clauses.ExceptClause: "the exception",
}


class ClauseBag:
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

    def all(self, kind: type[C]) -> list[C]:
        """The clauses of a kind that the phrase has, taken or not."""
        return [clause for clause in self.clauses if isinstance(clause, kind)]

    def find(self, kind: type[C]) -> C | None:
        """The first of them."""
        return next(iter(self.all(kind)), None)

    def has(self, *kinds: type[Clause]) -> bool:
        return any(isinstance(clause, kinds) for clause in self._left)

    def mentions(self, *kinds: type[Clause]) -> bool:
        """Whether the phrase has such a clause, taken or not."""
        return any(isinstance(clause, kinds) for clause in self.clauses)

    def ambiguity(
        self, clause: Clause, options: Sequence[Sequence[Clause]], reason: str, *, ask: bool = True
    ) -> AmbiguousPhrase:
        """To be raised: several options may be meant in the place of `clause`."""
        place = next(place for place, one in enumerate(self.clauses) if one is clause)
        before, after = self.clauses[:place], self.clauses[place + 1 :]
        return AmbiguousPhrase(reason, [(*before, *option, *after) for option in options], ask=ask)

    def missing(self, options: Sequence[Sequence[Clause]], reason: str) -> AmbiguousPhrase:
        """To be raised: the phrase does not say enough; each option adds clauses to it."""
        return AmbiguousPhrase(reason, [(*self.clauses, *option) for option in options])

    def check_empty(self) -> None:
        """Refuses what was understood but has no place in the meaning of the rest."""
        if self._left:
            name = NAMES[type(self._left[0])]
            raise PhraseRefused(
                f"{name} does not go together with the rest; say one thing only, or make two schedules"
            )
