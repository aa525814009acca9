"""From tokens to clauses: at each position the rule that reads most wins; every word must belong to one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from scheduler_app.domain.triggers.phrase import grammar_bounds, grammar_dates, grammar_days, grammar_times
from scheduler_app.domain.triggers.phrase.clauses import (
    AtClause,
    Clause,
    Date,
    InZoneClause,
    OnClause,
    OnEachClause,
    PartOfDayClause,
    Time,
    TimesClause,
    YearlyDatesClause,
)
from scheduler_app.domain.triggers.phrase.tokens import Found, Token, Tokens
from scheduler_app.domain.triggers.phrase.words import (
    AND,
    DONE_TO,
    PARTS_OF_DAY,
    POLITE,
    THANKS,
    VERBS,
)

#: More clauses than any phrase has; beyond it nothing is read.
MAX_CLAUSES: Final = 16
_LARGEST_OFFSET: Final = timedelta(hours=14)


@dataclass(frozen=True, slots=True)
class ReadClause:
    """A clause and the words that it was read from; `joined` when "and" or a comma stands before it."""

    clause: Clause
    words: tuple[str, ...]
    joined: bool = False


@dataclass(frozen=True, slots=True)
class PhraseReading:
    """The clauses of a phrase, and the words that belong to none."""

    clauses: tuple[ReadClause, ...]
    unknown: tuple[str, ...]


def _dates(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """on 24 december: the day of a single callback, or several days, which may repeat if none has a year."""
    if (found := grammar_dates.dates(tokens, tokens.skip(position, "on", "the"))) is None:
        return None
    if len(found[0]) == 1:
        return (OnClause(found[0]),), found[1]
    each = YearlyDatesClause(found[0]) if grammar_days.yearly_dates(found[0]) else OnEachClause(found[0])
    return (each,), found[1]


def _stamp(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """[at] 2026-12-24T18:30, with a Z in UTC; with an offset it is an instant."""
    position = tokens.skip(position, "at", "on")
    stamp = tokens.text(position).upper().replace(" ", "")
    if tokens.at(position).kind != "stamp":
        return None
    try:
        moment = datetime.fromisoformat(stamp if "T" in stamp else f"{stamp[:10]}T{stamp[10:]}")
    except ValueError:
        return None
    if (offset := moment.utcoffset()) is not None and not stamp.endswith("Z"):
        within = abs(offset) <= _LARGEST_OFFSET
        return ((AtClause(moment.astimezone(UTC)),), position + 1) if within else None
    day = OnClause((Date(moment.month, moment.day, moment.year),))
    time = TimesClause((Time(moment.hour, moment.minute, moment.second),))
    return ((day, time) if offset is None else (day, time, InZoneClause(("UTC",)))), position + 1


def _part_of_day(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """in the morning; morning(s) after a day."""
    if (found := grammar_times.in_the_morning(tokens, position)) is not None:
        return (found[0],), found[1]
    part = tokens.text(position).removesuffix("s")
    return ((PartOfDayClause(part),), position + 1) if part in PARTS_OF_DAY and position > 0 else None


_RULES: Final[Sequence[Callable[[Tokens, int], Found[tuple[Clause, ...]]]]] = (
    grammar_times.often,
    grammar_times.every,
    grammar_days.friday_the_13th,
    grammar_days.nth,
    grammar_days.span_of_days,
    grammar_days.beside_a_day,
    grammar_days.edge_of_every,
    grammar_days.before_the_end,
    grammar_days.weekdays,
    _dates,
    grammar_days.month_days,
    grammar_dates.months,
    grammar_dates.quarters,
    grammar_dates.weeks,
    grammar_days.period,
    _stamp,
    grammar_dates.on,
    grammar_times.window,
    grammar_times.past_hour,
    grammar_times.times,
    _part_of_day,
    grammar_bounds.start,
    grammar_bounds.until,
    grammar_bounds.length,
    grammar_bounds.in_so_long,
    grammar_bounds.once,
    grammar_bounds.roll,
    grammar_bounds.next_few,
    grammar_bounds.left_out,
    grammar_bounds.zone,
)


def read_clauses(tokens: Sequence[Token]) -> PhraseReading:
    """The clauses in the order in which they stand. Takes time in proportion to the number of tokens."""
    line = Tokens(tokens[: _before_the_thanks(Tokens(tokens))])
    clauses: list[ReadClause] = []
    unknown: list[str] = []
    position, joined, lost = _after_the_verb(line), False, False
    while position < len(line):
        found = _longest(line, position) if len(clauses) < MAX_CLAUSES else None
        if found is not None:
            words = tuple(line.at(index).written for index in range(position, found[1]))
            clauses += [ReadClause(clause, words, joined) for clause in found[0]]
            position, joined, lost = found[1], False, False
            continue
        if line.text(position) in AND and not lost and position > 0 and position + 1 < len(line):
            joined = True
        elif not (line.text(position) == "," and position > 0):
            unknown.append(line.at(position).written)
            lost = True
        position += 1
    return PhraseReading(tuple(clauses), tuple(unknown))


def _after_the_verb(line: Tokens) -> int:
    """The position after "please run it", "could you remind me to": that something is done, and not when."""
    position = 0
    while (after := line.any_of(position, *POLITE)) is not None:
        position = after
    if (verb := line.any_of(position, *VERBS)) is None:
        return position
    done = line.any_of(verb, *DONE_TO)
    return verb if done is None else done


def _before_the_thanks(line: Tokens) -> int:
    """The position at which "please" or "thanks" ends the phrase."""
    for words in THANKS:
        begin = len(line) - len(words.split())
        if begin > 0 and line.says(begin, words) is not None:
            return begin
    return len(line)


def _longest(line: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    found = [one for rule in _RULES if (one := rule(line, position)) is not None and one[1] > position]
    return max(found, key=lambda one: one[1], default=None)
