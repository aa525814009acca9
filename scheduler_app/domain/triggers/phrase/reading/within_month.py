"""Weekdays by where they fall in the month: between the 8th and the 14th, after the 10th, after the second
Tuesday."""

from scheduler_app.domain.triggers.phrase.clauses import Clause, Weekdays, WithinMonth
from scheduler_app.domain.triggers.phrase.words import EVERY, MONTHS

from .cursor import Found, Tokens, number, ordinal
from .days import one_weekday, period

#: Every month has this day.
_EVERY_MONTH_HAS = 28


def span_of_days(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """between the 8th and the 14th, from the 25th to the 5th [of the month]: days of the month by numbers."""
    between = tokens.text(position) == "between"
    if not between and tokens.text(position) != "from":
        return None
    first = ordinal(tokens, tokens.skip(position + 1, "the"))
    if first is None or tokens.text(first[1]) not in (("and", "&") if between else ("to", "-")):
        return None
    last = ordinal(tokens, tokens.skip(first[1] + 1, "the"))
    if last is None or not (1 <= first[0] <= 31 and 1 <= last[0] <= 31):
        return None
    over = first[0] > last[0]
    days = (*range(first[0], 32), *range(1, last[0] + 1)) if over else tuple(range(first[0], last[0] + 1))
    return _of_every_month(tokens, last[1], (), WithinMonth(days))


def beside_a_day(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """the first tuesday after the 10th, the last friday before the 15th, the friday after the second tuesday,
    2 days after the first monday: a weekday that falls on one of seven days of the month."""
    position = tokens.skip(position, "on")
    every = tokens.text(position) in EVERY
    position = tokens.skip(position + every, "the")
    counted = _days_from_a_weekday(tokens, position)
    if counted is not None:
        (day, first), after = counted
        return _seven_days(tokens, after, day, first, every=every)
    ranked = tokens.text(position) if tokens.text(position) in ("first", "last") else ""
    day_found = one_weekday(tokens, position + bool(ranked))
    if day_found is None or day_found[0][1] or (every and not ranked):
        return None  # "every monday after the 7th" may be each of them
    (day, _), after = day_found
    on = tokens.any_of(after, "on or")
    side = tokens.text(after if on is None else on)
    after = (after if on is None else on) + 1
    if side not in ("after", "following", "before") or ranked == ("last" if side != "before" else "first"):
        return None
    based = _nth_weekday(tokens, after)
    if based is not None:
        (base, rank), after = based
        ahead = (day - base) % 7 if side != "before" else -((base - day) % 7)
        if not ahead and on is None:
            ahead = 7 if side != "before" else -7
        return _seven_days(tokens, after, day, 7 * rank - 6 + ahead, every=every)
    numbered = ordinal(tokens, tokens.skip(after, "the"))
    if numbered is None or tokens.text(numbered[1]) in ("day", *MONTHS):
        return None
    near = 0 if on is not None else 1
    first = numbered[0] + near if side != "before" else numbered[0] - 6 - near
    return _seven_days(tokens, numbered[1], day, first, every=every)


def _days_from_a_weekday(tokens: Tokens, position: int) -> Found[tuple[int, int]]:
    """3 days after the second tuesday: the weekday that it is, and the first of its seven days."""
    count = (1, position) if tokens.text(position) == "day" else number(tokens, position)
    if count is None or tokens.text(count[1]) not in ("day", "days"):
        return None
    side = {"after": 1, "before": -1}.get(tokens.text(count[1] + 1))
    based = _nth_weekday(tokens, count[1] + 2)
    if side is None or based is None:
        return None
    (base, rank), after = based
    ahead = side * count[0]
    return ((base + ahead) % 7, 7 * rank - 6 + ahead), after


def _nth_weekday(tokens: Tokens, position: int) -> Found[tuple[int, int]]:
    """the second tuesday: the weekday and its ordinal."""
    rank = ordinal(tokens, tokens.skip(position, "the"))
    if rank is None or not 1 <= rank[0] <= 4:
        return None
    day = one_weekday(tokens, rank[1])
    return None if day is None else ((day[0][0], rank[0]), day[1])


def _seven_days(
    tokens: Tokens, position: int, day: int, first: int, *, every: bool
) -> Found[tuple[Clause, ...]]:
    """The weekday among the seven days from `first` on, if they lie in every month."""
    if first < 1 or first + 6 > _EVERY_MONTH_HAS:
        return None
    return _of_every_month(
        tokens, position, (Weekdays((day,)),), WithinMonth(tuple(range(first, first + 7)), every=every)
    )


def _of_every_month(
    tokens: Tokens, position: int, days: tuple[Clause, ...], within: WithinMonth
) -> Found[tuple[Clause, ...]]:
    """The clauses, and "of every month" if that follows; nothing before the name of a month."""
    if tokens.text(position) in MONTHS or (
        tokens.text(position) == "of" and tokens.text(position + 1) in MONTHS
    ):
        return None
    of = period(tokens, position)
    return (*days, within, *(() if of is None else of[0])), position if of is None else of[1]
