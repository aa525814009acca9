"""From tokens to clauses: at each position the rule that reads most wins; every word must belong to one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from scheduler_app.domain.triggers.phrase.clauses import Clause, On, PartOfDay, Times, YearlyDates
from scheduler_app.domain.triggers.phrase.moments import Date, Time
from scheduler_app.domain.triggers.phrase.tokens import Token
from scheduler_app.domain.triggers.phrase.words import AND, EVERY, PARTS_OF_DAY

from . import bounds, days, edges, months, points, steps, times
from .cursor import Found, Tokens

#: More clauses than any phrase has; beyond it nothing is read.
MAX_CLAUSES: Final = 16


@dataclass(frozen=True, slots=True)
class Read:
    """A clause and the words that it was read from; `joined` when "and" or a comma stands before it."""

    clause: Clause
    words: tuple[str, ...]
    joined: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """The clauses of a phrase, and the words that belong to none."""

    clauses: tuple[Read, ...]
    unknown: tuple[str, ...]


def _dates(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """on 24 december: the day of a single callback, or days that repeat when there are several."""
    found = points.dates(tokens, tokens.skip(position, "on", "the"))
    if found is None:
        return None
    if len(found[0]) == 1:
        return (On(found[0]),), found[1]
    return ((YearlyDates(found[0]),), found[1]) if days.yearly_dates(found[0]) else None


def _stamp(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """2026-12-24T18:30."""
    if tokens.at(position).kind != "stamp":
        return None
    day, _, clock = tokens.text(position).partition("t")
    year, month, number = (int(piece) for piece in day.split("-"))
    hour, minute, *second = (int(piece) for piece in clock.split(":"))
    if hour > 23 or minute > 59 or any(value > 59 for value in second):
        return None
    time = Time(hour, minute, second[0] if second else 0)
    return (On((Date(month, number, year),)), Times((time,))), position + 1


def _part_of_day(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """in the morning; morning(s) after a day."""
    found = times.in_the_morning(tokens, position)
    if found is not None:
        return (found[0],), found[1]
    word = tokens.text(position)
    part = PARTS_OF_DAY.get(word) or PARTS_OF_DAY.get(word.removesuffix("s"))
    return None if part is None or position == 0 else ((PartOfDay(part),), position + 1)


_RULES: Final[Sequence[Callable[[Tokens, int], Found[tuple[Clause, ...]]]]] = (
    steps.often,
    steps.every,
    days.friday_the_13th,
    days.nth,
    edges.edge_of_every,
    edges.before_the_end,
    days.weekdays,
    _dates,
    days.month_days,
    months.months,
    months.quarters,
    days.period,
    _stamp,
    points.on,
    times.window,
    times.past_hour,
    times.times,
    _part_of_day,
    bounds.start,
    bounds.until,
    bounds.length,
    bounds.in_so_long,
    bounds.once,
    bounds.roll,
    bounds.left_out,
    bounds.zone,
)


def read(tokens: Sequence[Token]) -> Reading:
    """The clauses in the order in which they stand. Takes time in proportion to the number of tokens."""
    line = Tokens(tokens)
    clauses: list[Read] = []
    unknown: list[str] = []
    position, joined = _after_the_verb(line), False
    while position < len(line):
        found = _longest(line, position) if len(clauses) < MAX_CLAUSES else None
        if found is not None:
            words = tuple(line.at(index).written for index in range(position, found[1]))
            clauses += [Read(clause, words, joined) for clause in found[0]]
            position, joined = found[1], False
            continue
        if line.text(position) in AND and not unknown and position > 0 and position + 1 < len(line):
            joined = True
        elif not (line.text(position) == "," and position > 0):
            unknown.append(line.at(position).written)
        position += 1
    return Reading(tuple(clauses), tuple(unknown))


def _after_the_verb(line: Tokens) -> int:
    """The position after "please run it", which says that something is done, and not when."""
    position = line.skip(0, "please")
    if line.text(position) in ("run", "execute", "trigger", "fire", "repeat", "call", "schedule"):
        return line.skip(position + 1, "it", "this")
    return 0


def _longest(line: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    best: Found[tuple[Clause, ...]] = None
    for rule in _RULES:
        found = rule(line, position)
        if found is not None and found[1] > position and (best is None or found[1] > best[1]):
            best = found
    if best is None and line.text(position) in EVERY:
        return None
    return best
