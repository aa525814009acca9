"""How often: "every 2 weeks", "every other tuesday", "hourly", "twice a day", "every morning"."""

from scheduler_app.domain.triggers.phrase.clauses import (
    Clause,
    Often,
    On,
    PartOfDay,
    Repeat,
    Times,
    Weekdays,
    YearlyDates,
)
from scheduler_app.domain.triggers.phrase.moments import Date, EasterDay, Time
from scheduler_app.domain.triggers.phrase.words import ADVERBS, DOUBTFUL_ADVERBS, EVERY, PARTS_OF_DAY, UNITS

from .amounts import amount
from .cursor import Found, Tokens, number, ordinal, unit
from .days import day_group, weekday_list, yearly_dates
from .points import dates, day

_TIMES = {"once": 1, "twice": 2, "thrice": 3}


def every(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """Everything that begins with "every" or "each", and the adverbs."""
    word = tokens.text(position)
    if word in ADVERBS:
        return (Repeat(*ADVERBS[word]),), position + 1
    if word in DOUBTFUL_ADVERBS:
        return (Repeat(*DOUBTFUL_ADVERBS[word], doubtful=True),), position + 1
    if word == "nightly":
        return (Repeat(1, "day"), PartOfDay("night")), position + 1
    start = tokens.skip(position, "once", "on")
    if tokens.text(start) not in EVERY:
        return None
    start = tokens.skip(start + 1, "single")
    return _every_group(tokens, start) or _every_length(tokens, start) or _every_date(tokens, start)


def _every_group(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """every weekday, every other tuesday, every monday and thursday, every morning."""
    if tokens.text(position) in PARTS_OF_DAY:
        return (PartOfDay(PARTS_OF_DAY[tokens.text(position)], daily=True),), position + 1
    if (after := tokens.says(position, "leap day")) is not None:
        return (YearlyDates((Date(2, 29),), every=True),), after
    if tokens.text(position) in ("noon", "midnight"):
        return (
            Repeat(1, "day"),
            Times((Time(12 * (tokens.text(position) == "noon"), sure=True),)),
        ), position + 1
    if (after := tokens.any_of(position, "day of the week")) is not None:
        return (Repeat(1, "day"),), after
    other = tokens.text(position) in ("other", "alternate")
    position += other
    group = day_group(tokens, position)
    if group is not None:
        found, after = group
        return (Weekdays(found.days, 1 + other, found.business),), after
    days = weekday_list(tokens, position)
    return None if days is None else ((Weekdays(days[0][0], 1 + other),), days[1])


def _every_length(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """every day, every 90 minutes, every other week, every third month, every fortnight."""
    for words, repeat in (("fortnight", Repeat(2, "week")), ("other fortnight", Repeat(4, "week"))):
        if (after := tokens.says(position, words)) is not None:
            return (repeat,), after
    if tokens.text(position) in ("half", "quarter") and (part := amount(tokens, position)) is not None:
        return (Repeat(*part[0]),), part[1]
    one = unit(tokens, position)
    if one is not None and tokens.at(position).text != "second":
        half = tokens.says(one[1], "and a half")
        if half is not None and one[0] == "hour":
            return (Repeat(90, "minute"),), half
        return (Repeat(1, one[0]),), one[1]
    if tokens.text(position) in ("other", "alternate"):
        of = unit(tokens, position + 1)
        return None if of is None else ((Repeat(2, of[0]),), of[1])
    counted = ordinal(tokens, position)
    if counted is not None and counted[0] > 1:
        of = unit(tokens, counted[1])
        # "every second day of the month" counts days, not steps.
        if of is not None and tokens.text(of[1]) != "of":
            return (Repeat(counted[0], of[0]),), of[1]
    if tokens.text(position) == "second":
        return (Repeat(1, "second"),), position + 1
    length = amount(tokens, position)
    return None if length is None else ((Repeat(*length[0]),), length[1])


def _every_date(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """every 25 december, every january 1st and july 1st, every january."""
    movable = day(tokens, position)
    if movable is not None and isinstance(movable[0], EasterDay):
        return (Repeat(1, "year"), On((movable[0],))), movable[1]
    found = dates(tokens, position)
    if found is None or not yearly_dates(found[0]):
        return None
    return (YearlyDates(found[0], every=True),), found[1]


def often(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """twice a day, twice daily, once a week, 3 times per month, 7 days a week."""
    if (
        after := tokens.any_of(position, "7 days a week", "seven days a week", "7 days per week")
    ) is not None:
        return (Repeat(1, "day"),), after
    times = _TIMES.get(tokens.text(position))
    if times is not None:
        position += 1
    else:
        counted = number(tokens, position)
        if counted is None or tokens.text(counted[1]) not in ("times", "time", "x"):
            return None
        times, position = counted[0], counted[1] + 1
    count, adverb = ADVERBS.get(tokens.text(position), (0, ""))
    if count == 1 and times > 0:
        return (Often(times, adverb),), position + 1
    if tokens.text(position) not in ("a", "an", "per", *EVERY):
        return None
    of = UNITS.get(tokens.text(position + 1))
    return None if of is None or times == 0 else ((Often(times, of),), position + 2)
