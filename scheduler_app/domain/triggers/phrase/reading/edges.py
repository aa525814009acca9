"""Days at and near the edges of a period: at the end of every month, two days before the end of the month."""

from scheduler_app.domain.triggers.phrase.clauses import DAY, Clause, Nth
from scheduler_app.domain.triggers.phrase.words import EVERY

from .cursor import Found, Tokens, number
from .days import period

#: Every month has a day so far before its last one.
_FARTHEST = 27
_BEFORE = ("before the end", "before end", "before the last day", "before last day")


def edge_of_every(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """at the end of every month, at the beginning of each quarter."""
    after = tokens.skip(position, "at", "the")
    edge = {"end": -1, "start": 1, "beginning": 1}.get(tokens.text(after))
    found = period(tokens, after + 1) if tokens.text(after + 1) == "of" else None
    if edge is None or found is None or tokens.text(after + 2) not in EVERY:
        return None
    return (Nth(((edge, DAY),)), *found[0]), found[1]


def before_the_end(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """[on] the day before the last day of the month, two days before the end of every month: a day is counted
    back from the last one."""
    position = tokens.skip(position, "on")
    count = (1, position + 1) if tokens.text(position) in ("the", "a") else number(tokens, position)
    if count is None or not 1 <= count[0] <= _FARTHEST or tokens.text(count[1]) not in ("day", "days"):
        return None
    end = tokens.any_of(
        count[1] + 1, "before the end", "before end", "before the last day", "before last day"
    )
    found = period(tokens, end) if end is not None and tokens.text(end) == "of" else None
    if found is None:
        return None
    return (Nth(((-1 - count[0], DAY),)), *found[0]), found[1]
