"""The clauses of one reading, taken out one by one: what nobody took is a word without effect."""

from collections.abc import Sequence
from typing import TypeVar

from scheduler_app.domain.triggers.phrase.clauses import Clause

from .outcome import Refused, Several

C = TypeVar("C", bound=Clause)


class Bag:
    """Clauses to be taken by their kind. Each must be taken, and used, before there is a meaning."""

    def __init__(self, clauses: Sequence[Clause]) -> None:
        self.clauses = tuple(clauses)
        self._left = list(clauses)

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
    names = {
        "Weekdays": "the days of the week",
        "MonthDays": "the day of the month",
        "Nth": "the ordinal",
        "Times": "the time of day",
        "PartOfDay": "the part of the day",
        "On": "the single day",
        "Repeat": "the interval",
        "Once": "“once”",
        "After": "“in …” or “now”",
    }
    what = names.get(type(clause).__name__, type(clause).__name__.lower())
    return f"{what} does not go together with the rest; say one thing only, or make two schedules"
