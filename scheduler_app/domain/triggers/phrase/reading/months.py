"""Months of the year, one by one or as quarters: in June, from June to August, in Q1."""

from scheduler_app.domain.triggers.phrase.clauses import Clause, Months, Weeks
from scheduler_app.domain.triggers.phrase.words import EVERY, MONTHS, TO

from .cursor import Found, Tokens, number, ordinal, several


def month_list(tokens: Tokens, position: int) -> Found[tuple[int, ...]]:
    """Months joined by commas or "and", or as ranges."""
    found = several(tokens, position, _months)
    if found is None:
        return None
    return tuple(dict.fromkeys(month for some in found[0] for month in some)), found[1]


def _months(tokens: Tokens, position: int) -> Found[tuple[int, ...]]:
    first = MONTHS.get(tokens.text(position))
    if first is None:
        return None
    last = MONTHS.get(tokens.text(position + 2)) if tokens.text(position + 1) in TO else None
    if last is None:
        return (first,), position + 1
    return _month_range(first, last), position + 3


def _month_range(first: int, last: int) -> tuple[int, ...]:
    """The months from one to another, perhaps over New Year."""
    return tuple((first - 1 + step) % 12 + 1 for step in range((last - first) % 12 + 1))


def months(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """in january and july, of june, from june to august, between june and august, every january."""
    word = tokens.text(position)
    if word == "between":
        ends = [MONTHS.get(tokens.text(position + 1)), MONTHS.get(tokens.text(position + 3))]
        if None in ends or tokens.text(position + 2) not in ("and", "&"):
            return None
        return (Months(_month_range(*(end for end in ends if end is not None))),), position + 4
    led = word in ("in", "of", "during") or word in EVERY
    position = tokens.skip(position + led, "each", "every") if led else position
    found = month_list(tokens, position + (word == "from"))
    if found is None or not (led or len(found[0]) > 1):
        return None
    return (Months(found[0]),), found[1]


def quarters(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """in q1, in q1 and q3, during the first quarter: the months of calendar quarters."""
    if tokens.text(position) not in ("in", "during"):
        return None
    found = several(tokens, position + 1, _quarter)
    if found is None:
        return None
    months = tuple(month for number in dict.fromkeys(found[0]) for month in _months_of_quarter(number))
    return (Months(months, quarters=True),), found[1]


def _quarter(tokens: Tokens, position: int) -> Found[int]:
    if tokens.text(position) == "q" and tokens.at(position + 1).glued:
        after = tokens.text(position + 1)
        return (int(after), position + 2) if after in ("1", "2", "3", "4") else None
    found = ordinal(tokens, tokens.skip(position, "the"))
    if found is None or not 1 <= found[0] <= 4 or tokens.text(found[1]) != "quarter":
        return None
    return found[0], found[1] + 1


def weeks(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """in week 12, of weeks 1 and 20 [of the year], in odd weeks."""
    led = tokens.text(position) in ("in", "of", "during", "on")
    position = tokens.skip(position + led, *EVERY)
    parity = {"odd": 1, "even": 2}.get(tokens.text(position))
    if parity is not None:
        after = tokens.any_of(position + 1, "numbered weeks", "weeks", "week", "calendar weeks")
        return None if after is None or not led else ((Weeks(tuple(range(parity, 54, 2))),), after)
    if not led or tokens.text(position) not in ("week", "weeks"):
        return None
    found = several(tokens, position + 1, number)
    if found is None or not all(1 <= week <= 53 for week in found[0]):
        return None
    return (Weeks(tuple(dict.fromkeys(found[0]))),), found[1]


def _months_of_quarter(number: int) -> range:
    return range(3 * number - 2, 3 * number + 1)
